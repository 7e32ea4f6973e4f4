#include "cli/fuzz/instruction_drawer.h"

#include <c10/util/Exception.h>

#include <array>
#include <utility>

namespace foregrad::cli::fuzz {
namespace {

constexpr int kAttempts = 4;
constexpr int64_t kMaxElements = 256;

Category draw_category(Random& random, const CategoryWeights& weights) {
  const std::array<std::pair<Category, int>, 6> choices{{{Category::View, weights.view},
                                                         {Category::Compute, weights.compute},
                                                         {Category::Factory, weights.factory},
                                                         {Category::Random, weights.random},
                                                         {Category::Write, weights.write},
                                                         {Category::Metadata, weights.metadata}}};
  int total = 0;
  for (const auto& [category, weight] : choices) total += weight;
  int64_t chosen = random.below(total);
  for (const auto& [category, weight] : choices) {
    chosen -= weight;
    if (chosen < 0) return category;
  }
  return Category::View;
}

bool is_small(const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.numel() > kMaxElements) return false;
  }
  return true;
}

}  // namespace

InstructionDrawer::InstructionDrawer(Random& random, Values values)
    : random_(random), values_(std::move(values)) {}

Ref InstructionDrawer::draw_ref() {
  const auto count = static_cast<int64_t>(values_.size());
  // The later of two draws, half of the time: chains rather than stars.
  int64_t value = random_.below(count);
  if (random_.chance(50)) value = std::max(value, random_.below(count));
  const size_t parts = values_[static_cast<size_t>(value)].size();
  if (parts == 0) return {.value = 0, .part = 0};
  return {.value = static_cast<size_t>(value),
          .part = static_cast<size_t>(random_.below(static_cast<int64_t>(parts)))};
}

Ref InstructionDrawer::draw_partner(const at::Tensor& first) {
  Ref ref = draw_ref();
  for (int attempt = 0; attempt < 6; ++attempt, ref = draw_ref()) {
    const at::Tensor& other = value_of(values_, ref);
    if (other.defined() && first.defined() && other.sizes() == first.sizes()) break;
  }
  return ref;
}

Instruction InstructionDrawer::begin(const CategoryWeights& weights) {
  return {.operation = &draw_operation(random_, draw_category(random_, weights)),
          .operands = {},
          .parameters = {},
          .modes = {}};
}

bool InstructionDrawer::complete(Instruction& instruction) {
  at::Tensor first;
  if (instruction.operation->operands > 0) {
    const Ref ref = draw_ref();
    if (ref.part >= values_[ref.value].size()) return false;
    first = values_[ref.value][ref.part];
    if (!first.defined()) return false;
    instruction.operands = {ref};
  }
  while (instruction.operands.size() < instruction.operation->operands) {
    instruction.operands.push_back(draw_partner(first));
  }
  return instruction.operation->pick(random_, first, instruction.parameters);
}

bool InstructionDrawer::append(Instruction instruction) {
  try {
    run(instruction, values_);
  } catch (const c10::Error&) {
    return false;
  }
  if (!is_small(values_.back())) {
    values_.pop_back();
    return false;
  }
  instructions_.push_back(std::move(instruction));
  return true;
}

bool InstructionDrawer::draw(const CategoryWeights& weights, Modes modes) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Instruction instruction = begin(weights);
    instruction.modes = modes;
    if (complete(instruction) && append(std::move(instruction))) return true;
  }
  return false;
}

void InstructionDrawer::draw_unchecked(const CategoryWeights& weights) {
  Instruction instruction = begin(weights);
  if (complete(instruction)) instructions_.push_back(std::move(instruction));
}

}  // namespace foregrad::cli::fuzz
