#include "cli/fuzz/edits.h"

#include <utility>

namespace foregrad::cli::fuzz {
namespace {

/// A list of instructions with what refers to its values: `first` values come before them.
struct Section {
  std::vector<Instruction>& instructions;
  std::vector<Ref>& results;
  size_t first;
};

/// Takes one value out: references to it become references to `replacement`, later values move up.
void renumber(std::vector<Ref>& refs, size_t value, Ref replacement) {
  for (Ref& ref : refs) {
    if (ref.value == value) ref = replacement;
    if (ref.value > value) --ref.value;
  }
}

void renumber(const Section& section, size_t value, Ref replacement) {
  for (Instruction& instruction : section.instructions) {
    renumber(instruction.operands, value, replacement);
  }
  renumber(section.results, value, replacement);
}

/// Takes one of the first values out; what used it uses the first that remains.
void erase_first(const Section& section, size_t value) {
  renumber(section, value, Ref{.value = value == 0 ? size_t{1} : size_t{0}});
}

/// Takes an instruction out; what used its result uses its first operand, if it has one.
void erase_instruction(const Section& section, size_t index) {
  const Instruction erased = section.instructions[index];
  section.instructions.erase(section.instructions.begin() + static_cast<ptrdiff_t>(index));
  renumber(section, section.first + index,
           erased.operands.empty() ? Ref{} : erased.operands.front());
}

Section setup_of(Inputs& inputs) { return {inputs.setup, inputs.arguments, inputs.bases.size()}; }

Section body_of(Program& program) {
  return {program.body.instructions, program.body.outputs, program.inputs.arguments.size()};
}

/// Collects the smaller programs.
class Edits {
 public:
  explicit Edits(const Program& program) : program_(program) {}

  std::vector<Program> take() {
    for (int calls = 1; calls < program_.calls; ++calls) {
      simplify([&](Program& p) { p.calls = calls; });
    }
    if (program_.calls < 3) simplify([](Program& p) { p.other = p.inputs; });
    simplify([](Program& p) { p.writes.clear(); });
    simplify([](Program& p) { p.backwards.clear(); });
    cut_body();
    cut_inputs(&Program::inputs);
    if (program_.calls == 3) cut_inputs(&Program::other);
    cut_caller();
    simplify_values();
    return std::move(smaller_);
  }

 private:
  template <class Edit>
  void simplify(const Edit& edit) {
    Program copy = program_;
    edit(copy);
    if (copy != program_) smaller_.push_back(std::move(copy));
  }

  void cut_body() {
    for (size_t i = program_.body.instructions.size(); i-- > 0;) {
      simplify([&](Program& p) { erase_instruction(body_of(p), i); });
    }
    for (size_t i = 0; i < program_.body.outputs.size(); ++i) {
      simplify([&](Program& p) { erase_output(p, i); });
    }
    for (size_t i = 0; i < program_.inputs.arguments.size(); ++i) {
      simplify([&](Program& p) { erase_argument(p, i); });
    }
  }

  static void erase_watched(Program& p, size_t value) {
    std::erase_if(p.watches, [&](const Watch& watch) { return watch.value == value; });
    for (Watch& watch : p.watches) watch.value -= watch.value > value ? 1 : 0;
  }

  static void erase_output(Program& p, size_t i) {
    p.body.outputs.erase(p.body.outputs.begin() + static_cast<ptrdiff_t>(i));
    std::vector<Ref> none;
    erase_first({p.writes, none, 0}, i);
    erase_watched(p, i);
    for (Backward& backward : p.backwards) {
      std::erase(backward.outputs, i);
      for (size_t& output : backward.outputs) output -= output > i ? 1 : 0;
    }
  }

  static void erase_argument(Program& p, size_t i) {
    erase_first(body_of(p), i);
    std::vector<Ref> none;
    erase_first({p.writes, none, 0}, p.body.outputs.size() + i);
    erase_watched(p, p.body.outputs.size() + i);
    for (Inputs* inputs : {&p.inputs, &p.other}) {
      inputs->arguments.erase(inputs->arguments.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  void cut_inputs(Inputs Program::*which) {
    for (size_t i = (program_.*which).setup.size(); i-- > 0;) {
      simplify([&](Program& p) { erase_instruction(setup_of(p.*which), i); });
    }
    for (size_t i = 0; i < (program_.*which).bases.size(); ++i) {
      simplify([&](Program& p) {
        Inputs& inputs = p.*which;
        erase_first(setup_of(inputs), i);
        inputs.bases.erase(inputs.bases.begin() + static_cast<ptrdiff_t>(i));
      });
    }
  }

  void cut_caller() {
    for (size_t i = 0; i < program_.writes.size(); ++i) {
      simplify([&](Program& p) {
        std::vector<Ref> none;
        erase_instruction({p.writes, none, p.body.outputs.size() + p.inputs.arguments.size()}, i);
      });
    }
    for (size_t i = 0; i < program_.backwards.size(); ++i) {
      simplify(
          [&](Program& p) { p.backwards.erase(p.backwards.begin() + static_cast<ptrdiff_t>(i)); });
      for (const size_t output : program_.backwards[i].outputs) {
        simplify([&](Program& p) { std::erase(p.backwards[i].outputs, output); });
      }
      simplify([&](Program& p) { p.backwards[i].tangent = Backward::Tangent::Ones; });
      simplify([&](Program& p) { p.backwards[i].order = 1; });
      simplify([&](Program& p) { p.backwards[i].order = std::min(p.backwards[i].order, 2); });
      simplify([&](Program& p) { p.backwards[i].differentiates_tangents = false; });
      simplify([&](Program& p) { p.backwards[i].is_autocast = false; });
      simplify([&](Program& p) { p.backwards[i].kind = Backward::Kind::Backward; });
    }
    simplify([](Program& p) { p.writes_before_backward = false; });
    simplify([](Program& p) { p.is_interleaved = false; });
    for (size_t i = 0; i < program_.watches.size(); ++i) {
      simplify([&](Program& p) { p.watches.erase(p.watches.begin() + static_cast<ptrdiff_t>(i)); });
    }
  }

  void simplify_values() {
    for (size_t i = 0; i < program_.body.instructions.size(); ++i) {
      simplify([&](Program& p) { p.body.instructions[i].modes.recording = Recording::AsBefore; });
    }
    for (size_t i = 0; i < program_.body.instructions.size(); ++i) {
      simplify([&](Program& p) { p.body.instructions[i].modes.autocast = Autocast::AsBefore; });
    }
    for (Inputs Program::*which : {&Program::inputs, &Program::other}) {
      if (which == &Program::other && program_.calls < 3) continue;
      simplify([&](Program& p) { (p.*which).mode = CallMode::Grad; });
      simplify([&](Program& p) { (p.*which).is_autocast = false; });
      for (size_t i = 0; i < (program_.*which).bases.size(); ++i) {
        simplify([&](Program& p) { (p.*which).bases[i].requires_grad = false; });
        simplify([&](Program& p) { (p.*which).bases[i].type = at::kFloat; });
        simplify([&](Program& p) {
          std::vector<int64_t>& sizes = (p.*which).bases[i].sizes;
          if (!sizes.empty()) sizes.pop_back();
        });
      }
    }
  }

  const Program& program_;
  std::vector<Program> smaller_;
};

}  // namespace

std::vector<Program> smaller_programs(const Program& program) { return Edits(program).take(); }

}  // namespace foregrad::cli::fuzz
