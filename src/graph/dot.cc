#include "graph/dot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace foregrad {
namespace {

constexpr std::string_view kForwardColour = "#dbe9f6";
constexpr std::string_view kBackwardColour = "#fde3cf";
constexpr std::string_view kSavedColour = "#2a7f3f";
constexpr std::string_view kPlainColour = "#555555";

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

class Picture {
 public:
  explicit Picture(const Graph& graph)
      : graph_(graph), source_(graph.values.size()), saved_(graph.values.size()) {}

  std::string draw(std::string_view title) {
    text_ =
        fmt::format("digraph {} {{\n  rankdir=TB;\n  node [fontname=\"monospace\", fontsize=10];\n",
                    quoted_text(title));
    mark_saved();
    for (size_t i = 0; i < graph_.inputs.size(); ++i) draw_input(i);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) draw_node(i);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) draw_output(i);
    return std::move(text_) + "}\n";
  }

 private:
  void mark_saved() {
    for (const GraphInput& input : graph_.inputs) {
      if (std::holds_alternative<Saved>(input.role)) saved_.at(input.value.index) = true;
    }
    for (const GraphOutput& output : graph_.outputs) {
      if (output.value && std::holds_alternative<Saved>(output.role))
        saved_.at(output.value->index) = true;
    }
  }

  void draw_input(size_t i) {
    const GraphInput& input = graph_.inputs[i];
    const std::string name = fmt::format("in{}", i);
    source_.at(input.value.index) = name;
    draw_box(name, fmt::format("{}\n{}", to_text(input.role), typed(input.value)), "ellipse",
             belongs_to_backward(input.role) ? kBackwardColour : kForwardColour);
  }

  void draw_node(size_t i) {
    const Node& node = graph_.nodes[i];
    const std::string name = fmt::format("n{}", i);
    std::string label = operator_text(node.op);
    for_each_definition(node, [&](ValueId value) {
      source_.at(value.index) = name;
      label += '\n' + typed(value);
    });
    draw_box(name, label, "box", node.phase == Phase::Backward ? kBackwardColour : kForwardColour);
    for_each_read(node, [&](ValueId value) { draw_edge(value, name); });
  }

  void draw_output(size_t i) {
    const GraphOutput& output = graph_.outputs[i];
    const std::string name = fmt::format("out{}", i);
    const std::string label = to_text(output.role) + (output.value ? "" : "\nundefined");
    draw_box(name, label, "ellipse",
             std::holds_alternative<Grad>(output.role) ? kBackwardColour : kForwardColour);
    if (output.value) draw_edge(*output.value, name);
  }

  void draw_box(std::string_view name, std::string_view label, std::string_view shape,
                std::string_view colour) {
    text_ += fmt::format("  {} [label={}, shape={}, style=filled, fillcolor=\"{}\"];\n", name,
                         quoted_text(label), shape, colour);
  }

  void draw_edge(ValueId value, std::string_view target) {
    const std::string& source = source_.at(value.index);
    const bool saved = saved_.at(value.index);
    // A broken graph is drawn too: the value that nothing defines is a box of its own.
    text_ +=
        fmt::format("  {} -> {} [label=\"%{}\", color=\"{}\"{}];\n",
                    source.empty() ? fmt::format("undefined{}", value.index) : source, target,
                    value.index, saved ? kSavedColour : kPlainColour, saved ? ", penwidth=2" : "");
  }

  std::string typed(ValueId value) const {
    return fmt::format("%{}: {}", value.index, to_text(graph_.type(value)));
  }

  const Graph& graph_;
  std::vector<std::string> source_;  // by ValueId: the box that defines it
  std::vector<bool> saved_;          // by ValueId
  std::string text_;
};

}  // namespace

std::string to_dot(const Graph& graph, std::string_view title) {
  return Picture(graph).draw(title);
}

}  // namespace foregrad
