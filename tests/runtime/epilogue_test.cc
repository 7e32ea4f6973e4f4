#include "runtime/epilogue.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace foregrad {
namespace {

TEST(Epilogue, AWriteBackAdvancesTheVersionByTheRecordedCount) {
  for (uint32_t advance : {0u, 1u, 3u}) {
    const auto x = at::zeros({2});
    const auto version = x._version();
    InputInfo info;
    info.data_mutated = true;
    info.hidden_from_autograd = true;
    info.version_advance = advance;
    write_back(x, at::ones({2}), info, {});
    EXPECT_TRUE(at::equal(x, at::ones({2})));
    EXPECT_EQ(x._version(), version + advance);
  }
}

TEST(Epilogue, AliasesAreMadeFromTheCallersTensors) {
  ViewAndMutationMeta meta;
  const auto x = at::arange(6).slice(0, 2, 6);
  meta.inputs.emplace_back().type = type_of(x);
  const auto view = x.slice(0, 1, 3);
  meta.outputs.push_back({.origin = IsInput{InputIndex{0}}, .type = type_of(x)});
  meta.outputs.push_back({.origin = ViewOfInput{InputIndex{0}, {}}, .type = type_of(view)});
  meta.outputs.push_back({.origin = SameAsOutput{OutputIndex{1}}, .type = type_of(view)});
  // Another offset than the recorded one.
  const auto other = at::arange(10).slice(0, 5, 9);
  std::vector<at::Tensor> outputs(3);
  regenerate_aliases(meta, std::vector{other}, outputs);
  EXPECT_TRUE(outputs[0].is_same(other));
  EXPECT_TRUE(at::equal(outputs[1], other.slice(0, 1, 3)));
  EXPECT_TRUE(outputs[2].is_same(outputs[1]));
}

}  // namespace
}  // namespace foregrad
