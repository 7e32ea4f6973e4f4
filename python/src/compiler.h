// `foregrad::detail::Compiler` for functions of Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace foregrad::python {

/// Adds `Compiler`, `tensors_to_differentiate` and `gradients_of` to the module. `Backend` and
/// `Report` must be there.
void add_compiler(pybind11::module_& module);

}  // namespace foregrad::python
