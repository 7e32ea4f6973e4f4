// Python objects that C++ keeps.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <utility>

namespace foregrad::python {

namespace py = pybind11;

/// A Python object that may be dropped from any thread, with or without the interpreter's lock.
using Reference = std::shared_ptr<const py::object>;

/// Keeps the object. Called under the interpreter's lock.
inline Reference keep(py::object object) {
  return {new py::object(std::move(object)), [](const py::object* kept) {
            // After the interpreter's end there is nothing to give back to.
            if (!Py_IsInitialized()) return;
            const py::gil_scoped_acquire lock;
            delete kept;
          }};
}

}  // namespace foregrad::python
