// What gradients between results, and gradients inside of a loss, cost.
#pragma once

#include "medians.h"

namespace foregrad::bench {

void register_gradient_benchmarks();
void print_gradient_table(const Medians& medians);

}  // namespace foregrad::bench
