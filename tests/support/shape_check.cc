#include "support/shape_check.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>

#include <sstream>

#include "graph/call.h"
#include "graph/tensor_type.h"

namespace foregrad::testing {

namespace {

std::string text_of(const c10::IValue& entry) {
  if (entry.isTensor())
    return entry.toTensor().defined() ? foregrad::to_text(type_of(entry.toTensor())) : "undefined";
  std::ostringstream text;
  if (entry.isTensorList()) {
    for (const at::Tensor& tensor : entry.toTensorVector()) text << text_of(tensor) << " ";
    return "[" + text.str() + "]";
  }
  if (entry.isOptionalTensorList()) {
    for (const auto& tensor : entry.toOptionalTensorVector())
      text << (tensor ? text_of(*tensor) : "none") << " ";
    return "[" + text.str() + "]";
  }
  text << entry;
  return text.str();
}

std::string text_of(const torch::jit::Stack& stack) {
  std::string text;
  for (const c10::IValue& entry : stack) text += (text.empty() ? "" : ", ") + text_of(entry);
  return text;
}

at::Tensor to_meta(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

struct Ran {
  std::optional<torch::jit::Stack> results;
  std::string error;
};

/// Many drawn arguments are odd enough to be warned of.
struct Silence final : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

template <class Call>
Ran run(Call&& call) {
  try {
    return {.results = call(), .error = {}};
  } catch (const c10::Error& error) {
    return {.results = std::nullopt, .error = error.what_without_backtrace()};  // the trace is slow
  } catch (const std::exception& error) {
    std::string text = error.what();
    return {.results = std::nullopt, .error = text.substr(0, text.find('\n'))};
  }
}

/// All that a caller can see but the device. A stride says nothing where no two elements are
/// a step of it apart.
bool is_like(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

bool is_like(const torch::jit::Stack& a, const torch::jit::Stack& b) {
  std::vector<at::Tensor> left, right;
  for (const auto& entry : a)
    for_each_tensor(entry, [&](const at::Tensor& t) { left.push_back(t); });
  for (const auto& entry : b)
    for_each_tensor(entry, [&](const at::Tensor& t) { right.push_back(t); });
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return is_like(x, y); });
}

}  // namespace

std::string call_text(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  return c10::toString(op.operator_name()) + "(" + text_of(arguments) + ")";
}

ShapeFinding compare_shapes(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                            const Inference& infer) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  torch::jit::Stack metas = arguments;
  for (c10::IValue& entry : metas) change_tensors(entry, to_meta);
  const std::string call = call_text(op, arguments);
  const Ran real = run([&] {
    torch::jit::Stack stack = arguments;
    op.callBoxed(&stack);
    return stack;
  });
  bool covered = true;
  const Ran inferred = run([&] {
    auto results = infer(std::move(metas));
    covered = results.has_value();
    return covered ? *results : torch::jit::Stack();
  });
  if (!covered) return {Finding::NotCovered, call};
  if (!real.results && !inferred.results) return {Finding::Invalid, call + ": " + real.error};
  if (!inferred.results) return {Finding::StricterThanIt, call + ": " + inferred.error};
  if (!real.results) return {Finding::CoversInvalid, call + ": " + real.error};
  if (is_like(*inferred.results, *real.results)) return {Finding::Agrees, call};
  return {Finding::Differs,
          call + ": inferred " + text_of(*inferred.results) + ", real " + text_of(*real.results)};
}

Inference meta_kernel(const c10::OperatorHandle& op) {
  return [op](torch::jit::Stack stack) -> std::optional<torch::jit::Stack> {
    for (size_t i = 0; i < stack.size(); ++i) {
      if (stack[i].isDevice() ||
          (stack[i].isNone() && op.schema().arguments()[i].name() == "device"))
        stack[i] = c10::Device(c10::kMeta);
    }
    op.callBoxed(&stack);
    return stack;
  };
}

}  // namespace foregrad::testing
