// What Foregrad can't know of operators that a library of yours registers.
#pragma once

#include <string>

namespace foregrad {

/// Says that an operator does more than give its results and write what its schema marks: it
/// counts, prints, sends. A compiled function then calls it as often and in the same order among
/// such operators as eager does, forward and backward, also if nothing reads its result; and not
/// while the function is traced, for which it needs a Meta kernel. `name`: as in its schema, for
/// example `mylib::log` or `mylib::log.int`. To be called before a function that calls the operator
/// is compiled. Throws `c10::Error` if there is no such operator.
void declare_effect(const std::string& name);

}  // namespace foregrad
