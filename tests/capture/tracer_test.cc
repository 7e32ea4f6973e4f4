#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capture/tracer.h"

namespace foregrad {
namespace {

TEST(Tracer, ScopesNest) {
  EXPECT_EQ(Tracer::current(), nullptr);
  Tracer outer(Tracer::Keep::Nodes);
  Tracer inner(Tracer::Keep::ShapesOnly);
  {
    Tracer::Scope first(outer);
    {
      Tracer::Scope second(inner);
      EXPECT_EQ(Tracer::current(), &inner);
    }
    EXPECT_EQ(Tracer::current(), &outer);
  }
  EXPECT_EQ(Tracer::current(), nullptr);
}

TEST(Tracer, NumbersInputs) {
  Tracer tracer(Tracer::Keep::Nodes);
  tracer.make_input(type_of(at::ones({2, 3})), UserInput{InputIndex{0}});
  ASSERT_EQ(tracer.graph().inputs.size(), 1u);
  EXPECT_EQ(tracer.graph().type(tracer.graph().inputs[0].value), type_of(at::ones({2, 3})));
}

}  // namespace
}  // namespace foregrad
