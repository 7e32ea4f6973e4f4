// Operators of users' libraries of which it was said that they do more than give their results: no
// schema tells of a counter that is advanced or a line that is printed.
#pragma once

#include <ATen/core/operator_name.h>

namespace foregrad {

void note_declared_effect(const c10::OperatorName& name);
bool is_effect_declared(const c10::OperatorName& name);

}  // namespace foregrad
