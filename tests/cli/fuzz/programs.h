// Programs and compilers for tests of the fuzzer.
#pragma once

#include "cli/fuzz/operation.h"
#include "cli/fuzz/program.h"
#include "cli/fuzz/runner.h"

namespace foregrad::cli::fuzz::testing {

inline Instruction instruction(const char* expression, std::vector<Ref> operands,
                               Parameters parameters = {}) {
  return {.operation = &operation(expression),
          .operands = std::move(operands),
          .parameters = std::move(parameters),
          .modes = {}};
}

inline Inputs one_input() {
  return {.bases = {{.type = at::kFloat, .sizes = {2, 3}, .requires_grad = false}},
          .setup = {},
          .arguments = {{.value = 0}}};
}

/// Writes its argument by a view and returns another view of it and a sum.
inline Program small_program() {
  Program program;
  program.inputs = one_input();
  program.other = one_input();
  program.body.instructions = {
      instruction("x[0].select(n[0], n[1])", {{.value = 0}}, {.numbers = {0, 1}}),
      instruction("x[0].add_(n[0])", {{.value = 1}}, {.numbers = {-2}}),
      instruction("x[0].sum()", {{.value = 0}}),
      instruction("x[0].t()", {{.value = 0}}),
  };
  program.body.outputs = {{.value = 4}, {.value = 3}};
  return program;
}

/// Compiles to the function itself.
inline CompiledFunction compile_to_eager(Function function) {
  return {.call = std::move(function), .report = [] { return Report{}; }};
}

/// Makes a compiler whose compiled functions call `wrong` in place of the function.
template <class Wrong>
Compiler wrong_compiler(Wrong wrong) {
  return [wrong](Function function) -> CompiledFunction {
    return {.call = [wrong, function](const Tensors& x) { return wrong(function, x); },
            .report = [] { return Report{}; }};
  };
}

/// Calls the function and returns its first output as a copy of its own.
inline Tensors clone_an_output(const Function& function, const Tensors& x) {
  Tensors outputs = function(x);
  if (!outputs.empty()) outputs[0] = outputs[0].clone();
  return outputs;
}

}  // namespace foregrad::cli::fuzz::testing
