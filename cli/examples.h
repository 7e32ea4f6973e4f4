// The functions that `foregrad explain` can take apart.
#pragma once

#include <foregrad/report.h>

#include <string>
#include <vector>

namespace foregrad::cli {

struct Example {
  std::string name;
  std::string description;
  /// Compiles the example, calls it once forward and backward and returns the report.
  Report (*run)();
};

const std::vector<Example>& examples();

/// Finds an example. Throws a `Failure` of kind `kUsage` that lists the names there are.
const Example& find_example(const std::string& name);

}  // namespace foregrad::cli
