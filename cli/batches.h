// The order in which training sees the pictures.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "cli/fashion_mnist.h"

namespace foregrad::cli {

/// Deals a data set in batches, for ever. Each epoch is shuffled anew by a generator of its own, so
/// that the default generator is left to the model; the last batch of an epoch holds what is left
/// and may be smaller.
class Batches {
 public:
  /// Throws a `Failure` of kind `kUsage` unless `batch_size` is from 1 to the number of pictures.
  Batches(LabelledImages data, int64_t batch_size, uint64_t seed);

  /// Returns the next batch, copied out of the data set.
  LabelledImages next();

  int64_t batches_per_epoch() const { return (data_.count() + batch_size_ - 1) / batch_size_; }

 private:
  LabelledImages data_;
  int64_t batch_size_;
  at::Generator generator_;
  at::Tensor order_;      // this epoch's permutation
  int64_t position_ = 0;  // in `order_`
};

}  // namespace foregrad::cli
