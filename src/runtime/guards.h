// What must hold for a specialisation to be valid for a call.
//
// Guards are compared field by field with what was there when the function was recorded; nothing is
// allocated. Which inputs are the same tensor, and which share storage, is guarded as a pattern:
// each input names the first one it equals.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/metadata.h"
#include "graph/tensor_type.h"

namespace foregrad {

/// The modes and switches outside the arguments that change what a function does. All but the
/// thread count are part of what eager would have seen.
struct Surroundings {
  bool grad_mode = true;
  bool inference_mode = false;
  bool autocast_enabled = false;
  at::ScalarType autocast_dtype = at::kBFloat16;
  at::ScalarType default_dtype = at::kFloat;
  bool deterministic = false;
  bool mkldnn_enabled = true;
  int matmul_precision = 0;
  int threads = 1;

  bool operator==(const Surroundings&) const = default;
  static Surroundings now();
};

/// One input as it was when the function was recorded.
struct TensorGuard {
  bool defined = false;
  TensorType type;  // its offset counts only where `Guards::Offsets::All`
  uint64_t keys = 0;
  bool requires_grad = false;
  bool is_leaf = true;
  uint8_t view = 0;             // none: 0; else one more than libtorch's creation meta
  uint32_t same_tensor_as = 0;  // the first input that is the same tensor; itself if none is
  uint32_t shares_storage_with =
      0;                      // the first input with the same storage; itself if there is none
  int64_t storage_bytes = 0;  // counts where offsets matter
  /// The storage is shared and written: the next two count.
  bool position_matters = false;
  int64_t bytes_from_first = 0;      // from that input's first element
  bool has_counter_of_first = true;  // shares that input's version counter
  uint32_t family = 0;  // the first input that autograd knows as its base, or as a view of its base
};

/// An input that is found through another: its base, or the storage that it lies in.
struct FoundGuard {
  uint32_t found_by = 0;
  bool is_storage = false;
  TensorType type;  // of a base
  bool requires_grad = false;
  bool is_leaf = true;
  int64_t bytes = 0;  // of a base: from its first element to that of `found_by`; else the storage's
};

/// Why a specialisation is not valid for a call, in words; nothing if it is.
using GuardFailure = std::optional<std::string>;

class Guards {
 public:
  /// What is guarded of where in their storages the inputs begin.
  enum class Offsets : uint8_t { None, Alignment, All };

  /// `lifted` are held by the caller for as long as the guards live; they follow the arguments in
  /// the numbering of inputs. `metadata` tells which are written, and which are found through
  /// others.
  Guards(std::span<const at::Tensor* const> arguments, std::span<const at::Tensor> lifted,
         Offsets offsets = Offsets::None, std::span<const InputInfo> metadata = {});

  bool hold(std::span<const at::Tensor* const> arguments) const;
  /// The same check, slower, with the reason.
  GuardFailure explain(std::span<const at::Tensor* const> arguments) const;

  std::string to_text() const;

 private:
  template <class Report>
  bool check(std::span<const at::Tensor* const> arguments, Report&& report) const;

  std::vector<TensorGuard> inputs_;
  std::vector<FoundGuard> found_;
  std::span<const at::Tensor> lifted_;
  size_t argument_count_ = 0;
  Offsets offsets_ = Offsets::None;
  Surroundings surroundings_;
};

}  // namespace foregrad
