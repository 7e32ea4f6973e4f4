#include "runtime/guards.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <bit>

namespace foregrad {

Surroundings Surroundings::now() {
  const auto& context = at::globalContext();
  return {.grad_mode = c10::GradMode::is_enabled(),
          .inference_mode = c10::InferenceMode::is_enabled(),
          .autocast_enabled = at::autocast::is_autocast_enabled(at::kCPU),
          .autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU),
          .default_dtype = c10::get_default_dtype_as_scalartype(),
          .deterministic = context.deterministicAlgorithms(),
          .mkldnn_enabled = context.userEnabledMkldnn(),
          .matmul_precision = static_cast<int>(context.float32MatmulPrecision()),
          .threads = at::get_num_threads()};
}

namespace {

/// The tensors of one call, arguments before lifted ones.
class Inputs {
 public:
  Inputs(std::span<const at::Tensor* const> arguments, std::span<const at::Tensor> lifted)
      : arguments_(arguments), lifted_(lifted) {}
  size_t size() const { return arguments_.size() + lifted_.size(); }
  const at::Tensor& operator[](size_t i) const {
    return i < arguments_.size() ? *arguments_[i] : lifted_[i - arguments_.size()];
  }

 private:
  std::span<const at::Tensor* const> arguments_;
  std::span<const at::Tensor> lifted_;
};

/// Says for each address which input had it first: a hash table with open addressing, at most
/// half full.
class FirstInputs {
 public:
  /// Forgets all. At most `input_count` addresses follow.
  void reset(size_t input_count) { slots_.assign(std::bit_ceil(2 * input_count), Slot{}); }
  /// Returns the input that had the address first: `input` itself if none had.
  uint32_t first(const void* address, uint32_t input) {
    const uint64_t spread = reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15;
    for (size_t i = spread >> 32;; ++i) {
      Slot& slot = slots_[i & (slots_.size() - 1)];
      if (!slot.address) slot = {address, input};
      if (slot.address == address) return slot.input;
    }
  }

 private:
  struct Slot {
    const void* address = nullptr;
    uint32_t input = 0;
  };
  std::vector<Slot> slots_;
};

/// Which earlier inputs an input is, or shares storage with; its own number if there is none.
struct Sharing {
  uint32_t same_tensor_as = 0;
  uint32_t shares_storage_with = 0;
  uint32_t family = 0;
  bool operator==(const Sharing&) const = default;
};

/// Returns autograd's facts of a view; null of a tensor that is none.
const torch::autograd::DifferentiableViewMeta* view_meta_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  return meta && meta->has_bw_view() ? meta : nullptr;
}

uint8_t view_number(const at::Tensor& tensor) {
  const auto* meta = view_meta_of(tensor);
  return meta ? static_cast<uint8_t>(1 + static_cast<uint8_t>(meta->get_creation_meta()))
              : uint8_t{0};
}

int64_t bytes_between(const at::Tensor& first, const at::Tensor& second) {
  const auto start = [](const at::Tensor& tensor) {
    return tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
  };
  return start(second) - start(first);
}

/// Finds the sharing of inputs that are shown to it in order: linear in their number. The thread
/// keeps the tables, so that a check allocates nothing; one finder at a time.
class SharingFinder {
 public:
  explicit SharingFinder(size_t input_count) {
    tables().tensors.reset(input_count);
    tables().storages.reset(input_count);
    tables().families.reset(input_count);
  }
  Sharing of_next(const at::Tensor& tensor, uint32_t input) {
    if (!tensor.defined()) return {input, input, input};
    const auto* view = view_meta_of(tensor);
    return {tables().tensors.first(tensor.unsafeGetTensorImpl(), input),
            tensor.has_storage() ? tables().storages.first(storage_identity(tensor), input) : input,
            tables().families.first(view ? view->get_backward_view().base_.unsafeGetTensorImpl()
                                         : tensor.unsafeGetTensorImpl(),
                                    input)};
  }

 private:
  struct Tables {
    FirstInputs tensors;
    FirstInputs storages;
    FirstInputs families;
  };
  static Tables& tables() {
    thread_local Tables tables;
    return tables;
  }
};

bool is_strided(const at::Tensor& tensor) { return tensor.layout() == at::kStrided; }

