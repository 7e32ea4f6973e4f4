// What a compilation costs, by the number of operators.
#pragma once

#include "medians.h"

namespace foregrad::bench {

void register_compile_benchmarks();
void print_compile_table(const Medians& medians);

}  // namespace foregrad::bench
