// Fashion-MNIST: 70,000 grey pictures of clothes, 28 × 28, in ten classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

namespace foregrad::cli {

/// Holds pictures as float32 [N,1,28,28], scaled to [0,1] and then normalised by the training set's
/// mean and standard deviation, and their classes as int64 [N], 0 to 9.
struct LabelledImages {
  at::Tensor images;
  at::Tensor labels;

  int64_t count() const { return images.size(0); }
};

struct FashionMnist {
  LabelledImages train;
  LabelledImages test;
};

/// Names the folder in which the Debian package `dataset-fashion-mnist` puts its files.
extern const char* const kFashionMnistFolder;

/// Reads `{train,t10k}-images-idx3-ubyte.gz` and `{train,t10k}-labels-idx1-ubyte.gz` from a folder.
/// Throws a `Failure` of kind `kData` that names the file and says how to get the data set.
FashionMnist load_fashion_mnist(const std::filesystem::path& folder);

}  // namespace foregrad::cli
