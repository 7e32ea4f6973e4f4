#include "ops/result_types.h"

#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>

#include "graph/tensor_type.h"

namespace foregrad {

bool is_real_floating(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
         dtype == at::kBFloat16;
}

bool have_one_floating_dtype(std::initializer_list<at::Tensor> tensors) {
  const at::ScalarType dtype = tensors.begin()->scalar_type();
  if (!is_real_floating(dtype)) return false;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.scalar_type() != dtype) return false;
  }
  return true;
}

std::optional<at::ScalarType> parameter_dtype(const at::Tensor& input,
                                              std::initializer_list<at::Tensor> parameters) {
  const at::ScalarType dtype = input.scalar_type();
  if (!is_real_floating(dtype)) return std::nullopt;
  std::optional<at::ScalarType> found;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.defined()) continue;
    if (found && parameter.scalar_type() != *found) return std::nullopt;
    found = parameter.scalar_type();
  }
  const bool is_half = dtype == at::kHalf || dtype == at::kBFloat16;
  if (!found || *found == dtype || (is_half && *found == at::kFloat)) return found.value_or(dtype);
  return std::nullopt;
}

at::Tensor tensor_or_none(const c10::IValue& argument) {
  return argument.isTensor() ? argument.toTensor() : at::Tensor();
}

at::Tensor contiguous_result(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options());
}

at::Tensor contiguous_result(at::IntArrayRef sizes, const at::Tensor& like, at::ScalarType dtype) {
  return at::empty(sizes, like.options().dtype(dtype));
}

at::Tensor iterated_result(std::initializer_list<at::Tensor> inputs, at::ScalarType common,
                           std::optional<at::ScalarType> dtype) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false)
      .check_all_same_dtype(false)
      .declare_static_dtype_and_device(dtype.value_or(common), c10::kMeta)
      .add_owned_output(at::Tensor());
  for (const at::Tensor& input : inputs) {
    // Constants come as tensors of the CPU without dimensions.
    const at::Tensor meta =
        input.is_meta() ? input : at::empty({}, input.options().device(c10::kMeta));
    config.add_owned_const_input(meta.scalar_type() == common ? meta : meta.to(common));
  }
  return config.build().output();
}

std::vector<int64_t> with_size(at::IntArrayRef sizes, int64_t dim, int64_t size) {
  std::vector<int64_t> changed = sizes.vec();
  changed[static_cast<size_t>(dim)] = size;
  return changed;
}

bool is_made_contiguous(const at::Tensor& tensor) {
  return tensor.strides() == at::IntArrayRef(contiguous_strides(c10::DimVector(tensor.sizes())));
}

bool has_clear_format(const at::Tensor& tensor) {
  if (tensor.dim() != 4 && tensor.dim() != 5) return true;
  const auto channels_last =
      tensor.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
  const bool is_channels_last = tensor.is_contiguous(channels_last);
  if (tensor.suggest_memory_format() == channels_last)
    return is_channels_last && !tensor.is_contiguous();
  return !is_channels_last || is_made_contiguous(tensor);
}

at::Tensor suggested_result(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options(), like.suggest_memory_format());
}

std::optional<int64_t> wrapped_dim(int64_t dim, int64_t dims) {
  const int64_t count = std::max<int64_t>(dims, 1);
  if (dim < -count || dim >= count) return std::nullopt;
  return dim < 0 ? dim + count : dim;
}

}  // namespace foregrad
