#include "cli/fashion_mnist.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cli/failure.h"
#include "cli/idx.h"

namespace foregrad::cli {
namespace {

constexpr int64_t kSide = 28;
constexpr uint8_t kClasses = 10;
constexpr double kMean = 0.2860;
constexpr double kDeviation = 0.3530;

at::Tensor to_tensor(const IdxArray& array) {
  at::Tensor tensor = at::empty(array.sizes, at::kByte);
  std::memcpy(tensor.mutable_data_ptr<uint8_t>(), array.values.data(), array.values.size());
  return tensor;
}

LabelledImages load_part(const std::filesystem::path& folder, const char* part) {
  const auto images_path = folder / fmt::format("{}-images-idx3-ubyte.gz", part);
  const auto labels_path = folder / fmt::format("{}-labels-idx1-ubyte.gz", part);
  const IdxArray images = read_idx(images_path, 3);
  if (images.sizes[1] != kSide || images.sizes[2] != kSide) {
    throw Failure(ExitCode::kData,
                  fmt::format("`{}`: expected pictures of 28 × 28, got {} × {}.",
                              images_path.string(), images.sizes[1], images.sizes[2]));
  }
  const IdxArray labels = read_idx(labels_path, 1);
  if (labels.sizes[0] != images.sizes[0]) {
    throw Failure(ExitCode::kData,
                  fmt::format("`{}`: expected {} labels, one for each picture in `{}`, got {}.",
                              labels_path.string(), images.sizes[0],
                              images_path.filename().string(), labels.sizes[0]));
  }
  const auto bad = std::find_if(labels.values.begin(), labels.values.end(),
                                [](uint8_t v) { return v >= kClasses; });
  if (bad != labels.values.end()) {
    throw Failure(ExitCode::kData,
                  fmt::format("`{}`: expected labels from 0 to 9, got {} at position {}.",
                              labels_path.string(), *bad, bad - labels.values.begin()));
  }
  LabelledImages result;
  result.images =
      to_tensor(images).unsqueeze(1).to(at::kFloat).div_(255).sub_(kMean).div_(kDeviation);
  result.labels = to_tensor(labels).to(at::kLong);
  return result;
}

}  // namespace

const char* const kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

FashionMnist load_fashion_mnist(const std::filesystem::path& folder) {
  try {
    return {.train = load_part(folder, "train"), .test = load_part(folder, "t10k")};
  } catch (const Failure& failure) {
    throw Failure(failure.code(),
                  fmt::format("{} Install the Debian package `dataset-fashion-mnist` (anew if it "
                              "is there), or name a "
                              "folder that holds its four files with `--data-dir`.",
                              failure.what()));
  }
}

}  // namespace foregrad::cli
