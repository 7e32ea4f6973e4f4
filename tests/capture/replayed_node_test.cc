#include "capture/replayed_node.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "capture/recorder.h"

namespace foregrad {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Threefold : torch::autograd::Function<Threefold> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    ctx->save_for_backward({x});
    return x.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0] * 3 * ctx->get_saved_variables()[0]};
  }
};

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

/// Records a function of one tensor and calls its operators again on that tensor.
at::Tensor called_again(const Function& run, const at::Tensor& argument) {
  const Recording recording =
      record({.arguments = {argument}, .run = run, .on_capture = {}}).recording;
  Tensors values(recording.value_count);
  values[recording.inputs[0].value.index] = argument;
  ReplayedNodes nodes(recording);
  for (const RecordedOp& op : recording.ops) nodes.run(op, values);
  return values[recording.outputs[0].seen.value->index];
}

TEST(ReplayedNode, DoesWhatWasRecordedWithWhatIsThere) {
  const at::Tensor x = at::full({2}, 5.0).requires_grad_();
  const at::Tensor y =
      called_again([](const Tensors& in) -> Tensors { return {Threefold::apply(in[0] * 2)}; }, x);
  EXPECT_TRUE(at::equal(y, at::full({2}, 10.0)));
  const at::Tensor grad = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  EXPECT_TRUE(at::equal(grad, at::full({2}, 60.0)));
  EXPECT_TRUE(at::equal(torch::autograd::grad({grad.sum()}, {x})[0], at::full({2}, 12.0)));
}

TEST(ReplayedNode, ThrowsWhatWasThrownWhenItWasRecorded) {
  const at::Tensor y = called_again(
      [](const Tensors& in) -> Tensors {
        const at::Tensor h = in[0] * 2;
        const at::Tensor y = Threefold::apply(h);
        h.zero_();
        return {y};
      },
      at::full({2}, 5.0).requires_grad_());
  EXPECT_THROW(y.sum().backward(), c10::Error);
}

}  // namespace
}  // namespace foregrad
