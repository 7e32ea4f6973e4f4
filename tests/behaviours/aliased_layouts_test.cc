// Arguments in one storage of which one is written: which of them need a synthetic base.
#include <gmock/gmock.h>

#include <regex>

#include "behaviours/aliases.h"
#include "behaviours/graph_text.h"

namespace foregrad::testing {
namespace {

struct Layout {
  const char* name;
  std::vector<int64_t> sizes;
  ViewOf first;
  ViewOf second;
};

const Layout kApart[] = {
    {"halves", {8}, slice_of(0, 4), slice_of(4, 8)},
    {"even and odd", {8}, slice_of(0, 8, 2), slice_of(1, 8, 2)},
    {"columns", {4, 4}, strided({4, 2}, {4, 1}, 0), strided({4, 2}, {4, 1}, 2)},
    {"blocks in rows of eight", {64}, strided({4, 4}, {8, 1}, 0), strided({4, 4}, {8, 1}, 36)},
    {"blocks beside each other", {64}, strided({4, 4}, {8, 1}, 0), strided({4, 4}, {8, 1}, 28)},
    {"blocks of other strides", {64}, strided({2, 3}, {6, 1}, 0), strided({2, 3}, {6, 1}, 3)},
};

const Layout kOverlapping[] = {
    {"one element", {8}, slice_of(0, 4), slice_of(3, 7)},
    {"steps that meet", {8}, slice_of(0, 8, 2), slice_of(2, 6, 1)},
    {"columns", {4, 4}, strided({4, 2}, {4, 1}, 0), strided({4, 2}, {4, 1}, 1)},
    {"blocks", {64}, strided({4, 4}, {8, 1}, 0), strided({4, 4}, {8, 1}, 9)},
};

/// The memory that an input lies in, as the signature says; empty if it lies alone.
std::string memory_of(const std::string& signature, int input) {
  const std::regex line("input " + std::to_string(input) +
                        ": [^\n]*in the memory of (input [0-9]+)");
  std::smatch found;
  return std::regex_search(signature, found, line) ? found[1].str() : "";
}

/// The first two inputs lie in one memory.
bool share_a_memory(const Report& report) {
  for (const auto& specialisation : report.specialisations) {
    const std::string memory = memory_of(specialisation.signature, 0);
    if (!memory.empty() && memory == memory_of(specialisation.signature, 1)) return true;
  }
  return false;
}

/// They are taken as views of the base that autograd knows.
bool are_views_of_a_base(const Report& report) {
  for (const auto& specialisation : report.specialisations)
    if (!lines_with(specialisation.forward_graph, "= view_base(").empty()) return true;
  return false;
}

Tensors write_both(const Tensors& in) {
  in[0].mul_(3);
  in[1].mul_(2);
  return {in[0].clone().view({-1}) + in[1].clone().view({-1})};
}

// Arguments that share a storage but no element need no synthetic base; others do.
TEST(Behaviours, B069_LayoutsThatDoAndDoNotOverlap) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    for (const auto& [name, sizes, first, second] : kApart) {
      SCOPED_TRACE(name);
      const auto report = expect_as_eager(write_both, views_of_one(kind, sizes, {first, second}));
      EXPECT_FALSE(share_a_memory(report));
    }
    for (const auto& [name, sizes, first, second] : kOverlapping) {
      SCOPED_TRACE(name);
      const auto report = expect_as_eager(write_both, views_of_one(kind, sizes, {first, second}));
      EXPECT_TRUE(share_a_memory(report) || are_views_of_a_base(report));
    }
  }
}

// One alias is a view that autograd knows, another is not.
TEST(Behaviours, B070_OneAliasHasABaseAnotherHasNone) {
  for (const bool grad_mode : {true, false}) {
    SCOPED_TRACE(grad_mode);
    const MakeStart make = []() -> Start {
      auto base = plain({6});
      return {.arguments = {base.slice(0, 0, 4), without_base(base, 2, 6)}, .kept = {base}};
    };
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          return {in[0] + in[1]};
        },
        {{.make = make, .grad_mode = grad_mode}});
  }
}

// One of the aliases is the base of the other.
TEST(Behaviours, B071_OneAliasIsTheBase) {
  for (const Kind kind : kWritable) {
    for (const size_t written : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << name_of(kind) << ", written " << written);
      expect_as_eager(
          [written](const Tensors& in) -> Tensors {
            in[written].mul_(2);
            return {in[0] * 3, in[1] + 1};
          },
          views_of_one(kind, {6}, {itself, slice_of(1, 4)}));
    }
  }
}

// No alias has a base: one is made from the storage.
TEST(Behaviours, B074_NoAliasHasABase) {
  for (const bool detached : {true, false}) {
    SCOPED_TRACE(detached);
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          return {in[0] + in[1] * in[2]};
        },
        [detached]() -> Start {
          auto base = plain({6});
          if (detached)
            return {{base.detach().slice(0, 0, 4), base.detach().slice(0, 1, 5), leaf({4})},
                    {base}};
          return {{without_base(base, 0, 4), without_base(base, 1, 5), leaf({4})}, {base}};
        });
  }
}

// Slices of one buffer that lie apart, detached; one is written.
TEST(Behaviours, B075_DetachedSlicesApart) {
  const auto report = expect_as_eager(
      [](const Tensors& in) -> Tensors {
        in[1].mul_(2);
        return {in[0] + in[1] + in[2]};
      },
      []() -> Start {
        auto base = leaf({9});
        return {.arguments = {base.slice(0, 0, 3).detach(), base.slice(0, 3, 6).detach(),
                              base.slice(0, 6, 9).detach()},
                .kept = {base}};
      });
  EXPECT_FALSE(share_a_memory(report));
}

// Slices that overlap; the first is written, the second has the change.
TEST(Behaviours, B077_OverlappingSlicesTheFirstIsWritten) {
  for (const Kind kind : kWritable) {
    SCOPED_TRACE(name_of(kind));
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          return {in[0] + in[1]};
        },
        views_of_one(kind, {6}, {slice_of(0, 4), slice_of(2, 6)}));
  }
}

// Detached slices that overlap.
TEST(Behaviours, B079_DetachedSlicesThatOverlap) {
  for (const Kind kind : {Kind::Plain, Kind::Leaf, Kind::Tracked}) {
    SCOPED_TRACE(name_of(kind));
    const auto detached = [](int64_t begin, int64_t end) -> ViewOf {
      return [=](const at::Tensor& base) { return base.slice(0, begin, end).detach(); };
    };
    expect_as_eager(
        [](const Tensors& in) -> Tensors {
          in[0].mul_(2);
          return {in[0] + in[1]};
        },
        views_of_one(kind, {6}, {detached(0, 4), detached(2, 6)}));
  }
}

}  // namespace
}  // namespace foregrad::testing
