// What a caller can see of tensors, written down fact by fact: two runs that differ can then be
// told apart in words ("version of argument 0: eager `2`, compiled `1`").
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace foregrad::testing {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

class Seen {
 public:
  /// Notes a fact in words.
  void note(std::string what, std::string value);
  /// Notes dtype, sizes, strides and the values, bit for bit.
  void note_values(const std::string& what, const at::Tensor& tensor);
  /// Runs `act` and notes the type and message of what it throws. Returns whether it returned.
  bool attempt(const std::string& what, const std::function<void()>& act);
  /// Notes all there is to see of each tensor, and which of them are one object, share a storage or
  /// are views of one another.
  void note_tensors(const std::string& when, const std::vector<NamedTensor>& tensors);

  /// Names each fact that differs; empty if the runs look the same.
  static std::vector<std::string> differences(const Seen& eager, const Seen& compiled);

 private:
  struct Fact {
    std::string what;
    std::string value;
    at::Tensor data{};
  };
  std::vector<Fact> facts_;
};

/// Says whether the storage holds all elements; it does not once it was resized to zero.
bool has_its_data(const at::Tensor& tensor);

}  // namespace foregrad::testing
