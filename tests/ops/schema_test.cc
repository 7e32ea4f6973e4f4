#include "ops/schema.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <thread>

#include "support/graph_builder.h"

namespace foregrad {
namespace {

using testing::find_operator;

std::vector<c10::OperatorHandle> all_operators() {
  std::vector<c10::OperatorHandle> operators;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (const auto op = c10::Dispatcher::singleton().findSchema(name)) operators.push_back(*op);
  }
  return operators;
}

using Pairs = std::vector<AliasPair>;

TEST(Schema, KnowsWrites) {
  EXPECT_TRUE(is_mutating(find_operator("aten::add_.Tensor")));
  EXPECT_TRUE(is_mutating(find_operator("aten::add.out")));
  EXPECT_TRUE(is_mutating(find_operator("aten::_foreach_add_.Scalar")));
  EXPECT_FALSE(is_mutating(find_operator("aten::add.Tensor")));
  EXPECT_FALSE(is_mutating(find_operator("aten::view")));
  EXPECT_FALSE(is_written(find_operator("aten::add.out"), 0));
  EXPECT_TRUE(is_written(find_operator("aten::add.out"), 3));
  EXPECT_TRUE(is_written(find_operator("aten::_native_batch_norm_legit"), 4));
  EXPECT_FALSE(is_written(find_operator("aten::_native_batch_norm_legit"), 5));
  EXPECT_ANY_THROW(is_written(find_operator("aten::relu"), 1));
}

TEST(Schema, KnowsViews) {
  EXPECT_EQ(view_aliases(find_operator("aten::view")), (Pairs{{0, 0}}));
  EXPECT_EQ(view_aliases(find_operator("aten::split.Tensor")), (Pairs{{0, 0}}));
  EXPECT_EQ(view_aliases(find_operator("aten::unbind.int")), (Pairs{{0, 0}}));
  EXPECT_EQ(view_aliases(find_operator("aten::reshape")), (Pairs{{0, 0}}));
  EXPECT_EQ(view_aliases(find_operator("aten::add.Tensor")), Pairs{});
  EXPECT_EQ(view_aliases(find_operator("aten::add_.Tensor")), Pairs{});
  EXPECT_EQ(view_aliases(find_operator("aten::split_copy.Tensor")), Pairs{});
  EXPECT_TRUE(is_view(find_operator("aten::chunk")));
  EXPECT_FALSE(is_view(find_operator("aten::t_")));
  EXPECT_FALSE(is_view(find_operator("aten::_unsafe_view")));
  EXPECT_TRUE(is_certain_view(find_operator("aten::detach")));
  EXPECT_FALSE(is_certain_view(find_operator("aten::contiguous")));
  EXPECT_FALSE(is_certain_view(find_operator("aten::add.Tensor")));
}

TEST(Schema, KnowsSharedMemoryThatSchemasHide) {
  EXPECT_EQ(memory_aliases(find_operator("aten::view")), (Pairs{{0, 0}}));
  EXPECT_EQ(memory_aliases(find_operator("aten::_unsafe_view")), (Pairs{{0, 0}}));
  EXPECT_EQ(memory_aliases(find_operator("aten::unsafe_split.Tensor")), (Pairs{{0, 0}}));
  EXPECT_EQ(memory_aliases(find_operator("aten::add_.Tensor")), (Pairs{{0, 0}}));
  EXPECT_EQ(memory_aliases(find_operator("aten::dropout")), (Pairs{{0, 0}}));
  EXPECT_EQ(memory_aliases(find_operator("aten::add.Tensor")), Pairs{});
}

TEST(Schema, KnowsRandomness) {
  for (const char* name : {"aten::bernoulli.p", "aten::rand_like", "aten::randn",
                           "aten::native_dropout", "aten::normal_", "aten::exponential"}) {
    EXPECT_TRUE(is_random(find_operator(name))) << name;
    EXPECT_FALSE(is_pure(find_operator(name))) << name;
  }
  EXPECT_FALSE(is_random(find_operator("aten::native_dropout_backward")));
  for (const c10::OperatorHandle& op : all_operators()) {
    for (const c10::Argument& argument : op.schema().arguments()) {
      if (argument.type()->annotation_str().find("Generator") != std::string::npos) {
        EXPECT_TRUE(is_random(op)) << op.operator_name();
      }
    }
  }
}

TEST(Schema, KnowsEffects) {
  for (const char* name : {"aten::add_.Tensor", "aten::bernoulli", "aten::_assert_async.msg",
                           "aten::native_batch_norm", "aten::item", "aten::batch_norm"}) {
    EXPECT_TRUE(has_effects(find_operator(name))) << name;
    EXPECT_FALSE(is_pure(find_operator(name))) << name;
  }
  for (const char* name : {"aten::add.Tensor", "aten::zeros", "aten::view", "aten::_unsafe_view",
                           "aten::max.dim", "aten::split.Tensor", "aten::convolution_backward",
                           "aten::_native_batch_norm_legit.no_stats"}) {
    EXPECT_FALSE(has_effects(find_operator(name))) << name;
    EXPECT_TRUE(is_pure(find_operator(name))) << name;
  }
  for (const char* name : {"aten::empty.memory_format", "aten::empty_like", "aten::new_empty",
                           "aten::empty_strided", "aten::resize"}) {
    EXPECT_FALSE(has_effects(find_operator(name))) << name;
    EXPECT_FALSE(is_pure(find_operator(name))) << name;
  }
}

TEST(Schema, KnowsPointwiseOperators) {
  EXPECT_TRUE(is_pointwise(find_operator("aten::mul.Tensor")));
  EXPECT_TRUE(is_pointwise(find_operator("aten::where.self")));
  EXPECT_FALSE(is_pointwise(find_operator("aten::mm")));
  EXPECT_FALSE(is_pointwise(find_operator("aten::cumsum")));
}

TEST(Schema, FindsInPlaceVariants) {
  const auto variant_of = [](const char* name) -> std::string {
    const auto variant = in_place_variant(find_operator(name));
    return variant ? operator_text(*variant) : "none";
  };
  EXPECT_EQ(variant_of("aten::add.Tensor"), "aten::add_.Tensor");
  EXPECT_EQ(variant_of("aten::relu"), "aten::relu_");
  EXPECT_EQ(variant_of("aten::pow.Tensor_Scalar"), "aten::pow_.Scalar");
  EXPECT_EQ(variant_of("aten::pow.Tensor_Tensor"), "aten::pow_.Tensor");
  EXPECT_EQ(variant_of("aten::ldexp.Tensor"), "aten::ldexp_");
  EXPECT_EQ(variant_of("aten::pow.Scalar"), "none");
  EXPECT_EQ(variant_of("aten::where.self"), "none");
  EXPECT_EQ(variant_of("aten::add_.Tensor"), "none");
  EXPECT_EQ(variant_of("aten::_foreach_add.Scalar"), "none");
  EXPECT_EQ(variant_of("aten::zeros"), "none");
}

// Every variant, run on small tensors where its arguments allow: it writes and returns the first
// and gives what the operator gives.
TEST(Schema, InPlaceVariantsComputeTheSame) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  size_t compared = 0;
  for (const c10::OperatorHandle& op : all_operators()) {
    if (!is_pointwise(op) || has_effects(op) || !in_place_variant(op)) continue;
    SCOPED_TRACE(operator_text(op));
    torch::jit::Stack stack;
    for (const c10::Argument& argument : op.schema().arguments()) {
      const auto kind = argument.type()->kind();
      if (kind == c10::TypeKind::TensorType) {
        stack.emplace_back(at::rand({3, 4}));
      } else if (argument.default_value()) {
        stack.push_back(*argument.default_value());
      } else if (kind == c10::TypeKind::NumberType || kind == c10::TypeKind::FloatType) {
        stack.emplace_back(0.5);
      } else {
        stack.emplace_back(int64_t{1});
      }
    }
    torch::jit::Stack again = stack;
    const at::Tensor self = stack[0].toTensor().clone();
    again[0] = self;
    at::Tensor expected;
    try {
      op.callBoxed(stack);
      expected = stack[0].toTensor();
    } catch (const std::exception&) {
      continue;  // wants integers, or arguments that make sense
    }
    if (expected.scalar_type() != self.scalar_type()) continue;
    in_place_variant(op)->callBoxed(again);
    EXPECT_TRUE(again[0].toTensor().is_same(self));
    EXPECT_TRUE(at::allclose(expected, self, 0, 0, /*equal_nan=*/true));
    ++compared;
  }
  EXPECT_GT(compared, 60u);
}

