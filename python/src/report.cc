#include "report.h"

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>

#include "foregrad/report.h"
#include "foregrad/self_check.h"

namespace foregrad::python {

namespace py = pybind11;

void add_report(py::module_& module) {
  py::class_<Report> report(module, "Report", "What a compiled function has done so far.");
  py::class_<Report::Stage>(report, "Stage", "One stage of a compilation.")
      .def_readonly("name", &Report::Stage::name)
      .def_readonly("ms", &Report::Stage::ms);
  using Specialisation = Report::Specialisation;
  py::class_<Specialisation>(report, "Specialisation", "One compiled form of a function.")
      .def_readonly("signature", &Specialisation::signature)
      .def_readonly("joint_graph", &Specialisation::joint_graph)
      .def_readonly("forward_graph", &Specialisation::forward_graph)
      .def_readonly("backward_graph", &Specialisation::backward_graph)
      .def_readonly("forward_dot", &Specialisation::forward_dot)
      .def_readonly("backward_dot", &Specialisation::backward_dot)
      .def_readonly("guards", &Specialisation::guards)
      .def_readonly("stages", &Specialisation::stages)
      .def_readonly("compile_ms", &Specialisation::compile_ms)
      .def_readonly("saved_bytes", &Specialisation::saved_bytes)
      .def_readonly("last_resort_shapes", &Specialisation::last_resort_shapes)
      .def_readonly("calls", &Specialisation::calls);
  report.def(py::init<>())
      .def_readwrite("specialisations", &Report::specialisations)
      .def_readwrite("eager_calls", &Report::eager_calls)
      .def_readwrite("fallback_reasons", &Report::fallback_reasons)
      .def_readwrite("recompiles", &Report::recompiles)
      .def("__str__", [](const Report& self) { return to_text(self); });
  py::class_<SelfCheck>(module, "SelfCheck", "Whether Foregrad can trace with this libtorch.")
      .def_readonly("ok", &SelfCheck::ok)
      .def_readonly("libtorch_version", &SelfCheck::libtorch_version)
      .def_readonly("trace_key", &SelfCheck::trace_key)
      .def_readonly("lines", &SelfCheck::lines);
  module.def("self_check", torch::wrap_pybind_function_no_gil(self_check));
}

}  // namespace foregrad::python
