#include "cli/batches.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/failure.h"

namespace foregrad::cli {

Batches::Batches(LabelledImages data, int64_t batch_size, uint64_t seed)
    : data_(std::move(data)),
      batch_size_(batch_size),
      generator_(at::detail::createCPUGenerator(seed)) {
  if (batch_size_ < 1 || batch_size_ > data_.count()) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("`--batch`: expected from 1 to {}, the number of training pictures, got {}.",
                    data_.count(), batch_size_));
  }
}

LabelledImages Batches::next() {
  if (!order_.defined() || position_ == data_.count()) {
    order_ = at::randperm(data_.count(), generator_, at::TensorOptions(at::kLong));
    position_ = 0;
  }
  const int64_t end = std::min(position_ + batch_size_, data_.count());
  const at::Tensor chosen = order_.slice(0, position_, end);
  position_ = end;
  return {.images = data_.images.index_select(0, chosen),
          .labels = data_.labels.index_select(0, chosen)};
}

}  // namespace foregrad::cli
