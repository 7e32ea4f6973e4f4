// Tensors that the function makes and fills in C++: by `torch::tensor(vector)`, an accessor, or
// `data_ptr`. No operator tells of that, so a tensor of an operator that leaves its elements open
// gets memory while the function runs. If that has been written when an operator first takes the
// tensor, its elements are a constant of the graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "graph/recording.h"

namespace foregrad {

class WrittenMemory {
 public:
  WrittenMemory() = default;
  WrittenMemory(const WrittenMemory&) = delete;
  WrittenMemory& operator=(const WrittenMemory&) = delete;
  ~WrittenMemory();

  /// Gives memory to the stand-in that `ops[index]` made, unless it is large or has gaps.
  void give(const at::Tensor& stand_in, size_t index);
  /// Takes the memory of a tensor back that an operator takes, or that the function returns.
  /// Afterwards it has no data, as other stand-ins. If it was written, a constant comes in place of
  /// the operator that made it.
  void take_back(const at::Tensor& stand_in, std::vector<RecordedOp>& ops);
  /// Takes all memory back. Throws `Refusal` if any was written after it was taken back.
  void finish(std::vector<RecordedOp>& ops);

 private:
  struct Given {
    c10::Storage storage;  // of the stand-in
    at::Tensor elements;   // contiguous
    size_t op = 0;
    at::Tensor as_taken{};  // a copy
  };
  static void hand(const c10::Storage& storage, void* data);
  static void take_back(Given& given, std::vector<RecordedOp>& ops);

  std::vector<Given> given_;
};

}  // namespace foregrad
