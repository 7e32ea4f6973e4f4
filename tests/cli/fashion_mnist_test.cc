#include "cli/fashion_mnist.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "expect_failure.h"
#include "idx_files.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::expect_failure;
using testing::idx_header;
using testing::put_gzip;

constexpr const char* kAdvice = "Install the Debian package `dataset-fashion-mnist`";

class FashionMnistTest : public ::testing::Test {
 protected:
  FashionMnistTest() { testing::put_data_set(folder_.path(), 12, 3); }

  template <typename... Parts>
  void expect_refused(const Parts&... parts) {
    expect_failure(
        ExitCode::kData, [&] { load_fashion_mnist(folder_.path()); }, kAdvice, "`--data-dir`",
        parts...);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(FashionMnistTest, ScalesAndNormalises) {
  const FashionMnist data = load_fashion_mnist(folder_.path());
  EXPECT_EQ(data.train.images.sizes(), (at::IntArrayRef{12, 1, 28, 28}));
  EXPECT_EQ(data.train.images.scalar_type(), at::kFloat);
  EXPECT_NEAR(data.train.images.min().item<double>(), (51 / 255.0 - 0.2860) / 0.3530, 1e-6);
  EXPECT_TRUE(data.train.labels.equal(at::tensor({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}, at::kLong)));
  EXPECT_EQ(data.test.count(), 3);
}

TEST_F(FashionMnistTest, MissingFile) {
  std::filesystem::remove(folder_ / "t10k-labels-idx1-ubyte.gz");
  expect_refused((folder_ / "t10k-labels-idx1-ubyte.gz").string(), "there is no such file");
}

TEST_F(FashionMnistTest, MissingFolder) {
  expect_failure(
      ExitCode::kData, [&] { load_fashion_mnist(folder_ / "nowhere"); }, "nowhere",
      "there is no such file", kAdvice);
}

TEST_F(FashionMnistTest, WrongPictureSize) {
  put_gzip(folder_ / "train-images-idx3-ubyte.gz",
           idx_header({1, 28, 32}) + std::string(28 * 32, 'a'));
  expect_refused("train-images-idx3-ubyte.gz", "expected pictures of 28 × 28, got 28 × 32");
}

TEST_F(FashionMnistTest, CountMismatch) {
  put_gzip(folder_ / "train-labels-idx1-ubyte.gz", idx_header({2}) + std::string(2, '\1'));
  expect_refused("train-labels-idx1-ubyte.gz", "expected 12 labels",
                 "`train-images-idx3-ubyte.gz`, got 2");
}

TEST_F(FashionMnistTest, LabelOutOfRange) {
  put_gzip(folder_ / "t10k-labels-idx1-ubyte.gz", idx_header({3}) + std::string("\x01\x0a\x02", 3));
  expect_refused("t10k-labels-idx1-ubyte.gz", "expected labels from 0 to 9, got 10 at position 1");
}

}  // namespace
}  // namespace foregrad::cli
