#include "capture/library_writes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "capture/registration.h"

namespace foregrad {
namespace {

TORCH_LIBRARY(test_library_writes, library) {
  library.def("fill(Tensor(a!) x) -> ()");
  library.def("read(Tensor x) -> Tensor");
}

c10::OperatorHandle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

TEST(LibraryWrites, AreHandledWhereLibtorchDoesNot) {
  EXPECT_FALSE(needs_functional_variant(find("test_library_writes::read")));
  EXPECT_FALSE(needs_functional_variant(find("aten::relu_")));
  registered_operators();
  EXPECT_TRUE(
      find("test_library_writes::fill").hasKernelForDispatchKey(c10::DispatchKey::Functionalize));
  EXPECT_FALSE(
      find("test_library_writes::read").hasKernelForDispatchKey(c10::DispatchKey::Functionalize));
}

}  // namespace
}  // namespace foregrad
