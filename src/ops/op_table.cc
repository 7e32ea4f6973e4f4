#include "ops/op_table.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace foregrad {
namespace {

// clang-format off
constexpr std::array kRows = {
    OpRow{.name = "_c10d_functional::wait_tensor", .may_share_memory = true},
    OpRow{.name = "_c10d_functional::wait_tensors", .may_share_memory = true},
    OpRow{.name = "aten::_efficientzerotensor", .traced_as = "aten::zeros"},
    OpRow{.name = "aten::_empty_affine_quantized", .gives_uninitialised = true},
    OpRow{.name = "aten::_empty_per_channel_affine_quantized", .gives_uninitialised = true},
    OpRow{.name = "aten::_resize_output", .gives_uninitialised = true},
    OpRow{.name = "aten::_unsafe_view", .may_share_memory = true},
    OpRow{.name = "aten::batch_norm_gather_stats", .has_hidden_write = true},
    OpRow{.name = "aten::batch_norm_gather_stats_with_counts", .has_hidden_write = true},
    OpRow{.name = "aten::batch_norm_update_stats", .has_hidden_write = true},
    OpRow{.name = "aten::cudnn_batch_norm", .has_hidden_write = true},
    OpRow{.name = "aten::dequantize", .overload = "self", .may_share_memory = true},
    OpRow{.name = "aten::detach", .cuts_history = true},
    OpRow{.name = "aten::empty", .overload = "memory_format", .gives_uninitialised = true},
    OpRow{.name = "aten::empty_like", .gives_uninitialised = true},
    OpRow{.name = "aten::empty_permuted", .gives_uninitialised = true},
    OpRow{.name = "aten::empty_quantized", .gives_uninitialised = true},
    OpRow{.name = "aten::empty_strided", .gives_uninitialised = true},
    OpRow{.name = "aten::lift", .may_share_memory = true},
    OpRow{.name = "aten::miopen_batch_norm", .has_hidden_write = true},
    OpRow{.name = "aten::native_batch_norm", .has_hidden_write = true},
    OpRow{.name = "aten::new_empty", .gives_uninitialised = true},
    OpRow{.name = "aten::new_empty_strided", .gives_uninitialised = true},
    OpRow{.name = "aten::resize", .gives_uninitialised = true},
    OpRow{.name = "aten::resize_as", .gives_uninitialised = true},
    OpRow{.name = "aten::set", .overload = "source_Tensor", .may_share_memory = true},
    OpRow{.name = "aten::unsafe_split", .overload = "Tensor", .may_share_memory = true},
    OpRow{.name = "aten::unsafe_split_with_sizes", .may_share_memory = true},
    OpRow{.name = "aten::view", .overload = "dtype", .checks_alignment = true},
    OpRow{.name = "aten::view_as_complex", .checks_alignment = true},
    OpRow{.name = "quantized::dropout", .draws_random = true},
};
// clang-format on

using Key = std::pair<std::string_view, std::string_view>;

Key key_of(const OpRow& row) { return {row.name, row.overload}; }

}  // namespace

std::span<const OpRow> op_table() { return kRows; }

const OpRow* find_op_row(const c10::OperatorName& name) {
  const Key key{name.name, name.overload_name};
  const auto* row =
      std::lower_bound(kRows.begin(), kRows.end(), key,
                       [](const OpRow& left, const Key& right) { return key_of(left) < right; });
  return row != kRows.end() && key_of(*row) == key ? row : nullptr;
}

}  // namespace foregrad