TensorGuard guard_of(const Inputs& inputs, uint32_t i, const Sharing& sharing) {
  const at::Tensor& tensor = inputs[i];
  TensorGuard guard{.defined = tensor.defined(),
                    .type = {},
                    .same_tensor_as = sharing.same_tensor_as,
                    .shares_storage_with = sharing.shares_storage_with,
                    .family = sharing.family};
  if (!tensor.defined()) return guard;
  if (is_strided(tensor)) guard.type = type_of(tensor);
  guard.keys = tensor.key_set().raw_repr();
  guard.requires_grad = tensor.requires_grad();
  guard.is_leaf = tensor.is_leaf();
  guard.view = view_number(tensor);
  if (is_strided(tensor)) guard.storage_bytes = static_cast<int64_t>(tensor.storage().nbytes());
  if (sharing.shares_storage_with != i) {
    const at::Tensor& first = inputs[sharing.shares_storage_with];
    guard.bytes_from_first = bytes_between(first, tensor);
    guard.has_counter_of_first =
        version_counter_identity(first) == version_counter_identity(tensor);
  }
  return guard;
}

bool has_type(const at::Tensor& tensor, const TensorType& type) {
  return tensor.scalar_type() == type.dtype && tensor.sizes() == at::IntArrayRef(type.sizes) &&
         tensor.strides() == at::IntArrayRef(type.strides);
}

std::string surroundings_text(const Surroundings& s) {
  return fmt::format(
      "grad mode {}, inference mode {}, autocast {}, default dtype {}, deterministic {}, oneDNN "
      "{}, matmul precision {}, "
      "{} threads",
      s.grad_mode, s.inference_mode, s.autocast_enabled ? c10::toString(s.autocast_dtype) : "off",
      c10::toString(s.default_dtype), s.deterministic, s.mkldnn_enabled, s.matmul_precision,
      s.threads);
}

std::string guard_text(const TensorGuard& guard, uint32_t i) {
  if (!guard.defined) return "undefined";
  std::string text = to_text(guard.type);
  if (guard.requires_grad) text += guard.is_leaf ? ", leaf that requires grad" : ", requires grad";
  if (guard.view != 0) text += ", view";
  if (guard.same_tensor_as != i) {
    text += fmt::format(", the same tensor as input {}", guard.same_tensor_as);
  } else if (guard.shares_storage_with != i) {
    text += fmt::format(", shares storage with input {}", guard.shares_storage_with);
    if (guard.position_matters) text += fmt::format(", {} bytes on", guard.bytes_from_first);
    if (!guard.has_counter_of_first) text += ", with a version counter of its own";
    if (guard.family != i) text += fmt::format(", of one base with input {}", guard.family);
  }
  return text;
}

}  // namespace

Guards::Guards(std::span<const at::Tensor* const> arguments, std::span<const at::Tensor> lifted,
               Offsets offsets, std::span<const InputInfo> metadata)
    : lifted_(lifted),
      argument_count_(arguments.size()),
      offsets_(offsets),
      surroundings_(Surroundings::now()) {
  const Inputs inputs(arguments, lifted);
  SharingFinder finder(inputs.size());
  std::vector<uint32_t> distinct;  // the numbers that the metadata counts
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    inputs_.push_back(guard_of(inputs, i, finder.of_next(inputs[i], i)));
    if (inputs_[i].defined && inputs_[i].same_tensor_as == i) distinct.push_back(i);
  }
  for (size_t k = 0; k < std::min(distinct.size(), metadata.size()); ++k) {
    if (!metadata[k].data_mutated && !metadata[k].storage_changed) continue;
    const uint32_t storage = inputs_[distinct[k]].shares_storage_with;
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].shares_storage_with == storage && i != storage)
        inputs_[i].position_matters = inputs_[i].defined;
    }
  }
  for (const InputInfo& info : metadata.subspan(std::min(distinct.size(), metadata.size()))) {
    // A memory may be found through a base, which has the storage of its views.
    InputIndex leads_to = info.found_by;
    while (leads_to.index >= distinct.size()) leads_to = metadata[leads_to.index].found_by;
    const uint32_t found_by = distinct[leads_to.index];
    const at::Tensor& tensor = inputs[found_by];
    if (!info.span.type.sizes.empty()) {
      if (!info.span.is_whole_storage) continue;
      found_.push_back({.found_by = found_by,
                        .is_storage = true,
                        .type = {},
                        .bytes = static_cast<int64_t>(tensor.storage().nbytes())});
    } else {
      const at::Tensor base = base_of(tensor);
      found_.push_back({.found_by = found_by,
                        .type = type_of(base),
                        .requires_grad = base.requires_grad(),
                        .is_leaf = base.is_leaf(),
                        .bytes = bytes_between(base, tensor)});
    }
  }
}

