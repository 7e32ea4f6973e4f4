#include "runtime/guards.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

using Arguments = std::vector<const at::Tensor*>;

TEST(Guards, HoldForTensorsOfTheSameKind) {
  const auto x = at::ones({2, 3});
  const auto other = at::zeros({2, 3});
  const Guards guards(Arguments{&x}, {});
  EXPECT_TRUE(guards.hold(Arguments{&other}));
  EXPECT_EQ(guards.explain(Arguments{&other}), std::nullopt);
}

TEST(Guards, EachPropertyIsGuardedAndNamed) {
  const auto x = at::ones({2, 3});
  const Guards guards(Arguments{&x}, {});
  const std::vector<std::pair<at::Tensor, const char*>> others = {
      {at::ones({3, 2}), "f32[3,2]"},
      {at::ones({3, 2}).t(), "{1,2}"},
      {at::ones({2, 3}, at::kDouble), "f64"},
      {at::ones({2, 3}).requires_grad_(), "leaf that requires grad"},
      {at::ones({2, 3}).requires_grad_() * 1, "requires grad"},
      {at::ones({6}).view({2, 3}), "view"},
      {at::Tensor(), "undefined"},
  };
  for (const auto& [other, word] : others) {
    EXPECT_FALSE(guards.hold(Arguments{&other})) << word;
    EXPECT_THAT(guards.explain(Arguments{&other}).value(), ::testing::HasSubstr(word));
  }
}

TEST(Guards, SurroundingsAreGuarded) {
  const auto x = at::ones({2});
  const Guards guards(Arguments{&x}, {});
  {
    at::NoGradGuard no_grad;
    EXPECT_FALSE(guards.hold(Arguments{&x}));
  }
  at::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_FALSE(guards.hold(Arguments{&x}));
  at::set_default_dtype(caffe2::TypeMeta::Make<float>());
  EXPECT_TRUE(guards.hold(Arguments{&x}));
}

TEST(Guards, WhichInputsShareIsGuarded) {
  const auto base = at::ones({4});
  const auto left = base.slice(0, 0, 2);
  const auto right = base.slice(0, 2, 4);
  const auto apart = at::ones({4}).slice(0, 0, 2);
  const Guards shared(Arguments{&left, &right}, {});
  EXPECT_TRUE(shared.hold(Arguments{&right, &left}));
  EXPECT_FALSE(shared.hold(Arguments{&left, &apart}));
  EXPECT_FALSE(shared.hold(Arguments{&left, &left}));
  const Guards separate(Arguments{&left, &apart}, {});
  EXPECT_FALSE(separate.hold(Arguments{&left, &right}));
}

TEST(Guards, LiftedTensorsAndOffsets) {
  std::vector<at::Tensor> lifted = {at::ones({2})};
  const auto x = at::ones({4}).slice(0, 1, 3);
  const auto y = at::ones({4}).slice(0, 2, 4);
  EXPECT_TRUE(Guards(Arguments{&x}, lifted).hold(Arguments{&y}));
  const Guards guards(Arguments{&x}, lifted, Guards::Offsets::All);
  EXPECT_FALSE(guards.hold(Arguments{&y}));
  lifted[0].set_data(at::ones({3}));
  EXPECT_FALSE(guards.hold(Arguments{&x}));
}

TEST(Guards, AlignmentIsGuardedWhereItMatters) {
  const auto storage = at::ones({16});
  const auto at_offset = [&](int64_t offset) { return storage.slice(0, offset, offset + 4); };
  const at::Tensor x = at_offset(4), aligned = at_offset(8), odd = at_offset(5);
  const Guards guards(Arguments{&x}, {}, Guards::Offsets::Alignment);
  EXPECT_TRUE(guards.hold(Arguments{&aligned}));
  EXPECT_FALSE(guards.hold(Arguments{&odd}));
  EXPECT_TRUE(Guards(Arguments{&x}, {}).hold(Arguments{&odd}));
}

TEST(Guards, WhichOfManyInputsShareIsGuarded) {
  constexpr size_t kCount = 300;
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < kCount; ++i) tensors.push_back(at::ones({2}));
  const std::vector<at::Tensor> lifted = {tensors[7].view({2}), at::ones({2})};
  Arguments arguments;
  for (const at::Tensor& tensor : tensors) arguments.push_back(&tensor);
  const Guards guards(arguments, lifted);
  EXPECT_TRUE(guards.hold(arguments));
  for (const size_t i : {size_t{8}, kCount - 1}) {
    Arguments repeated = arguments;
    repeated[i] = arguments[1];
    EXPECT_EQ(
        guards.explain(repeated),
        "input " + std::to_string(i) + " is f32[2]{1}, the same tensor as input 1; was f32[2]{1}");
  }
  const at::Tensor apart = at::ones({2});
  Arguments separated = arguments;
  separated[7] = &apart;
  EXPECT_FALSE(guards.hold(separated));
}

}  // namespace
}  // namespace foregrad
