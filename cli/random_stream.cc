#include "cli/random_stream.h"

#include <ATen/CPUGeneratorImpl.h>

namespace foregrad::cli {
namespace {

at::Generator default_generator() { return at::detail::getDefaultCPUGenerator(); }

}  // namespace

RandomStream::RandomStream(uint64_t seed)
    : state_(at::detail::createCPUGenerator(seed).get_state()) {}

RandomStream::Use::Use(RandomStream& stream)
    : stream_(stream), previous_(default_generator().get_state()) {
  default_generator().set_state(stream_.state_);
}

RandomStream::Use::~Use() {
  stream_.state_ = default_generator().get_state();
  default_generator().set_state(previous_);
}

}  // namespace foregrad::cli