namespace {

bool holds(const FoundGuard& guard, const at::Tensor& tensor) {
  if (guard.is_storage) return static_cast<int64_t>(tensor.storage().nbytes()) == guard.bytes;
  const at::Tensor base = base_of(tensor);
  return is_strided(base) && has_type(base, guard.type) &&
         base.requires_grad() == guard.requires_grad && base.is_leaf() == guard.is_leaf &&
         bytes_between(base, tensor) == guard.bytes;
}

}  // namespace

namespace {

bool begins_alike(const at::Tensor& tensor, const TensorGuard& guard, Guards::Offsets offsets) {
  if (offsets == Guards::Offsets::None) return true;
  if (offsets == Guards::Offsets::Alignment) {
    const TensorType beginning{.dtype = tensor.scalar_type(),
                               .sizes = {},
                               .strides = {},
                               .storage_offset = tensor.storage_offset()};
    return beginning.begins_aligned();
  }
  return tensor.storage_offset() == guard.type.storage_offset &&
         static_cast<int64_t>(tensor.storage().nbytes()) == guard.storage_bytes;
}

}  // namespace

template <class Report>
bool Guards::check(std::span<const at::Tensor* const> arguments, Report&& report) const {
  if (arguments.size() != argument_count_) {
    report([&] { return fmt::format("{} tensors, was {}", arguments.size(), argument_count_); });
    return false;
  }
  const Surroundings now = Surroundings::now();
  if (!(now == surroundings_)) {
    report([&] {
      return fmt::format("{}; was {}", surroundings_text(now), surroundings_text(surroundings_));
    });
    return false;
  }
  const Inputs inputs(arguments, lifted_);
  SharingFinder finder(inputs.size());
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const TensorGuard& guard = inputs_[i];
    const at::Tensor& tensor = inputs[i];
    const Sharing sharing = finder.of_next(tensor, i);
    bool holds = tensor.defined() == guard.defined;
    if (holds && guard.defined) {
      holds = tensor.key_set().raw_repr() == guard.keys && is_strided(tensor) &&
              has_type(tensor, guard.type) && begins_alike(tensor, guard, offsets_) &&
              tensor.requires_grad() == guard.requires_grad && tensor.is_leaf() == guard.is_leaf &&
              view_number(tensor) == guard.view &&
              sharing == Sharing{guard.same_tensor_as, guard.shares_storage_with, guard.family};
    }
    if (holds && guard.position_matters) {
      const at::Tensor& first = inputs[guard.shares_storage_with];
      holds = bytes_between(first, tensor) == guard.bytes_from_first &&
              (version_counter_identity(first) == version_counter_identity(tensor)) ==
                  guard.has_counter_of_first;
    }
    if (holds) continue;
    report([&] {
      TensorGuard found = guard_of(inputs, i, sharing);
      found.position_matters = guard.position_matters;
      return fmt::format("input {} is {}; was {}", i, guard_text(found, i), guard_text(guard, i));
    });
    return false;
  }
  for (const FoundGuard& guard : found_) {
    if (foregrad::holds(guard, inputs[guard.found_by])) continue;
    report([&] {
      return fmt::format("the {} of input {} is another", guard.is_storage ? "storage" : "base",
                         guard.found_by);
    });
    return false;
  }
  return true;
}

bool Guards::hold(std::span<const at::Tensor* const> arguments) const {
  return check(arguments, [](auto&&) {});
}

GuardFailure Guards::explain(std::span<const at::Tensor* const> arguments) const {
  GuardFailure failure;
  check(arguments, [&](auto&& text) { failure = text(); });
  return failure;
}

std::string Guards::to_text() const {
  std::string text;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    text += fmt::format("input {}: {}{}\n", i, guard_text(inputs_[i], i),
                        i < argument_count_ ? "" : ", captured");
  }
  return text + surroundings_text(surroundings_) + "\n";
}

}  // namespace foregrad
