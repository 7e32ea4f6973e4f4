#include "runtime/call_hooks.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <exception>
#include <optional>

#include "graph/call.h"

namespace foregrad {

/// Calls again what the recorded hook called, on what it read.
class HookOfCall {
 public:
  explicit HookOfCall(std::shared_ptr<const RecordedNode> does) : does_(std::move(does)) {}

  /// Gives the next tensor that the hook reads. `is_own`: the hook is on it, and must not hold it.
  void read(const at::Tensor& tensor, bool is_own) {
    Read& read = reads_.emplace_back();
    if (!is_own) {
      read.tensor = tensor;
      return;
    }
    read.tensor = tensor.detach();
    read.own = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>(
        tensor.getIntrusivePtr());
    const auto edge = torch::autograd::impl::gradient_edge(tensor);
    read.node = c10::weak_intrusive_ptr<torch::autograd::Node>(edge.function);
    read.result = edge.input_nr;
  }

  at::Tensor operator()(const at::Tensor& gradient) const {
    const RecordedBackward& backward = does_->backwards.at(gradient.defined() ? 1 : 0);
    if (backward.error) std::rethrow_exception(backward.error);
    std::vector<at::Tensor> values;
    for (const Read& read : reads_) values.push_back(tensor_of(read));
    if (gradient.defined()) values.push_back(gradient);
    values.resize(backward.value_count);
    for (const RecordedOp& op : backward.ops) call(op, values);
    const auto& given = backward.gradients.front();
    return given ? values[given->index] : at::Tensor();
  }

 private:
  struct Read {
    at::Tensor tensor;
    std::optional<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> own{};
    std::optional<c10::weak_intrusive_ptr<torch::autograd::Node>> node{};
    uint32_t result = 0;
  };

  /// If its own tensor is gone, the node that a backward has come to is not.
  static at::Tensor tensor_of(const Read& read) {
    if (!read.own) return read.tensor;
    if (auto own = read.own->lock()) return at::Tensor(std::move(own));
    if (!c10::GradMode::is_enabled()) return read.tensor;
    auto node = read.node->lock();
    TORCH_INTERNAL_ASSERT(node, "a hook is called on a history that is gone");
    at::Tensor tensor = read.tensor.detach();
    torch::autograd::impl::set_gradient_edge(tensor, {std::move(node), read.result});
    return tensor;
  }

  static void call(const RecordedOp& op, std::vector<at::Tensor>& values) {
    const c10::AutoGradMode grad_mode(op.modes.grad_mode && c10::GradMode::is_enabled());
    torch::jit::Stack stack;
    push_arguments(stack, op.op, op.args, [&](ValueId id) { return values[id.index]; });
    op.op.callBoxed(&stack);
    take_results(stack, op.results,
                 [&](ValueId id, at::Tensor&& tensor) { values[id.index] = std::move(tensor); });
  }

  std::shared_ptr<const RecordedNode> does_;
  std::vector<Read> reads_;
};

namespace {

const at::Tensor& find(const CallTensor& tensor, std::span<const at::Tensor> inputs,
                       std::span<const at::Tensor> outputs) {
  if (const auto* input = std::get_if<InputIndex>(&tensor)) return inputs[input->index];
  return outputs[std::get<OutputIndex>(tensor).index];
}

void add(const at::Tensor& tensor, const std::shared_ptr<HookOfCall>& hook) {
  tensor.register_hook([hook](const at::Tensor& gradient) { return (*hook)(gradient); });
}

}  // namespace

CallHooks::CallHooks(const ViewAndMutationMeta& meta) : meta_(meta) {
  for (const VisibleHook& hook : meta.hooks)
    hooks_.push_back(std::make_shared<HookOfCall>(hook.does));
}

CallHooks::~CallHooks() = default;

void CallHooks::register_first(std::span<const at::Tensor> inputs) {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    if (meta_.hooks[i].is_first) add(find(meta_.hooks[i].tensor, inputs, {}), hooks_[i]);
  }
}

void CallHooks::finish(std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    const VisibleHook& hook = meta_.hooks[i];
    const at::Tensor& tensor = find(hook.tensor, inputs, outputs);
    if (!hook.is_first) add(tensor, hooks_[i]);
    for (const CallTensor& saved : hook.saved)
      hooks_[i]->read(find(saved, inputs, outputs), saved == hook.tensor);
  }
  for (size_t i = 0; i < meta_.inputs.size(); ++i) {
    if (meta_.inputs[i].retains_grad) inputs[i].retain_grad();
  }
  for (size_t i = 0; i < meta_.outputs.size(); ++i) {
    if (meta_.outputs[i].retains_grad) outputs[i].retain_grad();
  }
}

}  // namespace foregrad
