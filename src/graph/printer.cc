#include "graph/printer.h"

#include <ATen/core/function_schema.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/literal.h"

namespace foregrad {
namespace {

std::string list_text(const ValueList& list) {
  std::string text = "[";
  for (const auto& entry : list) {
    if (text.size() > 1) text += ", ";
    text += entry ? fmt::format("%{}", entry->index) : "none";
  }
  return text + "]";
}

std::string operand_text(const Operand& operand, const c10::Argument* parameter,
                         std::vector<at::Generator>& generators) {
  if (const auto* value = std::get_if<ValueId>(&operand)) return fmt::format("%{}", value->index);
  if (const auto* list = std::get_if<ValueList>(&operand)) return list_text(*list);
  const auto& literal = std::get<c10::IValue>(operand);
  return parameter ? literal_to_text(literal, *parameter->real_type(), generators)
                   : literal_to_text(literal, generators);
}

bool is_default(const Operand& operand, const c10::Argument& parameter) {
  const auto* literal = std::get_if<c10::IValue>(&operand);
  return literal && parameter.default_value() &&
         literals_equal(*literal, *parameter.default_value());
}

class GraphPrinter {
 public:
  GraphPrinter(const Graph& graph, std::vector<at::Generator>& generators)
      : graph_(graph), generators_(generators) {}

  std::string run() {
    text_ = "graph {\n";
    for (const GraphInput& input : graph_.inputs) {
      text_ += fmt::format("  input {} = {}\n", definition(input.value), to_text(input.role));
    }
    for (const Node& node : graph_.nodes) write_node(node);
    for (const GraphOutput& output : graph_.outputs) {
      const std::string value =
          output.value ? fmt::format("%{}", output.value->index) : "undefined";
      text_ += fmt::format("  output {} = {}\n", value, to_text(output.role));
    }
    return std::move(text_) + "}\n";
  }

 private:
  void write_node(const Node& node) {
    std::vector<std::string> results;
    for (const Operand& result : node.results) results.push_back(result_text(result));
    text_ += fmt::format("  {}{} = {}", node.phase == Phase::Backward ? "backward " : "",
                         results.empty() ? "()" : fmt::format("{}", fmt::join(results, ", ")),
                         call_to_text(node.op, node.args, generators_));
    if (node.overwrites) text_ += fmt::format(" overwrites {}", *node.overwrites);
    text_ += '\n';
  }

  std::string result_text(const Operand& result) const {
    if (const auto* value = std::get_if<ValueId>(&result)) return definition(*value);
    const auto* list = std::get_if<ValueList>(&result);
    if (!list) return "undefined";
    std::vector<std::string> entries;
    for (const auto& entry : *list) entries.push_back(entry ? definition(*entry) : "undefined");
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }

  std::string definition(ValueId value) const {
    // An id beyond the table breaks a rule of the IR, but the verifier prints such graphs too.
    const bool known = value.index < graph_.values.size();
    return fmt::format("%{}: {}", value.index, known ? to_text(graph_.type(value)) : "unknown");
  }

  const Graph& graph_;
  std::vector<at::Generator>& generators_;
  std::string text_;
};

}  // namespace

std::string print_graph(const Graph& graph) {
  std::vector<at::Generator> generators;
  return print_graph(graph, generators);
}

std::string print_graph(const Graph& graph, std::vector<at::Generator>& generators) {
  return GraphPrinter(graph, generators).run();
}

std::string call_to_text(const c10::OperatorHandle& op, const std::vector<Operand>& args,
                         std::vector<at::Generator>& generators) {
  const auto& parameters = op.schema().arguments();
  std::string text = operator_text(op) + "(";
  bool follows_gap = false;
  bool is_first = true;
  for (size_t i = 0; i < args.size(); ++i) {
    const c10::Argument* parameter = i < parameters.size() ? &parameters[i] : nullptr;
    if (parameter && is_default(args[i], *parameter)) {
      follows_gap = true;
      continue;
    }
    if (!is_first) text += ", ";
    is_first = false;
    const bool is_literal = std::holds_alternative<c10::IValue>(args[i]);
    if (parameter && (is_literal || follows_gap)) text += parameter->name() + "=";
    text += operand_text(args[i], parameter, generators);
  }
  return text + ")";
}

}  // namespace foregrad
