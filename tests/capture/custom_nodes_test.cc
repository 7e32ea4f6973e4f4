#include "capture/custom_nodes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include "capture/recorder.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Recording recorded(const std::function<Tensors(const Tensors&)>& run, const Tensors& arguments) {
  return record({.arguments = arguments, .run = run, .on_capture = {}}).recording;
}

at::Tensor leaf() { return at::ones({2}).requires_grad_(); }

struct Saving : torch::autograd::Function<Saving> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor product = x * y;
    ctx->save_for_backward({y, product});
    ctx->saved_data["x"] = x;
    return {product, x + y};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {grads[0] * saved[0], grads[1] * ctx->saved_data["x"].toTensor() * saved[1]};
  }
};

const RecordedOp& attaching(const Recording& recording, uint32_t result) {
  for (const RecordedOp& op : recording.ops) {
    if (op.attaches && op.attaches->result == result) return op;
  }
  throw std::out_of_range("no such result");
}

TEST(CustomNodes, SaysWhatItTakesGivesSavesAndDoes) {
  const Recording recording = recorded(
      [](const Tensors& in) -> Tensors { return Saving::apply(in[0], in[1]); }, {leaf(), leaf()});
  ASSERT_EQ(recording.nodes.size(), 1U);
  const RecordedNode& node = *recording.nodes[0];
  const ValueId x = recording.inputs[0].value;
  const ValueId y = recording.inputs[1].value;
  EXPECT_EQ(node.inputs, (std::vector<std::optional<ValueId>>{x, y}));
  const ValueId product = std::get<ValueId>(attaching(recording, 0).results[0]);
  EXPECT_EQ(recording.outputs[0].seen.value, product);
  EXPECT_EQ(recording.outputs[1].seen.value, std::get<ValueId>(attaching(recording, 1).results[0]));
  ASSERT_EQ(node.saved.size(), 3U);
  for (const auto& saved : node.saved) {
    EXPECT_EQ(saved.is_checked, saved.value != x);
    EXPECT_EQ(saved.result.has_value(), saved.value == product);
  }
  ASSERT_EQ(node.backwards.size(), 4U);  // none, one, the other, both
  EXPECT_EQ(node.backwards.at(3).gradients.size(), 2U);
  EXPECT_EQ(node.backwards.at(3).ops.size(), 3U);
  EXPECT_EQ(operator_text(node.backwards.at(1).ops[0].op), "aten::zeros");
  for (const RecordedOp& op : recording.ops) EXPECT_NE(operator_text(op.op), "aten::zeros");
}

TEST(CustomNodes, WithoutHistoryThereIsNone) {
  const Recording recording =
      recorded([](const Tensors& in) -> Tensors { return Saving::apply(in[0], in[1]); },
               {at::ones({2}), at::ones({2})});
  EXPECT_TRUE(recording.nodes.empty());
}

TEST(CustomNodes, RecordingAgainTellsBackwardsApart) {
  double factor = 2;
  struct Scaled : torch::autograd::Function<Scaled> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double factor) {
      ctx->saved_data["factor"] = factor;
      return x.clone();
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
      return {grads[0] * ctx->saved_data["factor"].toDouble(), at::Tensor()};
    }
  };
  const auto run = [&](const Tensors& in) -> Tensors { return {Scaled::apply(in[0], factor)}; };
  const at::Tensor x = leaf();
  const Recording first = recorded(run, {x});
  EXPECT_EQ(first_difference(first, recorded(run, {x})), std::nullopt);
  factor = 3;
  EXPECT_EQ(first_difference(first, recorded(run, {x})), 1U);
}

struct Many : torch::autograd::Function<Many> {
  static variable_list forward(AutogradContext* /*ctx*/, const at::Tensor& x) {
    return {x + 1, x + 2, x + 3, x + 4};
  }
  static variable_list backward(AutogradContext* /*ctx*/, const variable_list& grads) {
    return {grads[0] + grads[1] + grads[2] + grads[3]};
  }
};

struct Writing : torch::autograd::Function<Writing> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->saved_data["y"] = y;
    return x.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    ctx->saved_data["y"].toTensor().zero_();
    return {grads[0], at::Tensor()};
  }
};

TEST(CustomNodes, WritesOfABackwardAreNotTheCalls) {
  const Recording recording =
      recorded([](const Tensors& in) -> Tensors { return {Writing::apply(in[0], in[1])}; },
               {leaf(), at::ones({2})});
  EXPECT_TRUE(recording.nodes[0]->backwards.at(1).writes);
  EXPECT_FALSE(recording.inputs[1].seen.data_mutated);
  EXPECT_EQ(recording.inputs[1].seen.version_advance, 0U);
}

/// Its backward can't do with a write to what it kept, and writes before it says so.
struct Minding : torch::autograd::Function<Minding> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y) {
    ctx->saved_data["y"] = y;
    ctx->saved_data["version"] = static_cast<int64_t>(y._version());
    return x.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor y = ctx->saved_data["y"].toTensor();
    const bool is_as_it_was = y._version() == ctx->saved_data["version"].toInt();
    y.add_(1);
    TORCH_CHECK(is_as_it_was, "mine");
    return {grads[0] * y, at::Tensor()};
  }
};

TEST(CustomNodes, ATrialThatThrowsLeavesTheRecordingAsItWas) {
  const Recording recording =
      recorded([](const Tensors& in) -> Tensors { return {Minding::apply(in[0], in[1]) + 1}; },
               {leaf(), at::ones({2})});
  ASSERT_EQ(recording.ops.size(), 3U);  // clone, the node, add
  EXPECT_TRUE(recording.nodes[0]->saved[0].is_checked);
  EXPECT_EQ(recording.inputs[1].seen.version_advance, 0U);
  EXPECT_FALSE(recording.inputs[1].seen.data_mutated);
}

TEST(CustomNodes, RefusesManyResults) {
  EXPECT_THROW(recorded([](const Tensors& in) { return Many::apply(in[0]); }, {leaf()}), Refusal);
}

}  // namespace
}  // namespace foregrad
