// Runs rows of the table on operands that fit.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "cli/fuzz/operation.h"

namespace foregrad::cli::fuzz::testing {

/// Runs a row on drawn parameters and one of several operands. Returns nothing if it always threw.
inline Tensors run_somehow(const Operation& row) {
  Random random(3);
  for (int attempt = 0; attempt < 200; ++attempt) {
    const at::Tensor operand =
        random.one_of({at::rand({2, 2}), at::rand({4}), at::rand({1, 2, 2}),
                       at::rand({2, 2}, at::kComplexFloat), at::zeros({2, 2}, at::kLong)});
    Parameters parameters;
    if (!row.pick(random, operand, parameters)) continue;
    try {
      Tensors operands;
      for (size_t i = 0; i < row.operands; ++i) operands.push_back(operand.clone());
      Tensors result = row.apply(operands, parameters);
      if (!result.empty()) return result;
    } catch (const c10::Error&) {  // another operand may fit
    }
  }
  return {};
}

inline void expect_each_row_runs(const Operations& rows) {
  for (const Operation& row : rows) EXPECT_FALSE(run_somehow(row).empty()) << row.expression;
}

}  // namespace foregrad::cli::fuzz::testing
