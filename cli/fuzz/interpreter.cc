#include "cli/fuzz/interpreter.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace foregrad::cli::fuzz {
namespace {

/// The data of all bases; the printed programs compute it in the same way.
int64_t datum(int64_t index, uint64_t data_seed, int64_t modulus) {
  return (index * 5 + static_cast<int64_t>(data_seed) * 7) % modulus;
}

void append(const Tensors& tensors, Tensors& all) {
  all.insert(all.end(), tensors.begin(), tensors.end());
}

}  // namespace

const at::Tensor& value_of(const Values& values, Ref ref) {
  TORCH_CHECK_INDEX(ref.value < values.size() && ref.part < values[ref.value].size(), "no value ",
                    ref.value, " with a part ", ref.part);
  return values[ref.value][ref.part];
}

Values to_values(const Tensors& tensors) {
  Values values;
  values.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) values.push_back({tensor});
  return values;
}

void run(const Instruction& instruction, Values& values) {
  Tensors operands;
  operands.reserve(instruction.operands.size());
  for (const Ref ref : instruction.operands) operands.push_back(value_of(values, ref));
  const Modes modes = instruction.modes;
  const bool is_recording = modes.recording == Recording::AsBefore
                                ? c10::GradMode::is_enabled()
                                : modes.recording == Recording::On;
  const c10::AutoGradMode mode(is_recording);
  std::optional<AutocastScope> autocast;
  if (modes.autocast != Autocast::AsBefore) autocast.emplace(modes.autocast == Autocast::On);
  values.push_back(instruction.operation->apply(operands, instruction.parameters));
}

namespace {

Values run_all(const Body& body, const Tensors& arguments) {
  Values values = to_values(arguments);
  values.reserve(values.size() + body.instructions.size());
  for (const Instruction& instruction : body.instructions) run(instruction, values);
  return values;
}

}  // namespace

bool meets_empty(const Body& body, const Tensors& arguments) {
  const auto has_empty = [](const Tensors& tensors) {
    return std::ranges::any_of(tensors, [](const at::Tensor& t) { return t.numel() == 0; });
  };
  return std::ranges::any_of(run_all(body, arguments), has_empty);
}

Tensors run(const Body& body, const Tensors& arguments) {
  const Values values = run_all(body, arguments);
  Tensors outputs;
  outputs.reserve(body.outputs.size());
  for (const Ref ref : body.outputs) outputs.push_back(value_of(values, ref));
  return outputs;
}

AutocastScope::AutocastScope(bool is_enabled)
    : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
      kept_casts_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_enabled(at::kCPU, is_enabled);
  at::autocast::set_autocast_cache_enabled(false);
}

AutocastScope::~AutocastScope() {
  at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
  at::autocast::set_autocast_cache_enabled(kept_casts_);
}

at::Tensor make_base(const Base& base, uint64_t data_seed) {
  const bool has_quarters = c10::isFloatingType(base.type) || c10::isComplexType(base.type);
  at::Tensor tensor = at::empty(base.sizes, has_quarters ? at::kFloat : at::kLong);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (has_quarters) {
      tensor.data_ptr<float>()[i] = static_cast<float>(datum(i, data_seed, 17) - 8) / 4;
    } else {
      tensor.data_ptr<int64_t>()[i] = datum(i, data_seed, 3);
    }
  }
  return tensor.to(base.type).set_requires_grad(base.requires_grad);
}

Prepared prepare(const Inputs& inputs, uint64_t data_seed) {
  Values values;
  for (const Base& base : inputs.bases) values.push_back({make_base(base, data_seed++)});
  for (const Instruction& instruction : inputs.setup) run(instruction, values);
  Prepared prepared;
  for (const Tensors& tensors : values) append(tensors, prepared.visible);
  for (const Ref ref : inputs.arguments) prepared.arguments.push_back(value_of(values, ref));
  return prepared;
}

}  // namespace foregrad::cli::fuzz
