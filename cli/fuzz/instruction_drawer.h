// Draws instructions that run.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/fuzz/interpreter.h"
#include "cli/fuzz/program.h"
#include "cli/fuzz/random.h"

namespace foregrad::cli::fuzz {

/// How often each category is drawn, in percent of their sum.
struct CategoryWeights {
  int view = 0;
  int compute = 0;
  int factory = 0;
  int random = 0;
  int write = 0;
  int metadata = 0;
};

/// Draws a sequence of instructions, running each: shapes and types of earlier values are at hand,
/// and what eager rejects is dropped. No rule about shapes is written down twice.
class InstructionDrawer {
 public:
  /// Begins with the values that the first instruction may use.
  InstructionDrawer(Random& random, Values values);

  /// Draws one instruction and runs it. Returns false if several attempts threw.
  bool draw(const CategoryWeights& weights, Modes modes = {});

  /// Appends an instruction that eager rejects, or is likely to; nothing can follow it.
  void draw_unchecked(const CategoryWeights& weights);

  /// Runs and appends a given instruction. Returns false, and appends nothing, if it throws.
  bool append(Instruction instruction);

  /// Draws one of the values: later ones more often.
  Ref draw_ref();

  const Values& values() const { return values_; }
  std::vector<Instruction> take() { return std::move(instructions_); }

 private:
  Ref draw_partner(const at::Tensor& first);
  bool complete(Instruction& instruction);
  Instruction begin(const CategoryWeights& weights);

  Random& random_;
  Values values_;
  std::vector<Instruction> instructions_;
};

}  // namespace foregrad::cli::fuzz
