// Running a part of this program where it may die.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace foregrad::cli::fuzz {

/// How a child process ended.
struct ChildEnd {
  std::optional<std::string> text;  // what the action returned; nothing if it died
  std::string death;                // `signal 11 (Segmentation fault)`, if it died
};

/// Calls the action in a copy of this process, where operators use one thread. What it changes
/// there is lost; what it returns comes back. Throws a `Failure` of kind `kInternal` if there can
/// be no other process.
ChildEnd run_in_child(const std::function<std::string()>& action);

}  // namespace foregrad::cli::fuzz
