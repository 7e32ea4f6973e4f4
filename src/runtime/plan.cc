// Problem. A run through ATen must hold no tensor longer than the graph needs it, and must cost
// little beside the kernels.
//
// Idea. All that depends on the graph alone is decided once:
//
// - Values live in registers, numbered from 0. A walk backward over the nodes finds each value's
//   last use; a walk forward gives each value that is read a register that is free then. Input i
//   starts in register i, so the vector of inputs itself becomes the register file.
// - The last use moves the tensor out of its register onto the stack. ATen then holds the only
//   reference, and the tensor dies with the call. A use that is not the last copies a reference.
// - Literals become the stack entries that they will be. A run only copies them.
// - A node that overwrites calls the in-place variant, whose result is the argument itself.
//
// Cost. Linear in the graph to compile; a run allocates the register file, the stack, the outputs,
// and the lists that operators take. Runs share nothing that changes, so they need no lock.
#include "runtime/plan.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "graph/alias.h"
#include "graph/below_autograd.h"
#include "graph/call.h"

namespace foregrad {
namespace {

bool writes(const c10::Argument& parameter) {
  return parameter.alias_info() && parameter.alias_info()->isWrite();
}

/// Says whether `variant` is `functional` but for writing argument `overwritten`, its one result.
bool is_in_place_variant(const c10::FunctionSchema& variant, const c10::FunctionSchema& functional,
                         uint32_t overwritten) {
  const auto& parameters = variant.arguments();
  if (parameters.size() != functional.arguments().size() || variant.returns().size() != 1 ||
      functional.returns().size() != 1 || overwritten >= parameters.size() ||
      !writes(parameters[overwritten])) {
    return false;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (*parameters[i].real_type() != *functional.arguments()[i].real_type()) return false;
    if (i != overwritten && writes(parameters[i])) return false;
  }
  return true;
}

/// Finds `name_` of the same overload. Some in-place overloads leave out that `self` is a tensor:
/// `pow.Tensor_Scalar`, `pow_.Scalar`.
std::optional<c10::OperatorHandle> find_in_place_variant(const c10::OperatorHandle& op,
                                                         uint32_t overwritten) {
  constexpr std::string_view kSelfIsTensor = "Tensor_";
  const c10::OperatorName& name = op.operator_name();
  const std::string& overload = name.overload_name;
  const std::array<std::string, 2> overloads = {
      overload, overload.starts_with(kSelfIsTensor) ? overload.substr(kSelfIsTensor.size()) : ""};
  for (const std::string& candidate : overloads) {
    auto variant = c10::Dispatcher::singleton().findSchema({name.name + "_", candidate});
    if (variant && is_in_place_variant(variant->schema(), op.schema(), overwritten)) return variant;
  }
  return std::nullopt;
}

bool has_declared_strides(const at::Tensor& tensor, const TensorType& type) {
  if (tensor.numel() == 0) return true;
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (type.sizes[i] > 1 && tensor.strides()[i] != type.strides[i]) return false;
  }
  return true;
}

bool has_declared_dtype_and_sizes(const at::Tensor& tensor, const TensorType& type) {
  return tensor.defined() && tensor.scalar_type() == type.dtype &&
         tensor.sizes() == at::IntArrayRef(type.sizes);
}

std::string found_text(const at::Tensor& tensor) {
  return tensor.defined() ? to_text(type_of(tensor)) : "an undefined tensor";
}

/// Returns the same elements as an element `offset` of a storage of `bytes` bytes that lies in the
/// tensor's.
at::Tensor over_part(const at::Tensor& tensor, int64_t offset, int64_t bytes) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto item = static_cast<int64_t>(tensor.element_size());
  const c10::Storage& storage = tensor.storage();
  auto* data = static_cast<char*>(const_cast<void*>(storage.data())) +
               (tensor.storage_offset() - offset) * item;
  auto* holder = new c10::Storage(storage);
  c10::DataPtr begin(
      data, holder, [](void* held) { delete static_cast<c10::Storage*>(held); }, storage.device());
  const c10::Storage part(c10::Storage::use_byte_size_t{}, bytes, std::move(begin));
  TensorType type = type_of(tensor);
  type.storage_offset = offset;
  return tensor_over(part, type);
}

