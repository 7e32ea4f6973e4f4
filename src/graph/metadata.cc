#include "graph/metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/literal.h"

namespace foregrad {
namespace {

/// Compares two steps but for the numbers of their values, which differ between recordings of one
/// program.
bool steps_equal(const ViewStep& left, const ViewStep& right) {
  if (!(left.op.op == right.op.op) || left.self_argument != right.self_argument ||
      left.result != right.result || left.element != right.element ||
      left.op.args.size() != right.op.args.size()) {
    return false;
  }
  for (size_t i = 0; i < left.op.args.size(); ++i) {
    const Operand &a = left.op.args[i], &b = right.op.args[i];
    const bool both_values =
        std::holds_alternative<ValueId>(a) && std::holds_alternative<ValueId>(b);
    if (!both_values && !operands_equal(a, b)) return false;
  }
  return true;
}

std::string flags_text(const InputInfo& info) {
  std::vector<std::string> flags;
  const auto add = [&](bool holds, const char* flag) {
    if (holds) flags.emplace_back(flag);
  };
  add(info.requires_grad, "requires grad");
  add(!info.is_leaf, "not a leaf");
  add(info.data_mutated, "data mutated");
  add(info.metadata_mutated, "metadata mutated");
  add(info.storage_changed, "storage changed");
  add(info.hidden_from_autograd, "hidden from autograd");
  add(info.requires_grad_after != info.requires_grad,
      info.requires_grad_after ? "requires grad after" : "requires no grad after");
  if (info.version_advance != 0) flags.push_back(fmt::format("version +{}", info.version_advance));
  return flags.empty() ? "unchanged" : fmt::format("{}", fmt::join(flags, ", "));
}

std::string origin_text(const NewTensor&) { return "new tensor"; }
std::string origin_text(const UndefinedOutput&) { return "undefined"; }
std::string origin_text(const IsInput& origin) {
  return fmt::format("is input {}", origin.input.index);
}
std::string origin_text(const SameAsOutput& origin) {
  return fmt::format("same as output {}", origin.output.index);
}
std::string origin_text(const ViewOfIntermediate& origin) {
  return fmt::format("view of the intermediate of output {}", origin.first.index);
}
std::string origin_text(const ViewOfInput& origin) {
  if (origin.chain.empty())
    return fmt::format("view of input {} by as_strided", origin.input.index);
  std::vector<std::string> steps;
  for (const ViewStep& step : origin.chain) steps.push_back(to_text(step.op));
  return fmt::format("view of input {} by {}", origin.input.index, fmt::join(steps, ", then "));
}

}  // namespace

bool operator==(const ViewOfInput& left, const ViewOfInput& right) {
  if (left.input != right.input || left.chain.size() != right.chain.size()) return false;
  for (size_t i = 0; i < left.chain.size(); ++i) {
    if (!steps_equal(left.chain[i], right.chain[i])) return false;
  }
  return true;
}

std::vector<OutputRole> ViewAndMutationMeta::forward_outputs() const {
  std::vector<OutputRole> roles;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data_mutated) roles.emplace_back(MutatedInput{{i}});
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].is_computed()) roles.emplace_back(UserOutput{{o}});
  }
  return roles;
}

std::vector<Differentiable> ViewAndMutationMeta::tangents() const {
  std::vector<Differentiable> roles;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_tracked_write()) roles.emplace_back(MutatedInput{{i}});
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].takes_tangent()) roles.emplace_back(UserOutput{{o}});
  }
  return roles;
}

bool ViewAndMutationMeta::keeps_pre_mutation_value(InputIndex input) const {
  const InputInfo& info = inputs.at(input.index);
  return info.data_mutated && info.requires_grad;
}

bool ViewAndMutationMeta::needs_detach(OutputIndex output) const {
  const OutputInfo& info = outputs.at(output.index);
  const auto* view = std::get_if<ViewOfInput>(&info.origin);
  return view && !info.requires_grad && inputs.at(view->input.index).requires_grad_after;
}

std::string to_text(const ViewAndMutationMeta& meta) {
  std::string text;
  for (size_t i = 0; i < meta.inputs.size(); ++i) {
    text += fmt::format("input {}: {}, {}\n", i, to_text(meta.inputs[i].type),
                        flags_text(meta.inputs[i]));
  }
  for (size_t o = 0; o < meta.outputs.size(); ++o) {
    const OutputInfo& info = meta.outputs[o];
    const bool is_defined = !std::holds_alternative<UndefinedOutput>(info.origin);
    text +=
        fmt::format("output {}: {}{}{}\n", o, is_defined ? to_text(info.type) + ", " : "",
                    std::visit([](const auto& origin) { return origin_text(origin); }, info.origin),
                    info.requires_grad ? ", requires grad" : "");
  }
  return text;
}

}  // namespace foregrad
