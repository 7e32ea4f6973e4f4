// What a compiled function has done so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace foregrad {

struct Report {
  /// One stage of a compilation.
  struct Stage {
    std::string name;
    double ms = 0;
  };

  struct Specialisation {
    std::string signature;       // inputs and outputs in words
    std::string joint_graph;     // graph text, before partitioning
    std::string forward_graph;   // graph text
    std::string backward_graph;  // graph text; for all tangents, one for each autograd node
    std::string forward_dot;     // Graphviz source
    std::string backward_dot;
    std::string guards;  // one a line
    std::vector<Stage> stages;
    double compile_ms = 0;
    std::size_t saved_bytes = 0;  // what forward hands to backward, parameters and inputs included
    std::map<std::string, std::uint32_t>
        last_resort_shapes;  // operators whose shape took a run of the real kernel
    std::size_t calls = 0;
  };

  std::vector<Specialisation> specialisations;
  std::size_t eager_calls = 0;                // calls that were not compiled
  std::vector<std::string> fallback_reasons;  // why, each once
  std::vector<std::string> recompiles;  // for each compilation but the first, the guard that failed
};

/// Writes a report for people.
std::string to_text(const Report& report);

}  // namespace foregrad