at::Tensor beginning_at(const at::Tensor& tensor, int64_t offset) {
  const int64_t shift = tensor.storage_offset() - offset;
  if (shift == 0) return tensor;
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  // An empty tensor may begin past the end of its storage.
  return over_part(
      tensor, offset,
      std::max<int64_t>(bytes - shift * static_cast<int64_t>(tensor.element_size()), 0));
}

bool is_functional(const c10::FunctionSchema& schema) {
  return std::ranges::none_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr;
  });
}

/// Operators that copy a whole storage (`copy`, `slice_scatter`) want it to end with an element,
/// which one of a view of another dtype need not.
at::Tensor over_whole_elements(at::Tensor tensor) {
  if (!tensor.defined()) return tensor;
  const size_t bytes = tensor.storage().nbytes();
  const size_t rest = bytes & (tensor.element_size() - 1);
  if (rest == 0) return tensor;
  return over_part(tensor, tensor.storage_offset(), static_cast<int64_t>(bytes - rest));
}

constexpr bool kChecked = FOREGRAD_CHECKED;

}  // namespace

// ---- compiling

class Plan::Compiler {
 public:
  Compiler(const Graph& graph, Plan& plan)
      : graph_(graph), plan_(plan), uses_(graph.values.size()), slots_(graph.values.size()) {}

