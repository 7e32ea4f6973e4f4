#include "graphs.h"

#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/literal.h"
#include "graph/printer.h"
#include "references.h"

namespace foregrad::python {

namespace {

/// Makes the Python object of a literal. The schema's type tells a dtype from a number.
py::object to_python(const c10::IValue& literal, const c10::Type& type) {
  if (literal.isNone()) return py::none();
  switch (type.kind()) {
    case c10::TypeKind::OptionalType: return to_python(literal, *type.containedType(0));
    case c10::TypeKind::ScalarTypeType: return py::cast(literal.toScalarType());
    case c10::TypeKind::LayoutType: return py::cast(literal.toLayout());
    case c10::TypeKind::MemoryFormatType: return py::cast(literal.toMemoryFormat());
    default: return torch::jit::toPyObject(literal);
  }
}

py::object to_python(const Operand& operand, const c10::Type& type) {
  if (const auto* value = std::get_if<ValueId>(&operand)) return py::cast(*value);
  if (const auto* list = std::get_if<ValueList>(&operand)) {
    py::list values;
    for (const auto& entry : *list)
      values.append(entry ? py::cast(*entry) : py::object(py::none()));
    return values;
  }
  return to_python(std::get<c10::IValue>(operand), type);
}

bool is_default(const c10::Argument& argument, const Operand& operand) {
  const auto* literal = std::get_if<c10::IValue>(&operand);
  return literal && argument.default_value() && literals_equal(*literal, *argument.default_value());
}

/// Returns the arguments as Python passes them, those at the end that are as by default left out.
std::pair<py::list, py::dict> arguments_of(const Node& node) {
  const auto& parameters = node.op.schema().arguments();
  py::list positional;
  py::dict named;
  size_t count = 0;
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (!parameters[i].kwarg_only() && !is_default(parameters[i], node.args[i])) count = i + 1;
  }
  for (size_t i = 0; i < node.args.size(); ++i) {
    const auto value = [&] { return to_python(node.args[i], *parameters[i].real_type()); };
    if (i < count) {
      positional.append(value());
    } else if (parameters[i].kwarg_only() && !is_default(parameters[i], node.args[i])) {
      named[py::str(parameters[i].name())] = value();
    }
  }
  return {std::move(positional), std::move(named)};
}

py::list results_of(const Node& node) {
  py::list results;
  for (size_t i = 0; i < node.results.size(); ++i)
    results.append(to_python(node.results[i], *node.op.schema().returns()[i].real_type()));
  return results;
}

/// A compiler of Python's: gets a `Graph`, gives what takes the list of tensors that the graph
/// takes and gives the tensors that it gives, None where one has no value.
GraphCompiler compiler_of(const py::object& compile) {
  if (compile.is_none()) return {};
  return [compile = keep(compile)](const Graph& graph) -> Executable {
    const py::gil_scoped_acquire lock;
    Reference run = keep((*compile)(py::cast(graph)));
    return [run = std::move(run)](std::vector<at::Tensor> inputs) {
      const py::gil_scoped_acquire lock_of_call;
      py::list arguments = py::cast(std::move(inputs));
      std::vector<at::Tensor> results;
      for (const py::handle result : py::iter((*run)(std::move(arguments))))
        results.push_back(result.is_none() ? at::Tensor() : result.cast<at::Tensor>());
      return results;
    };
  };
}

Partitioner partitioner_of(const py::object& partition) {
  if (partition.is_none()) return {};
  return [partition = keep(partition)](const Graph& joint) {
    const py::gil_scoped_acquire lock;
    std::vector<ValueId> saved;
    for (const auto index : (*partition)(py::cast(joint)).cast<std::vector<uint32_t>>())
      saved.push_back({index});
    return saved;
  };
}

std::shared_ptr<Backend> make_backend(const py::object& forward, const py::object& backward,
                                      const py::object& inference, const py::object& partitioner) {
  return std::make_shared<Backend>(Backend{.forward = compiler_of(forward),
                                           .backward = compiler_of(backward),
                                           .inference = compiler_of(inference),
                                           .partitioner = partitioner_of(partitioner)});
}

void add_types(py::module_& module) {
  py::class_<ValueId>(module, "Value", "What one node or input defines.")
      .def_readonly("index", &ValueId::index)
      .def("__eq__", [](ValueId self, ValueId other) { return self == other; })
      .def("__hash__", [](ValueId self) { return self.index; });
  py::class_<TensorType>(module, "TensorType", "A tensor without its data.")
      .def_readonly("dtype", &TensorType::dtype)
      .def_property_readonly("sizes",
                             [](const TensorType& self) { return at::IntArrayRef(self.sizes); })
      .def_property_readonly("strides",
                             [](const TensorType& self) { return at::IntArrayRef(self.strides); })
      .def_readonly("storage_offset", &TensorType::storage_offset)
      .def_readonly("is_conj", &TensorType::is_conj)
      .def_readonly("is_neg", &TensorType::is_neg)
      .def("__str__", [](const TensorType& self) { return to_text(self); });
}

}  // namespace

void add_graphs(py::module_& module) {
  add_types(module);
  py::class_<Node>(module, "Node", "One dispatcher operator with its operands.")
      .def_property_readonly("op", [](const Node& self) { return operator_text(self.op); })
      .def_property_readonly("arguments", arguments_of)
      .def_property_readonly("results", results_of)
      .def_property_readonly("is_backward",
                             [](const Node& self) { return self.phase == Phase::Backward; });
  py::class_<Graph>(module, "Graph", "A graph; every value is written once.")
      .def_readonly("nodes", &Graph::nodes)
      .def_property_readonly("inputs",
                             [](const Graph& self) {
                               std::vector<std::pair<ValueId, std::string>> inputs;
                               for (const GraphInput& input : self.inputs)
                                 inputs.emplace_back(input.value, to_text(input.role));
                               return inputs;
                             })
      .def_property_readonly("outputs",
                             [](const Graph& self) {
                               std::vector<std::pair<std::optional<ValueId>, std::string>> outputs;
                               for (const GraphOutput& output : self.outputs)
                                 outputs.emplace_back(output.value, to_text(output.role));
                               return outputs;
                             })
      .def("type", &Graph::type, py::arg("value"))
      .def("__str__", [](const Graph& self) { return print_graph(self); });
  py::class_<Backend, std::shared_ptr<Backend>>(
      module, "Backend", "What a compiler backend puts in place of Foregrad's own parts.")
      .def(py::init(&make_backend), py::arg("forward"), py::arg("backward"), py::arg("inference"),
           py::arg("partitioner"));
}

}  // namespace foregrad::python