// Results of functional operators that nobody says to share memory do not share it, on arguments
// where a shortcut would be easiest: those that need no work.
TEST(Schema, MemoryAliasesCoverShortcuts) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor x = at::rand({2, 2});
  const std::vector<std::pair<const char*, std::vector<c10::IValue>>> calls = {
      {"aten::sum.dim_IntList", {x, std::vector<int64_t>{}, false, c10::IValue()}},
      {"aten::expand_copy", {x, std::vector<int64_t>{2, 2}, false}},
      {"aten::_to_copy", {x, {}, {}, {}, {}, false, {}}},
      {"aten::constant_pad_nd", {x, std::vector<int64_t>{0, 0}, 0.0}},
      {"aten::roll", {x, std::vector<int64_t>{0}, std::vector<int64_t>{0}}},
      {"aten::cat", {std::vector<at::Tensor>{x}, int64_t{0}}},
      {"aten::repeat", {x, std::vector<int64_t>{1, 1}}},
      {"aten::_reshape_copy", {x, std::vector<int64_t>{2, 2}}},
      {"aten::flip", {x, std::vector<int64_t>{}}},
      {"aten::_conj_physical", {x}},
      {"aten::clone", {x, {}}},
      {"aten::_unsafe_view", {x, std::vector<int64_t>{4}}},
      {"aten::lift", {x}},
      {"aten::unsafe_split_with_sizes", {x, std::vector<int64_t>{1, 1}, int64_t{0}}},
  };
  for (const auto& [name, arguments] : calls) {
    SCOPED_TRACE(name);
    const auto op = find_operator(name);
    torch::jit::Stack stack = arguments;
    op.callBoxed(stack);
    const at::Tensor result =
        stack[0].isTensor() ? stack[0].toTensor() : stack[0].toTensorVector().at(0);
    EXPECT_EQ(result.storage().is_alias_of(x.storage()), !memory_aliases(op).empty());
  }
}

