#include "cli/fuzz/generator.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include "cli/fuzz/inputs_drawer.h"
#include "cli/fuzz/instruction_drawer.h"

namespace foregrad::cli::fuzz {
namespace {

constexpr CategoryWeights kBody{
    .view = 32, .compute = 30, .factory = 3, .random = 3, .write = 30, .metadata = 2};
constexpr CategoryWeights kWithoutMetadata{
    .view = 32, .compute = 30, .factory = 3, .random = 3, .write = 30};

/// Draws the function. `drawer` holds the arguments as values.
Body draw_body(Random& random, InstructionDrawer& drawer) {
  // Few programs change metadata, so that what is said about these does not hide all else.
  const CategoryWeights& weights = random.chance(30) ? kBody : kWithoutMetadata;
  const bool has_autocast = random.chance(15);
  Modes modes;
  for (int64_t i = random.between(1, random.chance(30) ? 12 : 6); i > 0; --i) {
    if (random.chance(modes.recording == Recording::AsBefore ? 8 : 35)) {
      modes.recording =
          random.one_of({Recording::AsBefore, Recording::Off, Recording::Off, Recording::On});
    }
    if (has_autocast && random.chance(35))
      modes.autocast = random.one_of({Autocast::AsBefore, Autocast::Off, Autocast::On});
    drawer.draw(weights, modes);
  }
  Body body;
  for (int64_t i = random.one_of({0, 1, 1, 1, 2, 2, 2, 3, 4}); i > 0; --i) {
    const Ref ref = !body.outputs.empty() && random.chance(8) ? body.outputs.back()  //
                                                              : drawer.draw_ref();
    if (ref.part < drawer.values()[ref.value].size()) body.outputs.push_back(ref);
  }
  if (random.chance(3)) drawer.draw_unchecked(weights);
  body.instructions = drawer.take();
  return body;
}

std::vector<Instruction> draw_writes(Random& random, const Tensors& tensors) {
  const c10::AutoGradMode mode(true);
  if (tensors.empty() || random.chance(50)) return {};
  InstructionDrawer drawer(random, to_values(tensors));
  for (int64_t i = random.between(1, 2); i > 0; --i) {
    drawer.draw({.write = 1}, {.recording = random.one_of({Recording::AsBefore, Recording::Off})});
  }
  return drawer.take();
}

std::vector<Watch> draw_watches(Random& random, const Tensors& tensors) {
  std::vector<Watch> watches;
  if (tensors.empty()) return watches;
  for (int64_t i = random.one_of({0, 0, 0, 1, 1, 2}); i > 0; --i) {
    watches.push_back({.kind = random.one_of({Watch::Kind::Hook, Watch::Kind::RetainGrad}),
                       .value = static_cast<size_t>(
                           random.between(0, static_cast<int64_t>(tensors.size()) - 1))});
  }
  return watches;
}

std::vector<Backward> draw_backwards(Random& random, size_t outputs) {
  std::vector<Backward> backwards(static_cast<size_t>(random.one_of({0, 1, 1, 1, 1, 2})));
  for (Backward& backward : backwards) {
    using Kind = Backward::Kind;
    using Tangent = Backward::Tangent;
    backward.kind = random.one_of({Kind::Backward, Kind::Grad});
    backward.tangent = random.one_of({Tangent::Ones, Tangent::Expanded, Tangent::Varied});
    for (size_t i = 0; i < outputs; ++i) {
      if (random.chance(70)) backward.outputs.push_back(i);
    }
  }
  for (Backward& backward : backwards) {
    if (backward.kind != Backward::Kind::Grad) continue;
    backward.order = random.one_of({1, 1, 1, 2, 2, 3});
    backward.differentiates_tangents = backward.order > 1 && random.chance(50);
    backward.is_autocast = random.chance(4);
  }
  return backwards;
}

Tensors tensors_at(const Values& values, const std::vector<Ref>& refs) {
  Tensors tensors;
  for (const Ref ref : refs) tensors.push_back(value_of(values, ref));
  return tensors;
}

}  // namespace

Program draw_program(uint64_t seed, uint64_t number) {
  Random random(seed, number);
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(number);
  Program program;
  program.inputs = draw_inputs(random);
  const Prepared prepared = prepare(program.inputs, /*data_seed=*/0);
  const c10::AutoGradMode mode(program.inputs.mode == CallMode::Grad);
  const AutocastScope autocast(program.inputs.is_autocast);
  program.other = draw_other_inputs(random, prepared.arguments);
  InstructionDrawer drawer(random, to_values(prepared.arguments));
  program.body = draw_body(random, drawer);
  Tensors after = tensors_at(drawer.values(), program.body.outputs);
  after.insert(after.end(), prepared.arguments.begin(), prepared.arguments.end());
  program.writes = draw_writes(random, after);
  program.writes_before_backward = random.chance(40);
  program.backwards = draw_backwards(random, program.body.outputs.size());
  program.watches = draw_watches(random, after);
  program.is_interleaved = random.chance(15);
  return program;
}

}  // namespace foregrad::cli::fuzz
