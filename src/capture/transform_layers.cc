#include "capture/transform_layers.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/ops/_make_dual.h>
#include <ATen/ops/_unpack_dual.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/forward_grad.h>

#include "graph/call.h"

namespace foregrad {

namespace {

namespace functional = at::functionalization::impl;
namespace layers = at::functorch;
using layers::TransformType;

layers::RandomnessType to_libtorch(BatchRandomness randomness) {
  switch (randomness) {
    case BatchRandomness::Same: return layers::RandomnessType::Same;
    case BatchRandomness::Different: return layers::RandomnessType::Different;
    default: return layers::RandomnessType::Error;
  }
}

at::Tensor unwrap_at(int64_t level, const at::Tensor& tensor) {
  const auto* wrapper = layers::maybeGetTensorWrapper(tensor);
  return wrapper && wrapper->level() == level ? wrapper->value() : tensor;
}

thread_local int dual_depth = 0;

}  // namespace

bool is_transforming() { return !layers::getDynamicLayerStack().empty(); }

TransformLevel::~TransformLevel() { layers::popDynamicLayerAndDeleteMetadata(); }

VmapLayer::VmapLayer(int64_t batch_size, BatchRandomness randomness)
    : level_(layers::initAndPushDynamicLayer(TransformType::Vmap, c10::SymInt(batch_size),
                                             to_libtorch(randomness))) {}

at::Tensor VmapLayer::batch(const at::Tensor& tensor, int64_t dim) const {
  return layers::addBatchDim(tensor, dim, level_.number());
}

VmapLayer::Unbatched VmapLayer::unbatch(const at::Tensor& tensor) const {
  const auto* batched = layers::maybeGetBatchedImpl(tensor);
  if (!batched || batched->level() != level_.number())
    return {.tensor = tensor, .dim = std::nullopt};
  return {.tensor = batched->value(), .dim = batched->bdim()};
}

GradLayer::GradLayer()
    : level_(layers::initAndPushDynamicLayer(TransformType::Grad, std::nullopt, std::nullopt,
                                             c10::GradMode::is_enabled())),
      grad_mode_(true) {}

at::Tensor GradLayer::wrap(const at::Tensor& tensor) const {
  return layers::makeTensorWrapper(tensor, level_.number());
}

at::Tensor GradLayer::unwrap(const at::Tensor& tensor) const {
  return unwrap_at(level_.number(), tensor);
}

at::Tensor unwrap_ended(const at::Tensor& tensor) { return layers::unwrapIfDead(tensor); }

void unwrap_ended(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack& stack) {
  if (!keys.has(c10::DispatchKey::FuncTorchGradWrapper)) return;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i)
    change_tensors(stack[i], [](const at::Tensor& tensor) { return layers::unwrapIfDead(tensor); });
}

JvpLayer::DualLevel::DualLevel() {
  if (dual_depth == 0) torch::autograd::ForwardADLevel::get_next_idx();
  ++dual_depth;
}

JvpLayer::DualLevel::~DualLevel() {
  if (--dual_depth == 0) torch::autograd::ForwardADLevel::release_idx(0);
}

JvpLayer::JvpLayer()
    : level_(layers::initAndPushDynamicLayer(
          TransformType::Jvp, std::nullopt, std::nullopt, std::nullopt,
          c10::AutogradState::get_tls_state().get_fw_grad_mode())),
      forward_mode_(true) {}

at::Tensor JvpLayer::pair(const at::Tensor& primal, const at::Tensor& tangent) const {
  return at::_make_dual(primal, tangent, 0);
}

JvpLayer::Parted JvpLayer::part(const at::Tensor& tensor) const {
  const auto [primal, tangent] = at::_unpack_dual(tensor, 0);
  return {.primal = unwrap_at(level_.number(), primal),
          .tangent = tangent.defined() ? unwrap_at(level_.number(), tangent) : tangent};
}

FunctionalizeLayer::FunctionalizeLayer()
    : level_(layers::initAndPushDynamicLayer(TransformType::Functionalize, std::nullopt,
                                             std::nullopt, std::nullopt, std::nullopt,
                                             /*functionalize_add_back_views=*/true)) {}

at::Tensor FunctionalizeLayer::wrap(const at::Tensor& tensor) const {
  at::Tensor wrapped = functional::to_functional_tensor(tensor);
  functional::unsafeGetFunctionalWrapper(wrapped)->set_level(level_.number());
  return wrapped;
}

at::Tensor FunctionalizeLayer::unwrap(const at::Tensor& tensor) const {
  if (!functional::isFunctionalTensor(tensor) ||
      functional::unsafeGetFunctionalWrapper(tensor)->level() != level_.number())
    return tensor;
  functional::sync(tensor);
  return functional::from_functional_tensor(tensor);
}

}  // namespace foregrad
