#include "runtime/backwards.h"

#include <c10/util/Exception.h>

namespace foregrad {

namespace {

constexpr size_t kMostLayouts = 32;

}  // namespace

Backwards::Backwards(std::vector<TensorType> tangents, BackwardMaker maker,
                     std::optional<Backward> traced, const AutocastState& autocast)
    : tangents_(std::move(tangents)), maker_(std::move(maker)) {
  if (!traced) return;
  TangentLayout layout{.strides = {}, .autocast = autocast};
  for (const TensorType& type : tangents_) layout.strides.emplace_back(type.strides);
  backwards_.emplace(std::move(layout), *std::move(traced));
}

/// The tangents are copied into the layout that they were traced with.
TangentLayout Backwards::as_traced(const TangentLayout& layout) const {
  TangentLayout traced = layout;
  for (size_t i = 0; i < traced.strides.size(); ++i) {
    if (traced.strides[i]) traced.strides[i] = tangents_[i].strides;
  }
  return traced;
}

const Backward& Backwards::backward_for(const TangentLayout& layout) {
  std::lock_guard lock(mutex_);
  if (const auto found = backwards_.find(layout); found != backwards_.end()) return found->second;
  if (backwards_.size() < kMostLayouts) {
    try {
      return backwards_.emplace(layout, maker_.backward(layout)).first->second;
    } catch (const c10::Error&) {
      // In this layout backward would need what was not saved.
    }
  }
  TangentLayout traced = as_traced(layout);
  const auto found = backwards_.find(traced);
  if (found != backwards_.end()) return found->second;
  Backward made = maker_.backward(traced);
  return backwards_.emplace(std::move(traced), std::move(made)).first->second;
}

const DifferentiableBackward& Backwards::differentiable_for(
    const TangentLayout& layout, const std::vector<bool>& requires_grad) {
  std::lock_guard lock(mutex_);
  std::pair key(layout, requires_grad);
  if (const auto found = differentiable_.find(key); found != differentiable_.end())
    return found->second;
  if (differentiable_.size() >= kMostLayouts) {
    key.first = as_traced(layout);
    if (const auto found = differentiable_.find(key); found != differentiable_.end())
      return found->second;
  }
  DifferentiableBackward made;
  try {
    made = maker_.differentiable(key.first, requires_grad);
  } catch (const c10::Error& error) {
    made.refusal = error.what_without_backtrace();
  }
  return differentiable_.emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace foregrad
