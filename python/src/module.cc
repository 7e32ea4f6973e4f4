// The extension module `foregrad._C`. Thin: Python's arguments and results to the library's and
// back.
#include <torch/csrc/utils/pybind.h>

#include "compiler.h"
#include "foregrad/version.h"
#include "graphs.h"
#include "report.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "Foregrad's library; `foregrad` is what to import.";
  module.attr("__version__") = foregrad::version();
  foregrad::python::add_report(module);
  foregrad::python::add_graphs(module);
  foregrad::python::add_compiler(module);
}
