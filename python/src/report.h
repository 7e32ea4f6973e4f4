// `foregrad::Report` for Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace foregrad::python {

/// Adds `Report`, its parts and `SelfCheck` to the module.
void add_report(pybind11::module_& module);

}  // namespace foregrad::python
