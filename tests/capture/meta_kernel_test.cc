#include "capture/meta_kernel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <stdexcept>
#include <thread>

#include "capture/infer.h"
#include "capture/keys.h"

namespace foregrad {
namespace {

/// As Python's torch registers its kernels: for any arguments.
void kernel_of_python(const c10::OperatorHandle& /*op*/, torch::jit::Stack* /*stack*/) {
  throw std::runtime_error("a kernel of Python's was asked");
}

c10::OperatorHandle find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

/// While it lives, an operator has such a kernel.
class WithPython {
 public:
  explicit WithPython(const char* name)
      : library_(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__) {
    library_.impl(name, torch::CppFunction::makeFromBoxedFunction<&kernel_of_python>());
  }

 private:
  torch::Library library_;
};

TEST(MetaKernel, IsLibtorchsOwnWherePythonHidesIt) {
  const auto op = find_operator("aten::addmv");
  EXPECT_TRUE(MetaKernel(op).exists());
  EXPECT_FALSE(MetaKernel(op).is_hidden());
  EXPECT_FALSE(MetaKernel(find_operator("aten::as_strided")).is_hidden());
  EXPECT_TRUE(MetaKernel(find_operator("aten::as_strided")).exists());
  const WithPython python("addmv");
  const MetaKernel kernel(op);
  EXPECT_TRUE(kernel.exists());
  EXPECT_TRUE(kernel.is_hidden());
  const auto on_meta = at::TensorOptions(c10::kMeta);
  torch::jit::Stack stack{at::empty({2}, on_meta), at::empty({2, 3}, on_meta),
                          at::empty({3}, on_meta), at::Scalar(1), at::Scalar(1)};
  const BelowTracingScope below;
  kernel.call(op, stack);
  EXPECT_EQ(stack.at(0).toTensor().sizes(), at::IntArrayRef({2}));
}

TEST(MetaKernel, IsNoneWhereOnlyPythonHasOne) {
  const auto op = find_operator("aten::linalg_eig");
  const WithPython python("linalg_eig");
  EXPECT_FALSE(MetaKernel(op).exists());
  // What inference knows of an operator is known by thread.
  std::thread([&] {
    torch::jit::Stack stack{at::empty({3, 3}, at::TensorOptions(c10::kMeta))};
    const BelowTracingScope below;
    EXPECT_EQ(infer_results(op, stack), ShapeSource::RealKernel);
    EXPECT_EQ(stack.at(1).toTensor().strides(), at::IntArrayRef({1, 3}));
  }).join();
}

}  // namespace
}  // namespace foregrad
