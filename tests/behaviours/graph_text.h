// Reads the text of graphs as far as the behaviours speak of them.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace foregrad::testing {

/// Returns the lines that contain `part`, trimmed.
inline std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos)
      found.push_back(line.substr(line.find_first_not_of(' ')));
  }
  return found;
}

/// Returns the names of the operators without overloads, in order.
inline std::vector<std::string> operators(const std::string& graph) {
  std::vector<std::string> names;
  for (const std::string& line : lines_with(graph, "= aten::")) {
    const size_t begin = line.find("= aten::") + 8;
    names.push_back(line.substr(begin, line.find_first_of(".(", begin) - begin));
  }
  return names;
}

/// Returns the roles of the outputs in order, for example `mutated(0)`.
inline std::vector<std::string> output_roles(const std::string& graph) {
  std::vector<std::string> roles;
  for (const std::string& line : lines_with(graph, "output %"))
    if (line.rfind("output ", 0) == 0) roles.push_back(line.substr(line.find("= ") + 2));
  return roles;
}

}  // namespace foregrad::testing
