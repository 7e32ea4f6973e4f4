#include "ops/batch_norm_shapes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "ops/result_types.h"

namespace foregrad {

namespace {

/// Absent, or a number for each channel.
bool is_per_channel(const c10::IValue& value, const at::Tensor& input) {
  const at::Tensor tensor = tensor_or_none(value);
  return !tensor.defined() || (tensor.dim() == 1 && tensor.size(0) == input.size(1));
}

/// Batches [N, C, …] with tensors at these places that go with them: the dtype of statistics.
std::optional<at::ScalarType> statistics_dtype(const at::Tensor& input, Arguments parameters) {
  if (input.dim() < 2 || input.numel() == 0 || !has_clear_format(input)) return std::nullopt;
  for (const c10::IValue& parameter : parameters) {
    if (!is_per_channel(parameter, input)) return std::nullopt;
  }
  return parameter_dtype(
      input,
      {tensor_or_none(parameters[0]), tensor_or_none(parameters[1]), tensor_or_none(parameters[2]),
       parameters.size() > 3 ? tensor_or_none(parameters[3]) : at::Tensor()});
}

}  // namespace

Results batch_norm_shapes(Arguments args) {
  const at::Tensor& input = args[0].toTensor();
  const auto dtype = statistics_dtype(input, args.slice(1, 4));
  const bool training = args[5].toBool();
  const bool has_statistics =
      tensor_or_none(args[3]).defined() && tensor_or_none(args[4]).defined();
  if (!dtype || (!training && !has_statistics)) return std::nullopt;
  // Evaluation mode gives empty statistics.
  const int64_t count = training ? input.size(1) : 0;
  return results(suggested_result(input.sizes(), input), contiguous_result({count}, input, *dtype),
                 contiguous_result({count}, input, *dtype));
}

Results batch_norm_functional_shapes(Arguments args) {
  auto all = batch_norm_shapes(args);
  if (!all || !args[5].toBool()) return std::nullopt;
  for (size_t i : {3, 4}) all->push_back(at::empty_like(args[i].toTensor()));
  return all;
}

Results batch_norm_backward_shapes(Arguments args) {
  const at::Tensor& grad = args[0].toTensor();
  const at::Tensor& input = args[1].toTensor();
  if (grad.sizes() != input.sizes() || grad.scalar_type() != input.scalar_type())
    return std::nullopt;
  const auto mask = args[9].toBoolList();
  // Evaluation mode has saved nothing.
  const bool trains = args[7].toBool();
  const auto dtype = statistics_dtype(input, args.slice(2, trains ? 4 : 3));
  const bool has_statistics = tensor_or_none(args[trains ? 5 : 3]).defined() &&
                              tensor_or_none(args[trains ? 6 : 4]).defined();
  const bool is_covered = dtype && has_statistics && (!trains || is_per_channel(args[6], input)) &&
                          (!mask[1] || tensor_or_none(args[2]).defined());
  if (!is_covered) return std::nullopt;
  const auto parameter = [&](bool is_wanted) {
    return is_wanted ? contiguous_result({input.size(1)}, input, *dtype) : at::Tensor();
  };
  return results(mask[0] ? suggested_result(input.sizes(), input) : at::Tensor(),
                 parameter(mask[1]), parameter(mask[2]));
}

namespace {

Results without_statistics(Arguments args) {
  const std::vector<c10::IValue> all{args[0], args[1], args[2], {}, {}, args[3], args[4], args[5]};
  return batch_norm_shapes(all);
}

Results without_training(Arguments args) {
  const std::vector<c10::IValue> all{args[0], args[1], args[2], args[3],
                                     args[4], false,   args[5], args[6]};
  return batch_norm_shapes(all);
}

constexpr ShapeRow kRows[] = {
    {"aten::_native_batch_norm_legit", "no_stats", without_statistics},
    {"aten::_native_batch_norm_legit_no_training", "", without_training},
    {"aten::native_batch_norm", "", batch_norm_shapes},
    {"aten::_native_batch_norm_legit_functional", "", batch_norm_functional_shapes},
    {"aten::native_batch_norm_backward", "", batch_norm_backward_shapes},
};

}  // namespace

std::span<const ShapeRow> batch_norm_rules() { return kRows; }

}  // namespace foregrad
