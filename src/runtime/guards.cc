#include "runtime/guards.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/RefcountedDeleter.h>
#include <fmt/format.h>

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
  bool operator==(const Sharing&) const = default;
};

/// Finds the sharing of inputs that are shown to it in order: linear in their number. The thread
/// keeps the tables, so that a check allocates nothing; one finder at a time.
class SharingFinder {
 public:
  explicit SharingFinder(size_t input_count) {
    tables().tensors.reset(input_count);
    tables().storages.reset(input_count);
  }
  Sharing of_next(const at::Tensor& tensor, uint32_t input) {
    if (!tensor.defined()) return {input, input};
    return {
        tables().tensors.first(tensor.unsafeGetTensorImpl(), input),
        tensor.has_storage() ? tables().storages.first(memory_of(tensor.storage()), input) : input};
  }

 private:
  struct Tables {
    FirstInputs tensors;
    FirstInputs storages;
  };
  static Tables& tables() {
    thread_local Tables tables;
    return tables;
  }
  /// Equal for two storages exactly if one `is_alias_of` the other.
  static const void* memory_of(const c10::Storage& storage) {
    const at::DataPtr& data = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
    return data.get_deleter() == &c10::refcounted_deleter
               ? data.get_context()
               : static_cast<const void*>(storage.unsafeGetStorageImpl());
  }
};

bool is_strided(const at::Tensor& tensor) { return tensor.layout() == at::kStrided; }

TensorGuard guard_of(const at::Tensor& tensor, const Sharing& sharing) {
  TensorGuard guard{.defined = tensor.defined(),
                    .type = {},
                    .same_tensor_as = sharing.same_tensor_as,
                    .shares_storage_with = sharing.shares_storage_with};
  if (!tensor.defined()) return guard;
  if (is_strided(tensor)) guard.type = type_of(tensor);
  guard.keys = tensor.key_set().raw_repr();
  guard.requires_grad = tensor.requires_grad();
  guard.is_leaf = tensor.is_leaf();
  guard.is_view = tensor.is_view();
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
  if (guard.is_view) text += ", view";
  if (guard.same_tensor_as != i) {
    text += fmt::format(", the same tensor as input {}", guard.same_tensor_as);
  } else if (guard.shares_storage_with != i) {
    text += fmt::format(", shares storage with input {}", guard.shares_storage_with);
  }
  return text;
}

}  // namespace

Guards::Guards(std::span<const at::Tensor* const> arguments, std::span<const at::Tensor> lifted,
               bool offsets_matter)
    : lifted_(lifted),
      argument_count_(arguments.size()),
      offsets_matter_(offsets_matter),
      surroundings_(Surroundings::now()) {
  const Inputs inputs(arguments, lifted);
  SharingFinder finder(inputs.size());
  for (uint32_t i = 0; i < inputs.size(); ++i)
    inputs_.push_back(guard_of(inputs[i], finder.of_next(inputs[i], i)));
}

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
              has_type(tensor, guard.type) &&
              (!offsets_matter_ || tensor.storage_offset() == guard.type.storage_offset) &&
              tensor.requires_grad() == guard.requires_grad && tensor.is_leaf() == guard.is_leaf &&
              tensor.is_view() == guard.is_view &&
              sharing == Sharing{guard.same_tensor_as, guard.shares_storage_with};
    }
    if (holds) continue;
    report([&] {
      return fmt::format("input {} is {}; was {}", i, guard_text(guard_of(tensor, sharing), i),
                         guard_text(guard, i));
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
