#include "ops/memory_variant.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/DispatchKey.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/alias.h"
#include "graph/call.h"
#include "graph/overlap.h"
#include "graph/tensor_type.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

constexpr std::string_view kAten = "aten::";
constexpr std::string_view kNamespace = "foregrad_memory::";

/// Moves tensors from a memory to a copy of it.
class Move {
 public:
  explicit Move(const at::Tensor& memory)
      : from_(memory.storage()), extent_(extent_of(type_of(memory))) {
    const TensorType bytes{.dtype = at::kByte,
                           .sizes = {extent_.end - extent_.begin},
                           .strides = {1},
                           .storage_offset = extent_.begin};
    to_ = tensor_over(from_, bytes).clone().storage();
  }

  /// Whether the tensor lies in the memory. Another part of one storage may be an input of its own.
  bool moves(const at::Tensor& tensor) const {
    if (!tensor.defined() || !tensor.storage().is_alias_of(from_)) return false;
    const ByteExtent extent = extent_of(type_of(tensor));
    return extent.begin < extent_.end && extent.end > extent_.begin;
  }
  at::Tensor operator()(const at::Tensor& tensor) const {
    TensorType type = type_of(tensor);
    const ByteExtent extent = extent_of(type);
    const auto item = static_cast<int64_t>(tensor.element_size());
    TORCH_CHECK(extent.begin >= extent_.begin && extent.end <= extent_.end, "a tensor `",
                to_text(type), "` lies outside of the memory that is written");
    TORCH_CHECK((extent.begin - extent_.begin) % item == 0, "a tensor `", to_text(type),
                "` begins between elements of the memory that is written");
    type.storage_offset = (extent.begin - extent_.begin) / item;
    return tensor_over(to_, type);
  }

 private:
  c10::Storage from_;
  c10::Storage to_;
  ByteExtent extent_;
};

struct MemoryVariant final : c10::OperatorKernel {
  explicit MemoryVariant(c10::OperatorHandle in_place) : in_place_(std::move(in_place)) {}

  void operator()(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/,
                  torch::jit::Stack* stack) {
    const auto count = static_cast<ptrdiff_t>(in_place_.schema().arguments().size());
    torch::jit::Stack arguments(stack->end() - count, stack->end());
    const at::Tensor memory = (*stack)[stack->size() - count - 1].toTensor();
    stack->resize(stack->size() - count - 1);
    const Move move(memory);
    // What is one tensor stays one.
    std::unordered_map<const c10::TensorImpl*, at::Tensor> moved;
    const auto moved_of = [&](const at::Tensor& tensor) -> at::Tensor {
      if (!move.moves(tensor)) return tensor;
      auto [found, is_new] = moved.try_emplace(tensor.unsafeGetTensorImpl());
      if (is_new) found->second = move(tensor);
      return found->second;
    };
    for (c10::IValue& entry : arguments) change_tensors(entry, moved_of);
    in_place_.callBoxed(&arguments);
    stack->emplace_back(move(memory));
  }

 private:
  c10::OperatorHandle in_place_;
};

bool writes_only_the_first(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  if (arguments.empty() || arguments[0].real_type()->kind() != c10::TypeKind::TensorType ||
      !is_written(op, 0))
    return false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (is_written(op, i) || arguments[i].name() == "memory") return false;
  }
  return op.schema().returns().size() <= 1;
}

class MemoryVariants {
 public:
  MemoryVariants() {
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (op && name.name.starts_with(kAten) && name.name.ends_with('_') &&
          !op->hasTag(at::Tag::inplace_view) && writes_only_the_first(*op))
        define(*op);
    }
  }
  std::optional<c10::OperatorHandle> find(const c10::OperatorHandle& op) const {
    const auto found = variants_.find(op);
    return found == variants_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void define(const c10::OperatorHandle& op) {
    const c10::OperatorName name{
        std::string(kNamespace) + op.operator_name().name.substr(kAten.size()),
        op.operator_name().overload_name};
    std::vector<c10::Argument> arguments{c10::Argument("memory", c10::TensorType::get())};
    for (const c10::Argument& argument : op.schema().arguments()) {
      arguments.emplace_back(argument.name(), argument.type(), argument.real_type(), argument.N(),
                             argument.default_value(), argument.kwarg_only());
    }
    auto& dispatcher = c10::Dispatcher::singleton();
    registrations_.push_back(dispatcher.registerDef(
        c10::FunctionSchema(name.name, name.overload_name, std::move(arguments),
                            {c10::Argument("", c10::TensorType::get())}),
        "defined by Foregrad"));
    const auto implement = [&](c10::DispatchKey key, c10::KernelFunction kernel) {
      registrations_.push_back(dispatcher.registerImpl(name, key, std::move(kernel), std::nullopt,
                                                       nullptr, "defined by Foregrad"));
    };
    implement(c10::DispatchKey::CompositeExplicitAutograd,
              c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<MemoryVariant>(op)));
    // Fallbacks of these would give it copies without the lazy bits: the write would be lost.
    implement(c10::DispatchKey::Conjugate, c10::KernelFunction::makeFallthrough());
    implement(c10::DispatchKey::Negative, c10::KernelFunction::makeFallthrough());
    variants_.emplace(op,
                      dispatcher.findSchemaOrThrow(name.name.c_str(), name.overload_name.c_str()));
  }

  std::vector<c10::RegistrationHandleRAII> registrations_;
  std::unordered_map<c10::OperatorHandle, c10::OperatorHandle> variants_;
};

}  // namespace

bool is_memory_variant(const c10::OperatorHandle& op) {
  return op.operator_name().name.starts_with(kNamespace);
}

std::optional<c10::OperatorHandle> memory_variant(const c10::OperatorHandle& op) {
  // Never destroyed: the dispatcher outlives this library's statics.
  static const auto* const all = new MemoryVariants;
  return all->find(op);
}

}  // namespace foregrad
