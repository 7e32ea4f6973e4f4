#include "cli/fuzz/cpp_printer.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <string_view>
#include <utility>

#include "cli/fuzz/cpp_skeleton.h"
#include "cli/fuzz/custom_functions.h"

namespace foregrad::cli::fuzz {
namespace {

/// Names the values of one section.
class Names {
 public:
  void add(std::string name, bool is_list = false) {
    names_.push_back(std::move(name));
    is_list_.push_back(is_list);
  }

  std::string of(Ref ref) const {
    if (ref.value >= names_.size()) return "missing";
    return is_list_[ref.value] ? fmt::format("{}[{}]", names_[ref.value], ref.part)
                               : names_[ref.value];
  }

  const std::string& last() const { return names_.back(); }

 private:
  std::vector<std::string> names_;
  std::vector<bool> is_list_;
};

std::string list_text(const std::vector<int64_t>& list) {
  return list.empty() ? "at::IntArrayRef()"
                      : fmt::format("at::IntArrayRef({{{}}})", fmt::join(list, ", "));
}

std::string type_text(int64_t type) {
  return fmt::format("at::ScalarType::{}", c10::toString(static_cast<c10::ScalarType>(type)));
}

/// Takes `name[i]` or `name(n[i])` off the front of `rest` and returns `i`, or -1 if it is not
/// there.
int take_indexed(std::string_view& rest, std::string_view before, std::string_view after) {
  if (!rest.starts_with(before) || rest.size() < before.size() + 1 + after.size()) return -1;
  const char digit = rest[before.size()];
  if (std::isdigit(static_cast<unsigned char>(digit)) == 0) return -1;
  rest.remove_prefix(before.size() + 1 + after.size());
  return digit - '0';
}

/// Writes operands and parameters into the expression of the operation.
std::string expression_text(const Instruction& instruction, const Names& names) {
  const Parameters& parameters = instruction.parameters;
  std::string text;
  for (std::string_view rest = instruction.operation->expression; !rest.empty();) {
    const char previous = text.empty() ? ' ' : text.back();
    const bool begins_word = std::isalnum(static_cast<unsigned char>(previous)) == 0;
    if (const int i = begins_word ? take_indexed(rest, "x[", "]") : -1; i >= 0) {
      text += names.of(instruction.operands[static_cast<size_t>(i)]);
    } else if (const int type = take_indexed(rest, "at::ScalarType(n[", "])"); type >= 0) {
      text += type_text(parameters.numbers[static_cast<size_t>(type)]);
    } else if (const int n = begins_word ? take_indexed(rest, "n[", "]") : -1; n >= 0) {
      text += std::to_string(parameters.numbers[static_cast<size_t>(n)]);
    } else if (begins_word && rest.starts_with("shape")) {
      text += list_text(parameters.shape);
      rest.remove_prefix(5);
    } else if (begins_word && rest.starts_with("steps")) {
      text += list_text(parameters.steps);
      rest.remove_prefix(5);
    } else {
      text += rest.front();
      rest.remove_prefix(1);
    }
  }
  return text;
}

const char* type_of(const Instruction& instruction) {
  return instruction.operation->is_list ? "Tensors" : "at::Tensor";
}

std::string modes_text(Modes modes) {
  std::string text;
  if (modes.recording != Recording::AsBefore)
    text += fmt::format("    const at::AutoGradMode mode({});\n", modes.recording == Recording::On);
  if (modes.autocast != Autocast::AsBefore)
    text += fmt::format("    const Autocast autocast({});\n", modes.autocast == Autocast::On);
  return text;
}

/// Writes instructions as statements and names their results. Neighbours under the same modes share
/// a block, before which their results are declared.
std::string statements(const std::vector<Instruction>& instructions, Names& names,
                       const std::string& prefix) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < instructions.size(); begin = end) {
    const Modes modes = instructions[begin].modes;
    std::string declarations;
    std::string block;
    for (end = begin; end < instructions.size() && instructions[end].modes == modes; ++end) {
      const Instruction& instruction = instructions[end];
      const std::string expression = expression_text(instruction, names);
      names.add(fmt::format("{}{}", prefix, end), instruction.operation->is_list);
      declarations += fmt::format("  {} {};\n", type_of(instruction), names.last());
      block += modes == Modes()
                   ? fmt::format("  {} {} = {};\n", type_of(instruction), names.last(), expression)
                   : fmt::format("    {} = {};\n", names.last(), expression);
    }
    text += modes == Modes()
                ? block
                : fmt::format("{}  {{\n{}{}  }}\n", declarations, modes_text(modes), block);
  }
  return text;
}

