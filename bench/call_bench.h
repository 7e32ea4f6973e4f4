// What a call of a compiled function costs where the arithmetic costs next to nothing.
#pragma once

#include "medians.h"

namespace foregrad::bench {

void register_call_benchmarks();
void print_call_table(const Medians& medians);

}  // namespace foregrad::bench
