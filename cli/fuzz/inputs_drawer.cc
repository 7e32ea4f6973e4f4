#include "cli/fuzz/inputs_drawer.h"

#include <algorithm>

#include "cli/fuzz/instruction_drawer.h"
#include "cli/fuzz/picks.h"

namespace foregrad::cli::fuzz {
namespace {

bool can_require_grad(at::ScalarType type) {
  return c10::isFloatingType(type) || c10::isComplexType(type);
}

Instruction apply_to(const char* expression, Ref ref, Parameters parameters) {
  return {.operation = &operation(expression),
          .operands = {ref},
          .parameters = std::move(parameters),
          .modes = {}};
}

/// Appends what makes a tensor that requires grad and is no leaf, so that it may be written.
Instruction times_one(Ref ref) { return apply_to("x[0] * n[0]", ref, {.numbers = {1}}); }

Base draw_base(Random& random) {
  Base base{.type = draw_type(random), .sizes = draw_sizes(random)};
  base.requires_grad = can_require_grad(base.type) && random.chance(65);
  return base;
}

CallMode draw_mode(Random& random) {
  if (random.chance(92)) return CallMode::Grad;
  return random.one_of({CallMode::NoGrad, CallMode::Inference});
}

/// Builds `draw_other_inputs` argument by argument.
class OtherInputs {
 public:
  explicit OtherInputs(Random& random) : random_(random) {}

  void add(const at::Tensor& argument, const Tensors& earlier) {
    const auto twin = std::ranges::find_if(earlier, [&](const at::Tensor& other) {
      return other.sizes() == argument.sizes() && other.scalar_type() == argument.scalar_type();
    });
    const auto index = static_cast<size_t>(twin - earlier.begin());
    if (twin != earlier.end() && index < arguments_.size() && random_.chance(40)) {
      arguments_.push_back(arguments_[index]);
    } else if (random_.chance(50)) {
      arguments_.push_back(slice_of_pool(argument));
    } else {
      arguments_.push_back(apart(argument));
    }
  }

  /// Returns what was added, in order; values of bases come before those of instructions.
  Inputs take() {
    Inputs inputs{.bases = std::move(bases_), .setup = {}, .arguments = {}};
    const auto place = [&](Handle handle) {
      return Ref{.value = handle.is_base ? handle.index : inputs.bases.size() + handle.index};
    };
    for (size_t i = 0; i < setup_.size(); ++i) {
      setup_[i].operands = {place(sources_[i])};
      inputs.setup.push_back(std::move(setup_[i]));
    }
    for (const Handle handle : arguments_) inputs.arguments.push_back(place(handle));
    inputs.mode = draw_mode(random_);
    inputs.is_autocast = random_.chance(4);
    return inputs;
  }

 private:
  struct Handle {
    bool is_base;
    size_t index;
  };

  /// A row of memory that several arguments of one type are slices of.
  struct Pool {
    at::ScalarType type;
    Handle handle;
    int64_t elements;
  };

  Handle add_base(at::ScalarType type, std::vector<int64_t> sizes, bool requires_grad) {
    bases_.push_back({.type = type, .sizes = std::move(sizes), .requires_grad = requires_grad});
    return {.is_base = true, .index = bases_.size() - 1};
  }

  Handle add_setup(Instruction instruction, Handle source) {
    setup_.push_back(std::move(instruction));
    sources_.push_back(source);
    return {.is_base = false, .index = setup_.size() - 1};
  }

  Handle apart(const at::Tensor& argument) {
    const Handle base =
        add_base(argument.scalar_type(), argument.sizes().vec(), argument.requires_grad());
    return argument.is_leaf() ? base : add_setup(times_one({}), base);
  }

  Handle slice_of_pool(const at::Tensor& argument) {
    const at::ScalarType type = argument.scalar_type();
    const int64_t elements = argument.numel() + 2;
    auto pool = std::ranges::find_if(
        pools_, [&](const auto& p) { return p.type == type && p.elements >= elements; });
    if (pool == pools_.end()) {
      const bool requires_grad = argument.requires_grad();
      Handle handle = add_base(type, {elements}, requires_grad);
      if (requires_grad) handle = add_setup(times_one({}), handle);
      pools_.push_back({.type = type, .handle = handle, .elements = elements});
      pool = pools_.end() - 1;
    }
    Parameters parameters{.numbers = {random_.between(0, 2)}, .shape = argument.sizes().vec()};
    int64_t stride = 1;
    for (size_t dim = parameters.shape.size(); dim-- > 0;) {
      parameters.steps.insert(parameters.steps.begin(), stride);
      stride *= std::max<int64_t>(parameters.shape[dim], 1);
    }
    return add_setup(apply_to("x[0].as_strided(shape, steps, n[0])", {}, parameters), pool->handle);
  }

  Random& random_;
  std::vector<Base> bases_;
  std::vector<Instruction> setup_;
  std::vector<Handle> sources_;  // the operand of each instruction
  std::vector<Handle> arguments_;
  std::vector<Pool> pools_;
};

}  // namespace

Inputs draw_inputs(Random& random) {
  Inputs inputs;
  Values values;
  for (int64_t i = random.between(1, 3); i > 0; --i) {
    inputs.bases.push_back(draw_base(random));
    values.push_back({make_base(inputs.bases.back(), static_cast<uint64_t>(i))});
  }
  InstructionDrawer drawer(random, std::move(values));
  for (size_t i = 0; i < inputs.bases.size(); ++i) {
    if (inputs.bases[i].requires_grad && random.chance(70)) drawer.append(times_one({.value = i}));
  }
  for (int64_t i = random.one_of({0, 0, 0, 1, 1, 2, 2, 3}); i > 0; --i) drawer.draw({.view = 1});
  for (int64_t i = random.one_of({1, 1, 2, 2, 2, 3, 3, 4}); i > 0; --i) {
    const Ref ref = drawer.draw_ref();
    if (ref.part < drawer.values()[ref.value].size()) inputs.arguments.push_back(ref);
  }
  inputs.setup = drawer.take();
  inputs.mode = draw_mode(random);
  inputs.is_autocast = random.chance(4);
  return inputs;
}

Inputs draw_other_inputs(Random& random, const Tensors& arguments) {
  OtherInputs other(random);
  Tensors earlier;
  for (const at::Tensor& argument : arguments) {
    other.add(argument, earlier);
    earlier.push_back(argument);
  }
  return other.take();
}

}  // namespace foregrad::cli::fuzz
