// Arguments that are given another storage, and storages that are resized.
#include <ATen/native/Resize.h>
#include <gmock/gmock.h>

#include "behaviours/graph_text.h"
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void resize_storage(const at::Tensor& tensor, int64_t size_bytes) {
  at::native::resize_bytes_nocuda(tensor.storage(), size_bytes);
}

void set_without_grad(const at::Tensor& tensor, const at::Tensor& source) {
  const at::NoGradGuard no_grad;
  at::Tensor(tensor).set_(source);
}

void expect_for(const Program& program, std::initializer_list<Kind> kinds) {
  for (const Kind kind : kinds) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(program, start_of({kind, Kind::Plain}, {4}));
  }
}

// An input takes the storage of a new tensor.
TEST(Behaviours, B037_AnInputIsSetToANewTensor) {
  expect_for(
      [](const Tensors& in) -> Tensors {
        set_without_grad(in[0], at::full({2}, 3.0));
        return {in[0] * 2};
      },
      {Kind::Plain, Kind::Leaf, Kind::Tracked});
}

// An input is given other data by `set_data`, which no operator shows: refused.
TEST(Behaviours, B037_AnInputIsGivenOtherData) {
  expect_refused(
      [](const Tensors& in) -> Tensors {
        in[0].set_data(in[1] * 2);
        return {in[0] + 1};
      },
      start_of({Kind::Plain, Kind::Plain}, {4}), "set_data");
}

// An input is set to a view of another: what is written to it later reaches that one.
TEST(Behaviours, B038_AnInputIsSetToAViewAndWritten) {
  expect_for(
      [](const Tensors& in) -> Tensors {
        set_without_grad(in[0], in[1].slice(0, 1, 3));
        {
          const at::NoGradGuard no_grad;
          in[0].mul_(2);
        }
        return {in[0] + 1, in[1] * 2};
      },
      {Kind::Plain, Kind::Leaf});
}

// A write through a view from before `set_` goes to the old storage.
TEST(Behaviours, B039_AnOldViewIsWrittenAfterSet) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto old = in[0].view({2, 2});
        set_without_grad(in[0], at::full({2}, 3.0));
        old.mul_(2);
        return {in[0] + 1, old + 1};
      },
      []() -> Start {
        auto argument = plain({4});
        return {.arguments = {argument}, .kept = {argument.detach()}};
      });
}

// Set to another tensor and back: the caller sees nothing but the version.
TEST(Behaviours, B040_TwoSetsThatCancel) {
  const auto report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        const auto old = in[0].detach();
        set_without_grad(in[0], at::full({2}, 3.0));
        auto result = in[0] * 2;
        set_without_grad(in[0], old);
        return {result};
      },
      start_of(Kind::Plain, {4}));
  for (const auto& specialisation : report.specialisations)
    EXPECT_THAT(specialisation.forward_graph, Not(HasSubstr("mutated(")));
}

// The storage of an input is freed at the end.
TEST(Behaviours, B041_AStorageIsResizedToZero) {
  const auto report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto result = in[0] * 2;
        resize_storage(in[0], 0);
        return {result};
      },
      start_of(Kind::Plain, {4}));
  for (const auto& specialisation : report.specialisations)
    EXPECT_THAT(specialisation.forward_graph, Not(HasSubstr("aten::copy_")));
}

// Set to another tensor, whose storage is then freed.
TEST(Behaviours, B042_SetThenResizedToZero) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto result = in[0] * in[1];
        set_without_grad(in[0], in[1]);
        resize_storage(in[0], 0);
        return {result};
      },
      start_of({Kind::Plain, Kind::Plain}, {4}));
}

// The storage is freed, then the input is set to another tensor.
TEST(Behaviours, B043_ResizedToZeroThenSet) {
  expect_as_eager(
      [](const Tensors& in) -> Tensors {
        auto result = in[0] * 2;
        resize_storage(in[0], 0);
        set_without_grad(in[0], in[1]);
        return {result, in[0] + 1};
      },
      []() -> Start {
        auto argument = plain({4});
        return {.arguments = {argument, plain({4})}, .kept = {argument.detach()}};
      });
}

// A storage that was freed before is allocated, filled, used and freed again.
TEST(Behaviours, B044_ResizedUpFilledUsedAndFreed) {
  const auto report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        {
          const at::NoGradGuard no_grad;
          resize_storage(in[0], 16);
          in[0].copy_(in[1]);
        }
        auto result = in[0] + in[2];
        resize_storage(in[0], 0);
        return {result};
      },
      []() -> Start {
        auto argument = plain({4});
        resize_storage(argument, 0);
        return {{argument, plain({4}), leaf({4})}};
      });
  for (const auto& specialisation : report.specialisations)
    EXPECT_THAT(specialisation.forward_graph, Not(HasSubstr("resize")));
}

}  // namespace
}  // namespace foregrad::testing
