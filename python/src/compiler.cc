// One compiler for calls whose arguments differ in tensors only. Python flattens arguments and
// results (`foregrad/_arguments.py`); here are tensors alone.
//
// Everything runs without the interpreter's lock but what calls back: a thread that waits for a
// lock of the compiler must not hold Python's.
#include "compiler.h"

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>

#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foregrad/compile.h"
#include "foregrad/value_and_grad.h"
#include "graph/backend.h"
#include "references.h"

namespace foregrad::python {

namespace {

using Tensors = std::vector<at::Tensor>;

/// What Python code of a trace raised. Its text, unlike that of pybind11, has no traceback: it ends
/// up in the report.
class PythonError final : public std::exception {
 public:
  /// Called under the interpreter's lock.
  explicit PythonError(py::error_already_set error)
      : error_(std::move(error)),
        text_(py::str(error_.type().attr("__name__")).cast<std::string>() + ": " +
              py::str(error_.value()).cast<std::string>()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const py::error_already_set& error() const { return error_; }

 private:
  py::error_already_set error_;
  std::string text_;
};

/// Calls `use` without the interpreter's lock. What Python code raised inside reaches Python.
template <class Use>
auto unlocked(Use&& use) {
  try {
    const py::gil_scoped_release release;
    return use();
  } catch (const PythonError& error) {
    throw py::error_already_set(error.error());
  }
}

/// The user's function with the arguments of one call. `run` takes the list of tensors that replace
/// those of the arguments, and gives the tensors of the result, what the result is without them,
/// and whether an argument was changed in a way that only Python sees.
class PythonCall final : public detail::BoundFunction {
 public:
  explicit PythonCall(const py::object& run) : run_(run) {}

  detail::TracedResult trace(const Tensors& tensors) override {
    const py::gil_scoped_acquire lock;
    try {
      auto [results, rest, reassigns] = run_(tensors).cast<std::tuple<Tensors, py::object, bool>>();
      return {.tensors = std::move(results),
              .prototype = keep(std::move(rest)),
              .reassigns_argument = reassigns};
    } catch (py::error_already_set& error) {
      throw PythonError(std::move(error));
    }
  }

 private:
  const py::object& run_;
};

detail::Leaves leaves_of(const Tensors& tensors) {
  detail::Leaves leaves;
  for (const at::Tensor& tensor : tensors) leaves(tensor);
  return leaves;
}

class PythonCompiler {
 public:
  explicit PythonCompiler(CompileOptions options) : compiler_(std::move(options)) {}

  /// `(True, tensors, rest)`, or `(False, what tracing failed of, None)`.
  std::tuple<bool, py::object, py::object> call(const py::object& run, const Tensors& tensors) {
    detail::CallResult called = unlocked([&] {
      PythonCall bound(run);
      return compiler_.call(leaves_of(tensors), bound);
    });
    if (!called.is_compiled) return {false, py::cast(called.trace_error), py::none()};
    return {true, py::cast(called.tensors),
            *static_cast<const py::object*>(called.prototype.get())};
  }

  bool warm_up(const py::object& run, const Tensors& tensors) {
    return unlocked([&] {
      PythonCall bound(run);
      return compiler_.warm_up(leaves_of(tensors), bound);
    });
  }

  void count_fallback(const std::string& trace_error, const Tensors& tensors) {
    unlocked([&] { compiler_.count_fallback(trace_error, leaves_of(tensors)); });
  }
  Report report() {
    return unlocked([&] { return compiler_.report(); });
  }
  void invalidate() {
    unlocked([&] { compiler_.invalidate(); });
  }

 private:
  detail::Compiler compiler_;
};

BackwardAutocast backward_autocast_of(const std::string& state, at::ScalarType dtype) {
  using State = BackwardAutocast::State;
  if (state == "as_called") return {.state = State::AsCalled};
  if (state == "as_forward") return {.state = State::AsForward};
  if (state == "off") return {.state = State::Off};
  TORCH_CHECK_VALUE(state == "on", "foregrad: `backward_autocast`: expected `as_called`, ",
                    "`as_forward`, `off` or a dtype, got `", state, "`.");
  return {.state = State::On, .dtype = dtype};
}

Policy policy_of(const std::string& policy) {
  TORCH_CHECK_VALUE(policy == "eager" || policy == "refuse",
                    "foregrad: `policy`: expected `eager` or `refuse`, got `", policy, "`.");
  return policy == "eager" ? Policy::Eager : Policy::Refuse;
}

PythonCompiler make_compiler(Tensors tensors, const std::string& policy, size_t max_specialisations,
                             const std::string& backward_autocast, at::ScalarType backward_dtype,
                             const std::shared_ptr<Backend>& backend) {
  return PythonCompiler(
      {.tensors = std::move(tensors),
       .policy = policy_of(policy),
       .max_specialisations = max_specialisations,
       .backward_autocast = backward_autocast_of(backward_autocast, backward_dtype),
       .backend = backend});
}

Tensors tensors_to_differentiate(const Tensors& arguments, Tensors declared) {
  return detail::tensors_to_differentiate(leaves_of(arguments), {.tensors = std::move(declared)});
}

}  // namespace

void add_compiler(py::module_& module) {
  using torch::wrap_pybind_function;
  using torch::wrap_pybind_function_no_gil;
  py::class_<PythonCompiler>(module, "Compiler",
                             "Holds the specialisations of one function for calls whose arguments "
                             "differ in tensors only.")
      .def(py::init(wrap_pybind_function(make_compiler)), py::arg("tensors"), py::arg("policy"),
           py::arg("max_specialisations"), py::arg("backward_autocast"), py::arg("backward_dtype"),
           py::arg("backend"))
      .def("call", wrap_pybind_function(&PythonCompiler::call), py::arg("run"), py::arg("tensors"))
      .def("warm_up", wrap_pybind_function(&PythonCompiler::warm_up), py::arg("run"),
           py::arg("tensors"))
      .def("count_fallback", wrap_pybind_function(&PythonCompiler::count_fallback),
           py::arg("trace_error"), py::arg("tensors"))
      .def("report", wrap_pybind_function(&PythonCompiler::report))
      .def("invalidate", wrap_pybind_function(&PythonCompiler::invalidate));
  module.def("tensors_to_differentiate", wrap_pybind_function_no_gil(tensors_to_differentiate),
             py::arg("arguments"), py::arg("declared"));
  module.def("gradients_of", wrap_pybind_function_no_gil(detail::gradients_of), py::arg("loss"),
             py::arg("wanted"));
}

}  // namespace foregrad::python
