#include "graph/metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/literal.h"

namespace foregrad {
namespace {

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
  if (info.view_of) flags.push_back(fmt::format("view of input {}", info.view_of->index));
  if (info.memory) flags.push_back(fmt::format("in the memory of input {}", info.memory->index));
  add(info.retains_grad, "retains its gradient");
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
  return fmt::format("shares the memory of base {}, made as %{}", origin.base.index,
                     origin.slot.index);
}
std::string origin_text(const ViewOfInput& origin) {
  return fmt::format("shares the memory of input {}, made as %{}", origin.input.index,
                     origin.slot.index);
}

}  // namespace

std::vector<OutputRole> ViewAndMutationMeta::forward_outputs() const {
  std::vector<OutputRole> roles;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_written_back()) roles.emplace_back(MutatedInput{{i}});
  }
  for (uint32_t b = 0; b < bases.size(); ++b) {
    if (bases[b].is_computed) roles.emplace_back(IntermediateBase{{b}});
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].is_computed()) roles.emplace_back(UserOutput{{o}});
  }
  return roles;
}

std::vector<Differentiable> ViewAndMutationMeta::tangents() const {
  std::vector<Differentiable> roles;
  for (const Effect& effect : effects) {
    if (const auto* join = std::get_if<JoinHistory>(&effect)) roles.push_back(join->as);
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].takes_tangent()) roles.emplace_back(UserOutput{{o}});
  }
  return roles;
}

std::vector<Differentiable> ViewAndMutationMeta::visible() const {
  std::vector<Differentiable> roles;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const InputInfo& info = inputs[i];
    const bool is_tensor = info.span.type.sizes.empty();  // no memory
    if (is_tensor && !info.hidden_from_autograd && info.requires_grad_after && !info.is_leaf_after)
      roles.emplace_back(MutatedInput{{i}});
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    const OutputOrigin& origin = outputs[o].origin;
    const bool is_view = std::holds_alternative<ViewOfInput>(origin) ||
                         std::holds_alternative<ViewOfIntermediate>(origin);
    const bool is_made = outputs[o].is_computed() || (is_view && !outputs[o].is_leaf);
    if (is_made && outputs[o].requires_grad) roles.emplace_back(UserOutput{{o}});
  }
  return roles;
}

bool ViewAndMutationMeta::keeps_pre_mutation_value(InputIndex input) const {
  const InputInfo& info = inputs.at(input.index);
  return info.data_mutated && info.requires_grad;
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
    text += fmt::format(
        "output {}: {}{}{}{}{}\n", o, is_defined ? to_text(info.type) + ", " : "",
        std::visit([](const auto& origin) { return origin_text(origin); }, info.origin),
        info.requires_grad ? ", requires grad" : "",
        info.retains_grad ? ", retains its gradient" : "", info.is_hidden ? ", for hooks" : "");
  }
  for (size_t b = 0; b < meta.bases.size(); ++b) {
    text += fmt::format("base {}: %{}{}\n", b, meta.bases[b].slot.index,
                        meta.bases[b].is_computed ? ", computed" : "");
  }
  for (const Effect& effect : meta.effects) text += "then " + to_text(effect) + "\n";
  for (const VisibleHook& hook : meta.hooks) {
    const auto* output = std::get_if<OutputIndex>(&hook.tensor);
    text += output ? fmt::format("hook {} on output {}\n", hook.hook, output->index)
                   : fmt::format("hook {} on input {}{}\n", hook.hook,
                                 std::get<InputIndex>(hook.tensor).index,
                                 hook.is_first ? " as it comes" : "");
  }
  return text;
}

}  // namespace foregrad
