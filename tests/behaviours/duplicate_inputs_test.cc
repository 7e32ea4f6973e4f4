// One tensor passed as several arguments.
#include "behaviours/aliases.h"

namespace foregrad::testing {
namespace {

MakeStart twice(Kind kind, const std::vector<int64_t>& sizes) {
  return views_of_one(kind, sizes, {itself, itself});
}

// Each parameter changes the metadata in another way, one after the other.
TEST(Behaviours, B087_MetadataChangedThroughBothParameters) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].t_();
          in[1].unsqueeze_(0);
          return {in[0] + in[1]};
        },
        twice(kind, {2, 3}));
  }
}

// A slice of the first is written, the second returned.
TEST(Behaviours, B088_ASliceOfTheFirstIsWrittenTheSecondReturned) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].slice(0, 1, 3).mul_(2);
          return {in[1]};
        },
        twice(kind, {4}));
  }
}

Tensors write_first(const Tensors& in) {
  in[0].mul_(2);
  return {in[0] + in[1]};
}

// Compiled for one tensor twice, then called with two: compiled again.
TEST(Behaviours, B089_OneTensorTwiceThenTwoTensors) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    const auto report = expect_as_eager(
        write_first, {{.make = twice(kind, {3})}, {.make = start_of({kind, kind}, {3})}});
    EXPECT_EQ(report.specialisations.size(), 2u);
    EXPECT_EQ(report.recompiles.size(), 1u);
  }
}

// Compiled for two tensors, then called with one twice: compiled again.
TEST(Behaviours, B090_TwoTensorsThenOneTensorTwice) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    const auto report = expect_as_eager(
        write_first, {{.make = start_of({kind, kind}, {3})}, {.make = twice(kind, {3})}});
    EXPECT_EQ(report.specialisations.size(), 2u);
    EXPECT_EQ(report.recompiles.size(), 1u);
  }
}

}  // namespace
}  // namespace foregrad::testing
