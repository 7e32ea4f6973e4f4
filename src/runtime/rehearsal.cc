#include "runtime/rehearsal.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "graph/alias.h"
#include "runtime/epilogue.h"

namespace foregrad {

namespace {

/// Stands for the compiled call, and for the history that inputs come with. Never runs.
struct RehearsedNode final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*grads*/) override {
    return {};
  }
  std::string name() const override { return "ForegradRehearsal"; }
};

constexpr size_t kAmple = size_t{1} << 50U;  // bytes of a storage without data

c10::TensorOptions meta_options(at::ScalarType dtype) {
  return c10::TensorOptions().device(c10::kMeta).dtype(dtype);
}

bool is_trivial(const ViewAndMutationMeta& meta) {
  return std::ranges::all_of(meta.effects,
                             [&](const Effect& effect) {
                               const bool is_plain =
                                   std::holds_alternative<AdvanceVersion>(effect) ||
                                   std::holds_alternative<JoinHistory>(effect);
                               return is_plain && meta.slot_count == meta.inputs.size();
                             }) &&
         std::ranges::all_of(meta.inputs,
                             [](const InputInfo& info) { return info.is_graph_input(); });
}

class Rehearsal {
 public:
  explicit Rehearsal(const ViewAndMutationMeta& meta) : meta_(meta), slots_(meta.slot_count) {}

  std::optional<std::string> run(std::span<const TensorType> base_types) {
    const auto place_all = [&](bool views) {
      for (uint32_t i = 0; i < meta_.inputs.size(); ++i) {
        if (meta_.inputs[i].view_of.has_value() == views) place(i);
      }
    };
    place_all(false);
    place_all(true);
    for (const at::Tensor& slot : slots_) versions_.push_back(slot.defined() ? slot._version() : 0);
    for (size_t b = 0; b < meta_.bases.size(); ++b) {
      if (!meta_.bases[b].is_computed) continue;
      const TensorType& type = base_types[b];
      slots_[meta_.bases[b].slot.index] =
          at::empty_strided(type.sizes, type.strides, meta_options(type.dtype));
    }
    const auto node = c10::make_intrusive<RehearsedNode>();
    bring_about(meta_, slots_,
                [&](const Differentiable&, const at::Tensor& tensor) -> torch::autograd::Edge {
                  return {node, node->add_input_metadata(tensor)};
                });
    std::vector<at::Tensor> outputs(meta_.outputs.size());
    take_aliases(meta_, slots_, outputs);
    for (uint32_t i = 0; i < meta_.inputs.size(); ++i) {
      if (auto difference = compare_input(i)) return difference;
    }
    for (uint32_t o = 0; o < outputs.size(); ++o) {
      if (auto difference = compare_output(o, outputs[o])) return difference;
    }
    return std::nullopt;
  }

 private:
  void place(uint32_t i) {
    const InputInfo& info = meta_.inputs[i];
    at::Tensor tensor;
    if (info.view_of) {
      tensor = alias_of(slots_[info.view_of->index], info.type,
                        offset_between(meta_.inputs[info.view_of->index].type, info.type),
                        info.creation_meta);
    } else {
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      auto [storage, is_new] = storages_.try_emplace(info.storage_before);
      if (is_new) {
        storage->second = at::empty({0}, meta_options(info.type.dtype)).storage();
        storage->second.set_nbytes(kAmple);
      }
      tensor = tensor_over(storage->second, info.type);
      if (info.requires_grad && info.is_leaf) tensor.unsafeGetTensorImpl()->set_requires_grad(true);
    }
    if (!info.view_of && info.requires_grad && !info.is_leaf)
      torch::autograd::create_gradient_edge(tensor, c10::make_intrusive<RehearsedNode>());
    if (info.counter != i && slots_[info.counter].defined()) {
      tensor.unsafeGetTensorImpl()->set_version_counter(
          slots_[info.counter].unsafeGetTensorImpl()->version_counter());
    }
    slots_[i] = std::move(tensor);
  }

  std::optional<std::string> compare_input(uint32_t i) {
    const InputInfo& info = meta_.inputs[i];
    const std::string what = fmt::format("input {}", i);
    const auto advance = static_cast<uint32_t>(slots_[i]._version() - versions_[i]);
    if (advance != info.version_advance)
      return fmt::format("{}: version +{}, eager +{}", what, advance, info.version_advance);
    TensorType after = info.after;
    after.storage_offset = slots_[i].storage_offset();
    return compare(what, slots_[i], after, info.requires_grad_after, info.is_leaf_after,
                   info.storage_after);
  }

  std::optional<std::string> compare_output(uint32_t o, const at::Tensor& output) {
    const OutputInfo& info = meta_.outputs[o];
    const bool is_made = std::holds_alternative<ViewOfInput>(info.origin) ||
                         std::holds_alternative<ViewOfIntermediate>(info.origin);
    const std::string what = fmt::format("output {}", o);
    if (!is_made) return std::nullopt;
    if (!output.defined()) return fmt::format("{}: it can't be made again", what);
    if (output.is_view() != info.is_view)
      return fmt::format("{}: a view {}, in eager {}", what, output.is_view(), info.is_view);
    if (output._version() != info.version)
      return fmt::format("{}: version {}, in eager {}", what, output._version(), info.version);
    TensorType type = info.type;
    // The offsets of the trace count otherwise than the caller's.
    type.storage_offset = output.storage_offset();
    return compare(what, output, type, info.requires_grad, info.is_leaf, info.storage);
  }

  std::optional<std::string> compare(const std::string& what, const at::Tensor& tensor,
                                     const TensorType& type, bool requires_grad, bool is_leaf,
                                     uint32_t storage) {
    TensorType made = type_of(tensor);
    made.device = type.device;
    if (made != type)
      return fmt::format("{}: `{}`, in eager `{}`", what, to_text(made), to_text(type));
    if (tensor.requires_grad() != requires_grad || tensor.is_leaf() != is_leaf) {
      return fmt::format("{}: requires grad {}, leaf {}; in eager {}, {}", what,
                         tensor.requires_grad(), tensor.is_leaf(), requires_grad, is_leaf);
    }
    const void* own = tensor.storage().unsafeGetStorageImpl();
    if (storage_of_number_.try_emplace(storage, own).first->second != own ||
        number_of_storage_.try_emplace(own, storage).first->second != storage)
      return fmt::format("{}: it shares storage otherwise than in eager", what);
    return std::nullopt;
  }

  const ViewAndMutationMeta& meta_;
  std::vector<at::Tensor> slots_;
  std::vector<int64_t> versions_;
  std::map<uint32_t, c10::Storage> storages_;
  std::unordered_map<uint32_t, const void*> storage_of_number_;
  std::unordered_map<const void*, uint32_t> number_of_storage_;
};

}  // namespace

std::optional<std::string> rehearse(const ViewAndMutationMeta& meta,
                                    std::span<const TensorType> base_types) {
  if (is_trivial(meta)) return std::nullopt;
  try {
    return Rehearsal(meta).run(base_types);
  } catch (const std::exception& error) {
    return fmt::format("they can't be brought about: {}", error.what());
  }
}

}  // namespace foregrad