  void run() {
    count_uses();
    place_inputs();
    plan_.steps_.reserve(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      node_ = &graph_.nodes[i];
      node_index_ = i;
      plan_.steps_.push_back(step(*node_));
    }
    node_ = nullptr;
    plan_.outputs_.reserve(graph_.outputs.size());
    for (const GraphOutput& output : graph_.outputs) {
      plan_.outputs_.push_back(output.value ? std::optional(read(*output.value)) : std::nullopt);
    }
    if (std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                    [](const Node& node) { return takes_offset(node.op); })) {
      for (uint32_t i = 0; i < graph_.inputs.size(); ++i) {
        const ValueId value = graph_.inputs[i].value;
        plan_.input_offsets_.push_back(graph_.type(value).storage_offset);
        for (uint32_t o = 0; o < graph_.outputs.size(); ++o) {
          if (graph_.outputs[o].value == value) plan_.returned_inputs_.emplace_back(o, i);
        }
      }
    }
    if (kChecked) {
      plan_.types_ = graph_.values;
      plan_.input_values_ = graph_.inputs;
    }
  }

 private:
  void count_uses() {
    const auto count = [this](ValueId value) { ++uses_.at(value.index); };
    for (const Node& node : graph_.nodes) for_each_read(node, count);
    for (const GraphOutput& output : graph_.outputs) {
      if (output.value) count(*output.value);
    }
  }

  void place_inputs() {
    plan_.input_count_ = plan_.slot_count_ = graph_.inputs.size();
    for (uint32_t i = 0; i < graph_.inputs.size(); ++i) {
      const ValueId value = graph_.inputs[i].value;
      if (uses_.at(value.index) > 0) {
        slots_[value.index] = i;
      } else {
        plan_.unread_inputs_.push_back(i);
        free_slots_.push_back(i);
      }
    }
  }

  Step step(const Node& node) {
    Step step{.op = operator_of(node),
              .args = {},
              .results = {},
              .is_functional = !node.overwrites && is_functional(node.op.schema())};
    const auto& parameters = step.op.schema().arguments();
    TORCH_INTERNAL_ASSERT(node.args.size() == parameters.size(), "plan: ", place(), ": expected ",
                          parameters.size(), " arguments, got ", node.args.size());
    step.args.reserve(node.args.size());
    for (size_t i = 0; i < node.args.size(); ++i) {
      step.args.push_back(argument(node.args[i], *parameters[i].real_type()));
    }
    step.results.reserve(node.results.size());
    for (const Operand& operand : node.results) step.results.push_back(result(operand));
    plan_.stack_depth_ = std::max({plan_.stack_depth_, step.args.size(), step.results.size()});
    return step;
  }

  c10::OperatorHandle operator_of(const Node& node) const {
    if (!node.overwrites) return node.op;
    const auto variant = find_in_place_variant(node.op, *node.overwrites);
    TORCH_CHECK(variant, "plan: ", place(), " overwrites argument ", *node.overwrites,
                ": expected an in-place variant `", node.op.operator_name().name,
                "_` that writes this argument and takes the same others, got none; mark only nodes "
                "whose operator has one");
    return *variant;
  }

  Argument argument(const Operand& operand, const c10::Type& type) {
    if (const auto* value = std::get_if<ValueId>(&operand)) return read(*value);
    if (const auto* list = std::get_if<ValueList>(&operand)) return read_list(*list, type);
    return to_stack_entry(operand, type, [](ValueId) { return at::Tensor(); });
  }

  ReadList read_list(const ValueList& list, const c10::Type& type) {
    ReadList reads;
    reads.entries.reserve(list.size());
    for (const auto& entry : list) {
      reads.entries.push_back(entry ? std::optional(read(*entry)) : std::nullopt);
    }
    const c10::Type& list_type =
        type.kind() == c10::TypeKind::OptionalType ? *type.containedType(0) : type;
    const c10::TypePtr element = list_type.containedType(0);
    if (element->kind() == c10::TypeKind::OptionalType) reads.optional_element = element;
    return reads;
  }

  Result result(const Operand& operand) {
    if (const auto* value = std::get_if<ValueId>(&operand)) return write(*value);
    if (const auto* list = std::get_if<ValueList>(&operand)) {
      WriteList writes;
      writes.entries.reserve(list->size());
      for (const auto& entry : *list) {
        writes.entries.push_back(entry ? std::optional(write(*entry)) : std::nullopt);
      }
      return writes;
    }
    return std::monostate();
  }

  Read read(ValueId value) {
    const std::optional<uint32_t> slot = slots_.at(value.index);
    TORCH_CHECK(slot, "plan: ", place(), " reads %", value.index,
                ": expected an input or a node before it to define the value, got none");
    const bool last = --uses_[value.index] == 0;
    if (last) free_slots_.push_back(*slot);
    return {.slot = *slot, .last = last};
  }

  Write write(ValueId value) {
    if (uses_.at(value.index) == 0) return {.value = value, .slot = std::nullopt};
    uint32_t slot = 0;
    if (free_slots_.empty()) {
      slot = static_cast<uint32_t>(plan_.slot_count_++);
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    slots_[value.index] = slot;
    return {.value = value, .slot = slot};
  }

  std::string place() const {
    if (!node_) return "an output";
    return fmt::format("node {} (`{}`)", node_index_, operator_text(node_->op));
  }

  const Graph& graph_;
  Plan& plan_;
  std::vector<uint32_t> uses_;                  // by ValueId: how many are still to come
  std::vector<std::optional<uint32_t>> slots_;  // by ValueId
  std::vector<uint32_t> free_slots_;
  const Node* node_ = nullptr;  // none: the outputs
  size_t node_index_ = 0;
};

Plan::Plan(const Graph& graph) { Compiler(graph, *this).run(); }

// ---- running

class Plan::Execution {
 public:
  Execution(const Plan& plan, std::vector<at::Tensor> inputs)
      : plan_(plan), registers_(std::move(inputs)) {
    for (const uint32_t slot : plan.unread_inputs_) registers_[slot].reset();
    registers_.resize(plan.slot_count_);
    stack_.reserve(plan.stack_depth_);
  }

  std::vector<at::Tensor> run() {
    {
      const BelowAutograd below;
      for (const Step& step : plan_.steps_) {
        for (const Argument& argument : step.args) push(argument, step.is_functional);
        step.op.callBoxed(stack_);
        take_results(step);
      }
    }
    std::vector<at::Tensor> outputs;
    outputs.reserve(plan_.outputs_.size());
    for (const auto& output : plan_.outputs_) {
      outputs.push_back(output ? take(*output) : at::Tensor());
    }
    return outputs;
  }

 private:
  at::Tensor take(Read read) {
    at::Tensor& tensor = registers_[read.slot];
    return read.last ? std::move(tensor) : tensor;
  }

