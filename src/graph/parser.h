// Reads graph text as `print_graph` writes it. Blank lines and `#` comments are skipped.
#pragma once

#include <ATen/core/Generator.h>

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace foregrad {

/// Reads a graph. `generators[k]` is what `generator#k` in the text means.
/// Throws `c10::Error` that names line and column, what was expected and what came.
Graph parse_graph(std::string_view text, const std::vector<at::Generator>& generators = {});

}  // namespace foregrad
