#include "cli/fuzz/picks.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace foregrad::cli::fuzz {
namespace {

constexpr int64_t kMaxElements = 64;

/// Draws a dimension, counted from the end now and then.
int64_t draw_dim(Random& random, const at::Tensor& operand) {
  const int64_t dim = random.below(operand.dim());
  return random.chance(20) ? dim - operand.dim() : dim;
}

}  // namespace

std::vector<int64_t> draw_sizes(Random& random) {
  std::vector<int64_t> sizes(static_cast<size_t>(random.one_of({0, 1, 1, 1, 2, 2, 2, 2, 3, 3})));
  for (int64_t& size : sizes) size = random.chance(3) ? 0 : random.one_of({1, 2, 2, 3, 3, 4});
  return sizes;
}

at::ScalarType draw_type(Random& random) {
  using at::ScalarType;
  return random.one_of({ScalarType::Float, ScalarType::Float, ScalarType::Float, ScalarType::Float,
                        ScalarType::Float, ScalarType::Float, ScalarType::Float, ScalarType::Float,
                        ScalarType::Double, ScalarType::Double, ScalarType::Long, ScalarType::Bool,
                        ScalarType::ComplexFloat, ScalarType::BFloat16});
}

bool pick_nothing(Random&, const at::Tensor&, Parameters&) { return true; }

bool pick_number(Random& random, const at::Tensor&, Parameters& parameters) {
  parameters.numbers = {random.between(-4, 4)};
  return true;
}

bool pick_two_numbers(Random& random, const at::Tensor&, Parameters& parameters) {
  const int64_t least = random.between(-4, 2);
  parameters.numbers = {least, least + random.between(0, 4)};
  return true;
}

bool pick_one(Random&, const at::Tensor&, Parameters& parameters) {
  parameters.numbers = {1};
  return true;
}

bool pick_type(Random& random, const at::Tensor&, Parameters& parameters) {
  parameters.numbers = {static_cast<int64_t>(draw_type(random))};
  return true;
}

bool pick_flag(Random& random, const at::Tensor&, Parameters& parameters) {
  parameters.numbers = {random.below(2)};
  return true;
}

bool pick_length(Random& random, const at::Tensor&, Parameters& parameters) {
  parameters.numbers = {random.between(0, 4)};
  return true;
}

bool pick_new_shape(Random& random, const at::Tensor& operand, Parameters& parameters) {
  parameters.numbers = {random.between(-4, 4)};
  parameters.shape = operand.defined() && random.chance(70) ? operand.sizes().vec()  //
                                                            : draw_sizes(random);
  return true;
}

bool pick_new_shape_and_type(Random& random, const at::Tensor& operand, Parameters& parameters) {
  pick_new_shape(random, operand, parameters);
  parameters.numbers = {static_cast<int64_t>(draw_type(random))};
  return true;
}

bool pick_dim(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  parameters.numbers = {draw_dim(random, operand)};
  return true;
}

bool pick_dim_list(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  parameters.shape = {draw_dim(random, operand)};
  return true;
}

bool pick_dim_and_part(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  parameters.numbers = {draw_dim(random, operand), random.between(1, 3)};
  return true;
}

bool pick_dim_and_index(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  const int64_t dim = draw_dim(random, operand);
  if (operand.size(dim) == 0) return false;
  const int64_t size = operand.size(dim);
  parameters.numbers = {dim, random.between(random.chance(20) ? -size : 0, size - 1),
                        random.between(-4, 4)};
  return true;
}

bool pick_dim_and_number(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  const int64_t dim = draw_dim(random, operand);
  parameters.numbers = {dim, random.between(0, operand.size(dim)), random.between(-4, 4)};
  return true;
}

bool pick_two_dims(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  parameters.numbers = {draw_dim(random, operand), draw_dim(random, operand)};
  return true;
}

bool pick_matrix(Random&, const at::Tensor& operand, Parameters&) {
  return operand.dim() == 2 || operand.dim() == 1;
}

bool pick_range(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  const int64_t dim = draw_dim(random, operand);
  const int64_t start = random.between(0, operand.size(dim));
  parameters.numbers = {dim, start, random.between(0, operand.size(dim) - start)};
  return true;
}

