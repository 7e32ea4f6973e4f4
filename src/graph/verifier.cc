// One walk over the inputs, nodes and outputs with a state for each value; a second walk, from the
// end, only if some node overwrites. Linear in the graph's text but for the roles, which are
// sorted. Text is made only for errors.
#include "graph/verifier.h"

#include <algorithm>
#include <limits>

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "graph/literal.h"
#include "graph/printer.h"

namespace foregrad {
namespace {

using c10::TypeKind;

enum class Definition : uint8_t { None, Primal, OtherInput, ForwardNode, BackwardNode };

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == TypeKind::OptionalType ? *type.containedType(0) : type;
}

bool is_tensor(const c10::Type& type) {
  return without_optional(type).kind() == TypeKind::TensorType;
}

bool is_tensor_list(const c10::Type& type) {
  const c10::Type& list = without_optional(type);
  return list.kind() == TypeKind::ListType && is_tensor(*list.containedType(0));
}

bool operand_fits(const Operand& operand, const c10::Type& type) {
  if (std::holds_alternative<ValueId>(operand)) return is_tensor(type);
  if (std::holds_alternative<ValueList>(operand)) return is_tensor_list(type);
  return literal_fits(std::get<c10::IValue>(operand), type);
}

bool result_fits(const Operand& result, const c10::Type& type) {
  if (std::holds_alternative<ValueId>(result)) return is_tensor(type);
  if (std::holds_alternative<ValueList>(result)) return is_tensor_list(type);
  return std::get<c10::IValue>(result).isNone();
}

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view stage)
      : graph_(graph), stage_(stage), definition_(graph.values.size(), Definition::None) {}

  void run() {
    for (const GraphInput& input : graph_.inputs) check_input(input);
    for (const Node& node : graph_.nodes) check_node(node);
    for (const GraphOutput& output : graph_.outputs) {
      if (output.value) check_defined(*output.value, nullptr);
    }
    check_roles(graph_.inputs, "inputs");
    check_roles(graph_.outputs, "outputs");
    if (overwrites_) check_overwrites();
  }

 private:
  void check_input(const GraphInput& input) {
    define(input.value, primal_of(input.role) ? Definition::Primal : Definition::OtherInput,
           nullptr);
  }

  void check_node(const Node& node) {
    const auto& schema = node.op.schema();
    if (node.args.size() != schema.arguments().size()) {
      fail(&node, fmt::format(
                      "a node has one operand for each argument of the schema: expected {}, got {}",
                      schema.arguments().size(), node.args.size()));
    }
    if (node.results.size() != schema.returns().size()) {
      fail(&node,
           fmt::format("a node has one operand for each return of the schema: expected {}, got {}",
                       schema.returns().size(), node.results.size()));
    }
    for (size_t i = 0; i < node.args.size(); ++i) check_argument(node, i, schema.arguments()[i]);
    for_each_read(node, [&](ValueId value) { check_read(value, node); });
    const Definition kind =
        node.phase == Phase::Backward ? Definition::BackwardNode : Definition::ForwardNode;
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (!result_fits(node.results[i], *schema.returns()[i].real_type())) {
        fail(&node, fmt::format("a result is as the schema says: expected `{}` for result {}",
                                schema.returns()[i].real_type()->annotation_str(), i));
      }
    }
    for_each_definition(node, [&](ValueId value) { define(value, kind, &node); });
    overwrites_ = overwrites_ || node.overwrites.has_value();
  }

  void check_argument(const Node& node, size_t index, const c10::Argument& parameter) {
    if (parameter.alias_info() && parameter.alias_info()->isWrite()) {
      fail(&node,
           fmt::format("no node mutates: the schema writes argument `{}`", parameter.name()));
    }
    if (operand_fits(node.args[index], *parameter.real_type())) return;
    const auto* literal = std::get_if<c10::IValue>(&node.args[index]);
    if (literal && literal->isTensor()) {
      fail(&node, fmt::format("a literal tensor is a zero-dimensional CPU constant: argument `{}` "
                              "is another tensor",
                              parameter.name()));
    }
    fail(&node,
         fmt::format("an operand is as the schema says: expected `{}` for argument `{}`, got {}",
                     parameter.real_type()->annotation_str(), parameter.name(),
                     literal ? "a literal `" + literal->tagKind() + "`"
                     : std::holds_alternative<ValueId>(node.args[index]) ? "a value"
                                                                         : "a list of values"));
  }

  void define(ValueId value, Definition kind, const Node* node) {
    check_in_table(value, node);
    Definition& definition = definition_[value.index];
    if (definition != Definition::None)
      fail(node, fmt::format("a value is defined once: %{}", value.index));
    definition = kind;
    const TensorType& type = graph_.values[value.index];
    if (type.sizes.size() != type.strides.size()) {
      fail(node, fmt::format("a type has as many strides as sizes: %{}", value.index));
    }
  }

  void check_read(ValueId value, const Node& node) {
    check_defined(value, &node);
    if (node.phase == Phase::Forward && definition_[value.index] == Definition::BackwardNode) {
      fail(&node,
           fmt::format("no forward node reads what a backward node defines: %{}", value.index));
    }
  }

  void check_defined(ValueId value, const Node* node) {
    check_in_table(value, node);
    if (definition_[value.index] == Definition::None) {
      fail(node, fmt::format("a value is defined before it is read: %{}", value.index));
    }
  }

  void check_in_table(ValueId value, const Node* node) {
    if (value.index >= graph_.values.size()) {
      fail(node, fmt::format("a value is in the table of {} values: %{}", graph_.values.size(),
                             value.index));
    }
  }

  template <class Ports>
  void check_roles(const Ports& ports, std::string_view side) {
    std::vector<uint64_t> keys;
    for (const auto& port : ports) keys.push_back(role_key(port.role));
    std::sort(keys.begin(), keys.end());
    const auto repeated = std::adjacent_find(keys.begin(), keys.end());
    if (repeated == keys.end()) return;
    const auto first = std::find_if(ports.begin(), ports.end(), [&](const auto& port) {
      return role_key(port.role) == *repeated;
    });
    fail(nullptr, fmt::format("no two {} have one role: `{}`", side, to_text(first->role)));
  }

  // ---- a number for each role
  static uint64_t number_of(UserInput role) { return role.input.index; }
  static uint64_t number_of(Lifted role) { return role.input.index; }
  static uint64_t number_of(ViewBase role) { return role.input.index; }
  static uint64_t number_of(Memory role) { return role.input.index; }
  static uint64_t number_of(UserOutput role) { return role.output.index; }
  static uint64_t number_of(MutatedInput role) { return role.of.index; }
  static uint64_t number_of(IntermediateBase role) { return role.base.index; }
  static uint64_t number_of(Grad role) { return role.of.index; }
  static uint64_t number_of(Saved role) { return role.value.index; }
  static uint64_t number_of(LateInput role) { return role.input.index; }
  static uint64_t number_of(LateWrite role) { return role.of.index; }
  static uint64_t number_of(const Tangent& role) { return number_of(role.of); }
  static uint64_t number_of(const TangentWrite& role) { return number_of(role.of); }
  static uint64_t number_of(const Differentiable& of) {
    constexpr int kIndexBits = 32;
    const uint64_t number = std::visit([](const auto& one) { return number_of(one); }, of);
    return number | static_cast<uint64_t>(of.index()) << kIndexBits;
  }

  template <class Role>
  static uint64_t role_key(const Role& role) {
    constexpr int kNumberBits = 40;  // an index, and which kind of output a tangent is of
    const uint64_t number = std::visit([](const auto& one) { return number_of(one); }, role);
    return number | static_cast<uint64_t>(role.index()) << kNumberBits;
  }

  // ---- overwrites
  void check_overwrites() {
    std::vector<bool> read_later(graph_.values.size());
    for (const GraphOutput& output : graph_.outputs) {
      if (output.value) read_later[output.value->index] = true;
    }
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (node->overwrites) check_overwritten(*node, read_later);
      for_each_read(*node, [&](ValueId value) { read_later[value.index] = true; });
    }
  }

  void check_overwritten(const Node& node, const std::vector<bool>& read_later) {
    const auto* value = *node.overwrites < node.args.size()
                            ? std::get_if<ValueId>(&node.args[*node.overwrites])
                            : nullptr;
    if (!value)
      fail(&node,
           fmt::format("`overwrites` names an argument that is a value: {}", *node.overwrites));
    if (read_later[value->index]) {
      fail(&node,
           fmt::format("`overwrites` names a value that nothing reads later: %{}", value->index));
    }
    if (definition_[value->index] == Definition::Primal) {
      fail(&node,
           fmt::format("`overwrites` does not name a tensor of the caller: %{}", value->index));
    }
  }

  [[noreturn]] void fail(const Node* node, const std::string& rule) const {
    TORCH_CHECK(false, "graph after `", stage_, "`: ", rule,
                node ? ", at `" + node_text(*node) + "`" : "", "\n", graph_text());
  }

  static std::string node_text(const Node& node) {
    std::vector<at::Generator> generators;
    try {
      return call_to_text(node.op, node.args, generators);
    } catch (const c10::Error&) {  // a literal that has no text
      return operator_text(node.op);
    }
  }

  std::string graph_text() const {
    try {
      return print_graph(graph_);
    } catch (const c10::Error& error) {
      return std::string("(no text: ") + error.what_without_backtrace() + ")";
    }
  }

  const Graph& graph_;
  std::string_view stage_;
  std::vector<Definition> definition_;  // by ValueId
  bool overwrites_ = false;
};

}  // namespace

void verify(const Graph& graph, std::string_view stage) { Verifier(graph, stage).run(); }

}  // namespace foregrad
