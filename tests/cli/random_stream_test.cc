#include "cli/random_stream.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace foregrad::cli {
namespace {

at::Tensor draw(RandomStream& stream) {
  const RandomStream::Use use(stream);
  return at::rand({5});
}

TEST(RandomStreamTest, EqualSeedsGiveEqualNumbersHoweverTheyInterleave) {
  RandomStream a(5);
  RandomStream b(5);
  const at::Tensor a1 = draw(a);
  const at::Tensor a2 = draw(a);
  EXPECT_TRUE(a1.equal(draw(b)));
  EXPECT_TRUE(a2.equal(draw(b)));
  EXPECT_FALSE(a1.equal(a2));
}

TEST(RandomStreamTest, IsTheStreamOfTheSeededDefaultGenerator) {
  RandomStream stream(5);
  at::manual_seed(5);
  EXPECT_TRUE(at::rand({5}).equal(draw(stream)));
}

TEST(RandomStreamTest, GivesTheDefaultGeneratorBackEvenOnExceptions) {
  RandomStream stream(5);
  at::manual_seed(9);
  const at::Tensor expected = at::rand({5});
  at::manual_seed(9);
  const auto throwing_use = [&] {
    const RandomStream::Use use(stream);
    at::rand({5});
    throw std::runtime_error("x");
  };
  EXPECT_THROW(throwing_use(), std::runtime_error);
  EXPECT_TRUE(at::rand({5}).equal(expected));
}

}  // namespace
}  // namespace foregrad::cli
