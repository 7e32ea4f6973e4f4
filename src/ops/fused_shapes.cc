#include "ops/fused_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

/// Tensors [batch, heads, length, width].
bool are_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return have_one_floating_dtype({query, key, value}) && query.scalar_type() != at::kHalf &&
         query.dim() == 4 && key.dim() == 4 && value.sizes() == key.sizes() && query.numel() > 0 &&
         key.numel() > 0 && query.size(0) == key.size(0) && query.size(1) == key.size(1) &&
         query.size(3) == key.size(3) && query.stride(3) == 1 && key.stride(3) == 1 &&
         value.stride(3) == 1;
}

bool is_plain_mask(const c10::IValue& mask) { return tensor_or_none(mask).defined() == false; }

/// Made as [batch, length, heads, width], which is how the next layer wants it.
at::Tensor by_length(const at::Tensor& like) {
  return contiguous_result({like.size(0), like.size(2), like.size(1), like.size(3)}, like)
      .transpose(1, 2);
}

/// The statistics of half precision are kept in float.
at::Tensor statistics(const at::Tensor& query) {
  const at::ScalarType dtype =
      query.scalar_type() == at::kBFloat16 ? at::kFloat : query.scalar_type();
  return contiguous_result({query.size(0), query.size(2), query.size(1)}, query, dtype)
      .transpose(1, 2);
}

Results attention(Arguments args) {
  const at::Tensor& query = args[0].toTensor();
  const bool is_covered = are_heads(query, args[1].toTensor(), args[2].toTensor()) &&
                          args[3].toDouble() == 0 && is_plain_mask(args[5]);
  if (!is_covered) return std::nullopt;
  return results(at::empty_like(query), statistics(query));
}

Results attention_backward(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& query = args[1].toTensor();
  const at::Tensor& key = args[2].toTensor();
  const at::Tensor& value = args[3].toTensor();
  const at::Tensor& out = args[4].toTensor();
  const bool is_covered = are_heads(query, key, value) && args[6].toDouble() == 0 &&
                          is_plain_mask(args[8]) && have_one_floating_dtype({grad, query, out}) &&
                          grad.sizes() == query.sizes() && out.sizes() == query.sizes();
  if (!is_covered) return std::nullopt;
  return results(by_length(query), by_length(key), by_length(value));
}

constexpr ShapeRow kRows[] = {
    {"aten::_scaled_dot_product_flash_attention_for_cpu", "", attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", "", attention_backward},
};

}  // namespace

std::span<const ShapeRow> fused_rules() { return kRows; }

}  // namespace foregrad
