#include <ATen/ATen.h>
#include <ATen/core/stack.h>
#include <gtest/gtest.h>

#include "capture/infer.h"
#include "capture/keys.h"
#include "capture/trace_tensor.h"
#include "graph/refusal.h"

namespace foregrad {
namespace {

at::Tensor meta(at::IntArrayRef sizes) { return make_meta(type_of(at::ones(sizes))); }

ShapeSource infer(const char* name, const char* overload, torch::jit::Stack& stack) {
  BelowTracingScope below;
  return infer_results(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload), stack);
}

TEST(Infer, TakesTheRuleThenTheMetaKernelThenTheRealKernel) {
  torch::jit::Stack rule{meta({2, 3})};
  EXPECT_EQ(infer("aten::relu", "", rule), ShapeSource::Rule);
  EXPECT_EQ(rule[0].toTensor().sizes(), at::IntArrayRef({2, 3}));
  torch::jit::Stack kernel{meta({2, 3}), meta({3, 4})};
  EXPECT_EQ(infer("aten::mm", "", kernel), ShapeSource::MetaKernel);
  EXPECT_EQ(kernel[0].toTensor().sizes(), at::IntArrayRef({2, 4}));
  torch::jit::Stack real{meta({2, 2})};
  EXPECT_EQ(infer("aten::linalg_matrix_exp", "", real), ShapeSource::RealKernel);
  EXPECT_TRUE(real[0].toTensor().is_meta());
}

TEST(Infer, TrustsNoMetaKernelWhereTheCpuCastsFirst) {
  const auto expanded = at::ones({1, 3}, at::kLong).expand({2, 3});
  const auto x = at::ones({3, 2}).t();
  torch::jit::Stack stack{make_meta(type_of(expanded)), make_meta(type_of(x)), 1};
  EXPECT_EQ(infer("aten::add", "Tensor", stack), ShapeSource::RealKernel);
  EXPECT_EQ(stack[0].toTensor().strides(), (expanded + x).strides());
  EXPECT_NE(at::add(make_meta(type_of(expanded)), make_meta(type_of(x))).strides(),
            (expanded + x).strides());
}

TEST(Infer, RefusesWhatDependsOnData) {
  torch::jit::Stack item{meta({})};
  EXPECT_THROW(infer("aten::_local_scalar_dense", "", item), Refusal);
  torch::jit::Stack nonzero{meta({3})};
  EXPECT_THROW(infer("aten::nonzero", "", nonzero), Refusal);
}

}  // namespace
}  // namespace foregrad
