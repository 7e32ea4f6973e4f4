// Reads one literal in the middle of a text.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>

#include <vector>

#include "graph/scanner.h"

namespace foregrad {

/// Reads a literal of the given schema type and leaves the scanner behind it.
c10::IValue read_literal(Scanner& scanner, const c10::Type& type,
                         const std::vector<at::Generator>& generators);

}  // namespace foregrad
