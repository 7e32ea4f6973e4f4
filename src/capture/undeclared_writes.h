// Operators that write without saying so in their schema, made to say so while they are traced.
#pragma once

namespace foregrad {

/// Keeps the registration in a program that links this library statically.
void keep_undeclared_writes();

}  // namespace foregrad
