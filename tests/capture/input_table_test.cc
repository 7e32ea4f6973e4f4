#include "capture/input_table.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/keys.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

class InputTableTest : public testing::Test {
 protected:
  void place(const std::vector<at::Tensor>& tensors, size_t argument_count,
             const Arrangement& arrangement = {}) {
    inputs_.place(gather_inputs(tensors), arrangement, argument_count);
  }

  Tracer tracer_{Tracer::Keep::ShapesOnly};
  Tracer::Scope tracing_{tracer_};
  Recording recording_;
  ValueTable values_{recording_};
  InputTable inputs_{tracer_, values_};
};

TEST_F(InputTableTest, GivesAStandInForEachInput) {
  const at::Tensor argument = at::ones({2, 3}).requires_grad_();
  const at::Tensor captured = at::ones({4});
  place({argument, captured}, 1);
  const at::Tensor stand_in = inputs_.stand_in_of(argument);
  EXPECT_EQ(stand_in.sizes(), argument.sizes());
  EXPECT_TRUE(stand_in.requires_grad() && stand_in.is_leaf());
  EXPECT_TRUE(inputs_.capture(captured).is_same(inputs_.stand_in_of(captured)));
  const auto inputs = inputs_.finish();
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<UserInput>(inputs[0].role));
  EXPECT_FALSE(inputs[0].tensor.defined());
  EXPECT_TRUE(std::holds_alternative<Lifted>(inputs[1].role));
  EXPECT_TRUE(inputs[1].tensor.is_same(captured));
}

TEST_F(InputTableTest, FindsCapturedTensorsLate) {
  place({at::ones({2})}, 1);
  const at::Tensor gaps = at::zeros({8}).slice(0, 0, 8, 2);
  EXPECT_FALSE(inputs_.is_known(gaps));
  const at::Tensor stand_in = inputs_.capture(gaps);
  EXPECT_TRUE(inputs_.is_known(gaps));
  EXPECT_EQ(stand_in.strides(), gaps.strides());
  const auto inputs = inputs_.finish();
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<Memory>(inputs[2].role));
  EXPECT_EQ(inputs[2].span.type.sizes[0], 7);
  EXPECT_EQ(inputs[1].memory, (InputIndex{2}));
}

TEST_F(InputTableTest, HoldsAnArgumentThatIsAlsoCaptured) {
  const at::Tensor argument = at::ones({2});
  place({argument}, 1);
  EXPECT_TRUE(inputs_.capture(argument).is_same(inputs_.stand_in_of(argument)));
  EXPECT_TRUE(inputs_.finish()[0].tensor.is_same(argument));
}

TEST_F(InputTableTest, NotesWhatIsWritten) {
  const at::Tensor first = at::ones({2});
  const at::Tensor second = at::ones({2});
  place({first, second}, 2);
  const at::Tensor written = inputs_.stand_in_of(second);
  inputs_.note_data(values_.number(written), *written.storage().unsafeGetStorageImpl());
  inputs_.note_other_storage(values_.number(written), written);
  const auto inputs = inputs_.finish();
  EXPECT_FALSE(inputs[0].seen.data_mutated || inputs[0].seen.storage_changed);
  EXPECT_TRUE(inputs[1].seen.data_mutated && inputs[1].seen.storage_changed);
}

TEST_F(InputTableTest, StandInsShareCountersAsTensorsDo) {
  const at::Tensor base = at::ones({4});
  const at::Tensor view = base.slice(0, 0, 2);
  place({base, view}, 2);
  EXPECT_EQ(version_counter_identity(inputs_.stand_in_of(base)),
            version_counter_identity(inputs_.stand_in_of(view)));
}

TEST(RefuseUnsupportedTensor, NamesLayoutAndDevice) {
  EXPECT_NO_THROW(refuse_unsupported_tensor(at::ones({2}), false, "here"));
  EXPECT_THROW(refuse_unsupported_tensor(at::ones({2}).to_sparse(), false, "here"), Refusal);
  EXPECT_THROW(refuse_unsupported_tensor(at::empty({2}, at::kMeta), false, "here"), Refusal);
  const at::Tensor inference = [] {
    const c10::InferenceMode mode;
    return at::ones({2});
  }();
  EXPECT_THROW(refuse_unsupported_tensor(inference, false, "here"), Refusal);
  EXPECT_NO_THROW(refuse_unsupported_tensor(inference, true, "here"));
}

}  // namespace
}  // namespace foregrad
