// A random number stream of one's own, drawn through libtorch's default generator.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace foregrad::cli {

/// Holds the state of a stream of random numbers. Operators such as dropout draw from the default
/// CPU generator, so two networks that train by turns and are to see equal masks each put their
/// stream there for the time of their step.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed);

  /// Puts the stream into the default CPU generator while it lives; then keeps how far it came,
  /// exceptions included, and gives the generator back as it was.
  class Use {
   public:
    explicit Use(RandomStream& stream);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    RandomStream& stream_;
    at::Tensor previous_;
  };

 private:
  at::Tensor state_;
};

}  // namespace foregrad::cli