  void push(const Argument& argument, bool may_copy_storage) {
    if (const auto* read = std::get_if<Read>(&argument)) {
      stack_.emplace_back(may_copy_storage ? over_whole_elements(take(*read)) : take(*read));
    } else if (const auto* list = std::get_if<ReadList>(&argument)) {
      push_list(*list);
    } else {
      stack_.push_back(std::get<c10::IValue>(argument));
    }
  }

  void push_list(const ReadList& list) {
    if (list.optional_element) {
      c10::impl::GenericList tensors(list.optional_element);
      tensors.reserve(list.entries.size());
      for (const auto& entry : list.entries) {
        tensors.push_back(entry ? c10::IValue(take(*entry)) : c10::IValue());
      }
      stack_.emplace_back(std::move(tensors));
      return;
    }
    c10::List<at::Tensor> tensors;
    tensors.reserve(list.entries.size());
    for (const auto& entry : list.entries) {
      tensors.push_back(entry ? take(*entry) : at::Tensor());
    }
    stack_.emplace_back(std::move(tensors));
  }

  void take_results(const Step& step) {
    for (size_t i = 0; i < step.results.size(); ++i) {
      if (const auto* write = std::get_if<Write>(&step.results[i])) {
        put(step, *write, std::move(stack_[i]).toTensor());
      } else if (const auto* writes = std::get_if<WriteList>(&step.results[i])) {
        take_list(step, *writes, std::move(stack_[i]).toTensorList());
      }
    }
    stack_.clear();
  }

  void take_list(const Step& step, const WriteList& writes, const c10::List<at::Tensor>& tensors) {
    TORCH_CHECK(tensors.size() == writes.entries.size(), "plan: `", operator_text(step.op),
                "`: expected a list of ", writes.entries.size(), " tensors, got ", tensors.size());
    for (size_t k = 0; k < writes.entries.size(); ++k) {
      if (writes.entries[k]) put(step, *writes.entries[k], tensors.get(k));
    }
  }

  void put(const Step& step, const Write& write, at::Tensor result) {
    if (kChecked) plan_.check_result(step, write.value, result);
    if (write.slot) registers_[*write.slot] = std::move(result);
  }

  const Plan& plan_;
  std::vector<at::Tensor> registers_;
  torch::jit::Stack stack_;
};

std::vector<at::Tensor> Plan::run(std::vector<at::Tensor> inputs) const {
  TORCH_CHECK(inputs.size() == input_count_, "plan: expected ", input_count_, " inputs, got ",
              inputs.size());
  if (kChecked) check_inputs(inputs);
  const bool moves = !input_offsets_.empty() && begins_elsewhere(inputs);
  if (!moves) return Execution(*this, std::move(inputs)).run();
  const std::vector<at::Tensor> originals = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = beginning_at(inputs[i], input_offsets_[i]);
  std::vector<at::Tensor> outputs = Execution(*this, std::move(inputs)).run();
  for (const auto& [output, input] : returned_inputs_) outputs[output] = originals[input];
  return outputs;
}

bool Plan::begins_elsewhere(const std::vector<at::Tensor>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].storage_offset() != input_offsets_[i]) return true;
  }
  return false;
}

// ---- checking

void Plan::check_inputs(const std::vector<at::Tensor>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = types_.at(input_values_[i].value.index);
    TORCH_CHECK(has_declared_dtype_and_sizes(inputs[i], type), "plan: input ", i, " (`",
                to_text(input_values_[i].role), "`): expected ", to_text(type), ", got ",
                found_text(inputs[i]));
  }
}

void Plan::check_result(const Step& step, ValueId value, const at::Tensor& result) const {
  const TensorType& type = types_.at(value.index);
  TORCH_CHECK(has_declared_dtype_and_sizes(result, type) && has_declared_strides(result, type),
              "plan: node ", &step - steps_.data(), " (`", operator_text(step.op), "`), value %",
              value.index, ": expected ", to_text(type), ", got ", found_text(result));
}

Executable through_aten(const Graph& graph) {
  return [plan = std::make_shared<const Plan>(graph)](std::vector<at::Tensor> inputs) {
    return plan->run(std::move(inputs));
  };
}

}  // namespace foregrad
