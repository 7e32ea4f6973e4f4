// Graphs for compilers that are written in Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace foregrad::python {

/// Adds `Graph`, its parts and `Backend` to the module.
void add_graphs(pybind11::module_& module);

}  // namespace foregrad::python