std::string refs_text(const std::vector<Ref>& refs, const Names& names) {
  std::vector<std::string> texts;
  for (const Ref ref : refs) texts.push_back(names.of(ref));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string function_text(const Program& program) {
  Names names;
  for (size_t i = 0; i < program.inputs.arguments.size(); ++i) names.add(fmt::format("x[{}]", i));
  const std::string body = statements(program.body.instructions, names, "v");
  return fmt::format("Tensors function(const Tensors& x) {{\n{}  return {{{}}};\n}}\n", body,
                     refs_text(program.body.outputs, names));
}

std::string inputs_text(const Inputs& inputs, const char* name) {
  Names names;
  std::string text;
  std::string visible;
  for (size_t i = 0; i < inputs.bases.size(); ++i) {
    const Base& base = inputs.bases[i];
    names.add(fmt::format("b{}", i));
    text += fmt::format("  at::Tensor b{} = data({}, {}, seed + {}){};\n", i, list_text(base.sizes),
                        type_text(static_cast<int64_t>(base.type)), i,
                        base.requires_grad ? ".set_requires_grad(true)" : "");
    visible += fmt::format("  add(prepared.visible, b{});\n", i);
  }
  text += statements(inputs.setup, names, "s");
  for (size_t i = 0; i < inputs.setup.size(); ++i) {
    visible += fmt::format("  add(prepared.visible, s{});\n", i);
  }
  return fmt::format(
      "Prepared {}([[maybe_unused]] int64_t seed) {{\n{}  Prepared prepared;\n{}  "
      "prepared.arguments = {{{}}};\n  return prepared;\n}}\n",
      name, text, visible, refs_text(inputs.arguments, names));
}

constexpr const char* kHistory =
    "  Nodes history;\n"
    "  for (const at::Tensor& tensor : prepared.visible) history.push_back(history_of(tensor));\n";
constexpr const char* kShow = "  show_all(out, prepared, outputs, gradients);\n";

std::string writes_text(const Program& program) {
  if (program.writes.empty()) return "";
  Names names;
  for (size_t i = 0; i < program.body.outputs.size(); ++i) names.add(fmt::format("outputs[{}]", i));
  for (size_t i = 0; i < program.inputs.arguments.size(); ++i) {
    names.add(fmt::format("prepared.arguments[{}]", i));
  }
  return "  out << \"after the caller's writes\\n\";\n" + statements(program.writes, names, "w") +
         kShow;
}

std::string watches_text(const Program& program) {
  if (program.watches.empty()) return "";
  std::string text;
  const size_t outputs = program.body.outputs.size();
  for (const Watch& watch : program.watches) {
    const std::string name = watch.value < outputs
                                 ? fmt::format("outputs[{}]", watch.value)
                                 : fmt::format("prepared.arguments[{}]", watch.value - outputs);
    text += fmt::format("  watch({}, {});\n", name, watch.kind == Watch::Kind::RetainGrad);
  }
  return text + "  out << \"after the caller's hooks\\n\";\n" + kShow;
}

std::string backward_text(const Backward& backward, bool is_followed) {
  const char tangent = backward.tangent == Backward::Tangent::Expanded ? 'e'
                       : backward.tangent == Backward::Tangent::Varied ? 'v'
                                                                       : 'o';
  const std::string inputs =
      backward.kind == Backward::Kind::Grad
          ? fmt::format("differentiable(prepared.visible, history, outputs, {})",
                        backward.order == 1)
          : "{}";
  const std::string order = backward.order == 1 ? ""
                                                : fmt::format(", {}, {}", backward.order,
                                                              backward.differentiates_tangents);
  return fmt::format(
      "  out << \"after backward\\n\";\n{}  gradients = differentiate(outputs, {{{}}}, '{}', {}, "
      "{}{});\n{}{}",
      backward.is_autocast ? "  {\n    const Autocast autocast(true);\n" : "",
      fmt::join(backward.outputs, ", "), tangent, is_followed, inputs, order,
      backward.is_autocast ? "  }\n" : "", kShow);
}

std::string caller_text(const Program& program) {
  std::string backwards;
  for (size_t i = 0; i < program.backwards.size(); ++i) {
    backwards += backward_text(program.backwards[i], i + 1 < program.backwards.size());
  }
  const auto in_calls = [&](const auto& has) {
    const bool first = has(program.inputs);
    const bool other = program.calls == 3 ? has(program.other) : first;
    if (first == other) return fmt::format("{}", first);
    return std::string(first ? "call != 3" : "call == 3");
  };
  const auto in_mode = [&](CallMode mode) {
    return in_calls([=](const Inputs& inputs) { return inputs.mode == mode; });
  };
  const std::string autocast = in_calls(std::mem_fn(&Inputs::is_autocast));
  const std::string autocast_text =
      autocast == "false" ? "" : fmt::format("    const Autocast autocast({});\n", autocast);
  const std::string inference = in_mode(CallMode::Inference);
  const std::string inference_text = inference == "false"
                                         ? ""
                                         : fmt::format(
                                               "    std::optional<c10::InferenceMode> inference;\n"
                                               "    if ({}) inference.emplace();\n",
                                               inference);
  const bool needs_history = std::ranges::any_of(
      program.backwards, [](const auto& b) { return b.kind == Backward::Kind::Grad; });
  return fmt::format(
      "void caller(std::ostream& out, const Function& called, const Prepared& prepared, int call, "
      "[[maybe_unused]] bool is_between = false) {{\n{}"
      "  Tensors outputs;\n"
      "  Tensors gradients;\n"
      "  torch::manual_seed(call * 10);\n"
      "  {{\n"
      "    const at::AutoGradMode mode({});\n{}{}"
      "    outputs = called(prepared.arguments);\n"
      "  }}\n"
      "  out << \"after the call\\n\";\n{}{}{}{}{}{}}}\n",
      needs_history ? kHistory : "", in_mode(CallMode::Grad), autocast_text, inference_text, kShow,
      watches_text(program),
      program.is_interleaved
          ? "  if (!is_between) caller(out, called, inputs_of(call, 5), call, true);\n"
          : "",
      program.writes_before_backward ? writes_text(program) : "", backwards,
      program.writes_before_backward ? "" : writes_text(program));
}

}  // namespace

std::string to_cpp_fragment(const Program& program) {
  const bool has_other = program.calls == 3;
  const std::string inputs = inputs_text(program.inputs, "inputs");
  const std::string other = has_other ? inputs_text(program.other, "other_inputs") + "\n" : "";
  return fmt::format(
      "{}\n{}\n{}constexpr int kCalls = {};\n\n"
      "Prepared inputs_of(int call, int more = 0) {{ return {}inputs(call * 10 + more); }}\n\n{}",
      function_text(program), inputs, other, program.calls,
      has_other ? "call == 3 ? other_inputs(call * 10 + more) : " : "", caller_text(program));
}

std::string to_cpp(const Program& program, const std::string& comment) {
  std::string text;
  for (std::string_view rest = comment; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    text += fmt::format("// {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text + kSkeletonBegin + "\n" + kCustomFunctions + "\n" + kHooks + "\n" +
         to_cpp_fragment(program) + kSkeletonEnd;
}

}  // namespace foregrad::cli::fuzz