TEST(Schema, DescribesUsersOperatorsAndForgetsThemWithTheirLibrary) {
  for (int round = 0; round < 3; ++round) {
    const bool writes = round % 2 == 1;
    torch::Library library(torch::Library::DEF, "schema_test", std::nullopt, __FILE__, __LINE__);
    library.def(writes ? "op(Tensor(a!) x) -> Tensor(a!)" : "op(Tensor x) -> Tensor");
    const auto op = find_operator("schema_test::op");
    EXPECT_EQ(is_mutating(op), writes);
    EXPECT_EQ(is_pure(op), !writes);
  }
}

TEST(Schema, TakesNoOtherOperatorForAnInPlaceVariant) {
  torch::Library library(torch::Library::DEF, "schema_test", std::nullopt, __FILE__, __LINE__);
  const std::pair<const char*, bool> variants[] = {
      {"(Tensor(a!) x, Tensor y, float z) -> Tensor(a!)", true},
      {"(Tensor(a!) x, Tensor y, int z) -> Tensor(a!)", false},       // another type
      {"(Tensor(a!) x, Tensor w, float z) -> Tensor(a!)", false},     // another name
      {"(Tensor(a!) x, Tensor y) -> Tensor(a!)", false},              // fewer
      {"(Tensor(a) x, Tensor y, float z) -> Tensor(a)", false},       // a view
      {"(Tensor(a!) x, Tensor y, float z) -> Tensor", false},         // returns another tensor
      {"(Tensor(a!) x, Tensor y, float z) -> ()", false},             // returns nothing
      {"(Tensor x, Tensor(a!) y, float z) -> Tensor(a!)", false},     // writes another argument
      {"(Tensor(a!) x, Tensor(b!) y, float z) -> Tensor(a!)", false}  // writes a second one
  };
  int number = 0;
  for (const auto& [signature, fits] : variants) {
    const std::string name = "op" + std::to_string(number++);
    library.def((name + "(Tensor x, Tensor y, float z) -> Tensor").c_str());
    library.def((name + "_" + signature).c_str());
    EXPECT_EQ(in_place_variant(find_operator("schema_test::" + name)).has_value(), fits)
        << signature;
  }
}

TEST(Schema, AnswersAllThreadsAlike) {
  const auto operators = all_operators();
  const auto count = [&] {
    size_t sum = 0;
    for (const c10::OperatorHandle& op : operators)
      sum += is_pure(op) + 2 * is_view(op) + 4 * in_place_variant(op).has_value();
    return sum;
  };
  std::vector<size_t> sums(4);
  std::vector<std::thread> threads;
  for (size_t& sum : sums) threads.emplace_back([&] { sum = count(); });
  for (std::thread& thread : threads) thread.join();
  for (const size_t sum : sums) EXPECT_EQ(sum, count());
  EXPECT_GT(sums[0], 1000u);
}

}  // namespace
}  // namespace foregrad
