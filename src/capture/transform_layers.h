// Levels of libtorch's function transforms. While one lives, operators on this thread go through
// it: batched, differentiated or functionalized, and then, as other operators, on to the level
// below, down to where a trace sees them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <optional>

namespace foregrad {

/// Of random operators under `VmapLayer`: none, the same numbers for each element of the batch, or
/// others.
enum class BatchRandomness : uint8_t { Error, Same, Different };

/// Whether this thread is inside a transform.
bool is_transforming();

/// A level on libtorch's stack of transforms; the last one made goes first.
class TransformLevel {
 public:
  /// Takes over the level that was just pushed.
  explicit TransformLevel(int64_t number) : number_(number) {}
  TransformLevel(const TransformLevel&) = delete;
  TransformLevel& operator=(const TransformLevel&) = delete;
  ~TransformLevel();

  int64_t number() const { return number_; }

 private:
  int64_t number_;
};

class VmapLayer {
 public:
  VmapLayer(int64_t batch_size, BatchRandomness randomness);

  at::Tensor batch(const at::Tensor& tensor, int64_t dim) const;

  struct Unbatched {
    at::Tensor tensor;
    std::optional<int64_t> dim;  // of the batch; nothing if the tensor does not depend on it
  };
  Unbatched unbatch(const at::Tensor& tensor) const;

 private:
  TransformLevel level_;
};

/// Of reverse-mode differentiation; grad mode is on.
class GradLayer {
 public:
  GradLayer();

  at::Tensor wrap(const at::Tensor& tensor) const;
  at::Tensor unwrap(const at::Tensor& tensor) const;

 private:
  TransformLevel level_;
  c10::AutoGradMode grad_mode_;  // after the level, which keeps the mode from before
};

/// A tensor of a `GradLayer` that has ended, as that of the level below.
at::Tensor unwrap_ended(const at::Tensor& tensor);
/// The same for the arguments of an operator, which lie on top of the stack. `keys`: of all of
/// them.
void unwrap_ended(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack& stack);

/// Of forward-mode differentiation.
class JvpLayer {
 public:
  JvpLayer();

  at::Tensor pair(const at::Tensor& primal, const at::Tensor& tangent) const;

  struct Parted {
    at::Tensor primal;
    at::Tensor tangent;  // undefined if the tensor has none
  };
  Parted part(const at::Tensor& tensor) const;

 private:
  /// Libtorch has one level of dual numbers; its transforms keep nested ones apart.
  struct DualLevel {
    DualLevel();
    DualLevel(const DualLevel&) = delete;
    DualLevel& operator=(const DualLevel&) = delete;
    ~DualLevel();
  };

  DualLevel duals_;
  TransformLevel level_;
  c10::AutoFwGradMode forward_mode_;  // after the level, which keeps the mode from before
};

/// Replaces views and writes by functional operators.
class FunctionalizeLayer {
 public:
  FunctionalizeLayer();

  at::Tensor wrap(const at::Tensor& tensor) const;
  at::Tensor unwrap(const at::Tensor& tensor) const;

 private:
  TransformLevel level_;
};

}  // namespace foregrad
