#include "cli/batches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "expect_failure.h"

namespace foregrad::cli {
namespace {

/// Ten pictures whose pixels are their labels, 0 to 9.
LabelledImages ten_pictures() {
  const at::Tensor labels = at::arange(10);
  return {.images = labels.to(at::kFloat).view({10, 1, 1, 1}).expand({10, 1, 2, 2}).clone(),
          .labels = labels};
}

std::vector<int64_t> labels_of(const LabelledImages& batch) {
  return {batch.labels.const_data_ptr<int64_t>(),
          batch.labels.const_data_ptr<int64_t>() + batch.count()};
}

TEST(BatchesTest, EachEpochHasEachPictureOnce) {
  Batches batches(ten_pictures(), 4, 1);
  EXPECT_EQ(batches.batches_per_epoch(), 3);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::multiset<int64_t> seen;
    for (const int64_t size : {4, 4, 2}) {
      const LabelledImages batch = batches.next();
      EXPECT_EQ(batch.count(), size);
      for (const int64_t label : labels_of(batch)) seen.insert(label);
    }
    EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST(BatchesTest, PicturesKeepTheirLabels) {
  Batches batches(ten_pictures(), 10, 1);
  const LabelledImages batch = batches.next();
  EXPECT_TRUE(
      batch.images.select(1, 0).select(1, 0).select(1, 0).equal(batch.labels.to(at::kFloat)));
}

TEST(BatchesTest, SeedDecidesTheOrder) {
  Batches a(ten_pictures(), 10, 1);
  Batches b(ten_pictures(), 10, 1);
  Batches c(ten_pictures(), 10, 2);
  const auto first = labels_of(a.next());
  EXPECT_EQ(first, labels_of(b.next()));
  EXPECT_NE(first, labels_of(c.next()));
  EXPECT_NE(first, labels_of(a.next()));  // the next epoch is shuffled anew
}

TEST(BatchesTest, LeavesTheDefaultGeneratorAlone) {
  at::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(3);
  Batches(ten_pictures(), 4, 1).next();
  EXPECT_TRUE(at::rand({4}).equal(expected));
}

TEST(BatchesTest, RefusesBadSizes) {
  for (const int64_t size : {-1, 0, 11})
    testing::expect_failure(
        ExitCode::kUsage, [&] { Batches(ten_pictures(), size, 1); }, "`--batch`",
        "expected from 1 to 10", "got " + std::to_string(size));
}

}  // namespace
}  // namespace foregrad::cli
