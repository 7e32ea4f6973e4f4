#include "capture/tracer.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>

#include "capture/registration.h"
#include "capture/strided_views.h"
#include "capture/trace_tensor.h"
#include "capture/undeclared_writes.h"

namespace foregrad {

namespace {
thread_local Tracer* current_tracer = nullptr;

TensorType traced_type_of(const at::Tensor& meta) {
  TensorType type = type_of(meta);
  type.device = c10::kCPU;  // a trace tensor reports CPU whatever its meta tensor says
  return type;
}
}  // namespace

Tracer::Tracer(Keep keep, const Decompositions* decompositions)
    : keeps_nodes_(keep == Keep::Nodes), decompositions_(decompositions) {
  // Naming it here keeps the handlers in a program that links this library statically.
  TORCH_INTERNAL_ASSERT(registered_operators() > 0, "the trace key has no handlers");
  keep_undeclared_writes();
  keep_strided_views();
}

Tracer* Tracer::current() { return current_tracer; }

at::Tensor Tracer::make_input(const TensorType& type, const InputRole& role) {
  auto stand_in = define(make_meta(type));
  if (keeps_nodes_) graph_.inputs.push_back({as_trace_tensor(stand_in)->value(), role});
  return stand_in;
}

at::Tensor Tracer::define(at::Tensor meta) {
  const ValueId id{value_count_++};
  if (keeps_nodes_) graph_.values.push_back(traced_type_of(meta));
  return make_trace_tensor(std::move(meta), id);
}

void Tracer::append(Node node) {
  node.phase = phase_;
  graph_.nodes.push_back(std::move(node));
}

void Tracer::count_last_resort(const c10::OperatorHandle& op) {
  ++last_resort_shapes_[operator_text(op)];
}

bool Tracer::decompose(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (!decompositions_) return false;
  const std::string name = operator_text(op);
  const auto found = decompositions_->find(name);
  if (found == decompositions_->end() || !decomposed_.insert(name).second) return false;
  const auto begin = stack.end() - static_cast<ptrdiff_t>(op.schema().arguments().size());
  std::vector<c10::IValue> results;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::AutoDispatchSkipFunctionalize functional;
    results = found->second({begin, stack.end()});
  }
  decomposed_.erase(name);
  TORCH_CHECK(results.size() == op.schema().returns().size(), "the decomposition of `", name,
              "` gives ", results.size(), " results. Expected ", op.schema().returns().size(),
              ", as its schema says.");
  stack.erase(begin, stack.end());
  for (c10::IValue& result : results) stack.push_back(std::move(result));
  return true;
}

Tracer::Scope::Scope(Tracer& tracer) : previous_(current_tracer) { current_tracer = &tracer; }
Tracer::Scope::~Scope() { current_tracer = previous_; }

}  // namespace foregrad
