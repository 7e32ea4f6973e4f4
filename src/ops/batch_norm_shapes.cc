#include "ops/batch_norm_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

namespace foregrad {

namespace {

/// Absent, or one float for each channel.
bool is_per_channel(const c10::IValue& value, const at::Tensor& input) {
  if (!value.isTensor() || !value.toTensor().defined()) return true;
  const at::Tensor& tensor = value.toTensor();
  return tensor.dim() == 1 && tensor.size(0) == input.size(1) && tensor.is_contiguous() &&
         tensor.scalar_type() == input.scalar_type();
}

bool is_plain(const at::Tensor& input) {
  return input.dim() >= 2 && input.numel() > 0 && input.is_contiguous() &&
         (input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble);
}

at::Tensor per_channel(const at::Tensor& input) {
  return at::empty({input.size(1)}, input.options());
}

}  // namespace

std::optional<std::vector<at::Tensor>> batch_norm_shapes(c10::ArrayRef<c10::IValue> args) {
  const at::Tensor& input = args[0].toTensor();
  if (!is_plain(input)) return std::nullopt;
  for (size_t i = 1; i <= 4; ++i) {
    if (!is_per_channel(args[i], input)) return std::nullopt;
  }
  // Evaluation mode gives empty statistics.
  const bool training = args[5].toBool();
  const auto statistics = [&] {
    return training ? per_channel(input) : at::empty({0}, input.options());
  };
  return std::vector<at::Tensor>{at::empty_like(input), statistics(), statistics()};
}

std::optional<std::vector<at::Tensor>> batch_norm_functional_shapes(
    c10::ArrayRef<c10::IValue> args) {
  auto results = batch_norm_shapes(args);
  if (!results || !args[5].toBool()) return std::nullopt;
  for (size_t i : {3, 4}) results->push_back(at::empty_like(args[i].toTensor()));
  return results;
}

std::optional<std::vector<at::Tensor>> batch_norm_backward_shapes(c10::ArrayRef<c10::IValue> args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& input = args[1].toTensor();
  if (!is_plain(input) || !is_plain(grad) || grad.sizes() != input.sizes()) return std::nullopt;
  for (size_t i = 2; i <= 4; ++i) {
    if (!is_per_channel(args[i], input)) return std::nullopt;
  }
  const auto mask = args[9].toBoolList();
  const auto given = [&](bool wanted) { return wanted ? per_channel(input) : at::Tensor(); };
  return std::vector<at::Tensor>{mask[0] ? at::empty_like(input) : at::Tensor(), given(mask[1]),
                                 given(mask[2])};
}

}  // namespace foregrad