bool pick_slice(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0) return false;
  const int64_t dim = draw_dim(random, operand);
  const int64_t start = random.between(0, std::max<int64_t>(operand.size(dim) - 1, 0));
  parameters.numbers = {dim, start, random.between(start, operand.size(dim)),
                        random.one_of({1, 1, 1, 2})};
  return true;
}

bool pick_new_dim(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() > 3) return false;
  parameters.numbers = {random.between(0, operand.dim())};
  return true;
}

bool pick_permutation(Random& random, const at::Tensor& operand, Parameters& parameters) {
  std::vector<int64_t>& order = parameters.shape;
  order.resize(static_cast<size_t>(operand.dim()));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return true;
}

bool pick_view(Random& random, const at::Tensor& operand, Parameters& parameters) {
  std::vector<int64_t> sizes = operand.sizes().vec();
  switch (random.below(4)) {
    case 0: sizes = {operand.numel()}; break;
    case 1:  // merge two neighbours
      if (sizes.size() < 2) return false;
      sizes[0] *= sizes[1];
      sizes.erase(sizes.begin() + 1);
      break;
    case 2: {  // split an even size
      const auto even = std::ranges::find_if(sizes, [](int64_t s) { return s > 0 && s % 2 == 0; });
      if (even == sizes.end() || sizes.size() > 3) return false;
      *even /= 2;
      sizes.insert(even + 1, 2);
      break;
    }
    default:
      if (sizes.size() > 3) return false;
      sizes.insert(sizes.begin() + random.between(0, operand.dim()), 1);
  }
  parameters.shape = sizes;
  return true;
}

bool pick_expansion(Random& random, const at::Tensor& operand, Parameters& parameters) {
  std::vector<int64_t> sizes = operand.sizes().vec();
  for (int64_t& size : sizes) {
    if (size == 1) size = random.between(1, 3);
  }
  if (sizes.size() < 3 && random.chance(60)) sizes.insert(sizes.begin(), random.between(1, 3));
  if (operand.numel() > kMaxElements) return false;
  parameters.shape = sizes;
  return true;
}

bool pick_strides(Random& random, const at::Tensor& operand, Parameters& parameters) {
  const auto bytes = static_cast<int64_t>(operand.storage().nbytes());
  int64_t first = 0;
  int64_t last = bytes / operand.element_size() - 1;  // the last element that may be reached
  if (operand.requires_grad() && operand.is_view()) {
    // Autograd does not follow elements that are not the operand's.
    if (!operand.is_non_overlapping_and_dense()) return false;
    first = operand.storage_offset();
    last = first + operand.numel() - 1;
  }
  if (last < first) return false;
  const int64_t offset = random.between(first, last);
  last -= offset;
  for (int64_t dim = random.between(1, 2); dim > 0; --dim) {
    const int64_t stride = random.one_of({0, 1, 1, 2, 2, 3});
    const int64_t most = stride == 0 ? 3 : std::min<int64_t>(last / stride + 1, 4);
    const int64_t size = random.between(1, most);
    last -= (size - 1) * stride;
    parameters.shape.push_back(size);
    parameters.steps.push_back(stride);
  }
  parameters.numbers = {offset};
  return true;
}

bool pick_smaller_shape(Random& random, const at::Tensor& operand, Parameters& parameters) {
  // Never beyond what is there: grown memory has no defined contents.
  if (!operand.is_contiguous() || operand.dim() == 0) return false;
  parameters.shape = operand.sizes().vec();
  int64_t& size = random.one_of(parameters.shape);
  size = random.between(0, size);
  return true;
}

bool pick_diagonal(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() < 2) return false;
  parameters.numbers = {random.between(-1, 1)};
  return true;
}

bool pick_window(Random& random, const at::Tensor& operand, Parameters& parameters) {
  if (operand.dim() == 0 || operand.dim() > 3) return false;
  const int64_t dim = draw_dim(random, operand);
  if (operand.size(dim) == 0) return false;
  parameters.numbers = {dim, random.between(1, operand.size(dim)), random.between(1, 2)};
  return true;
}

bool pick_complex(Random&, const at::Tensor& operand, Parameters&) { return operand.is_complex(); }

bool pick_pairs(Random&, const at::Tensor& operand, Parameters&) {
  return operand.dim() > 0 && operand.size(-1) == 2 && operand.stride(-1) == 1 &&
         operand.scalar_type() == at::kFloat;
}

}  // namespace foregrad::cli::fuzz
