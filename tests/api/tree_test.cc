#include "foregrad/tree.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace foregrad {
namespace {

using ::testing::ElementsAre;

enum class Mode { kTrain = 3 };

struct Batch {
  at::Tensor input;
  std::optional<at::Tensor> mask;
  int64_t step = 0;

  auto members() { return std::tie(input, mask, step); }
};

class Fixed {
 public:
  Fixed(at::Tensor value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}
  auto members() { return std::tie(name_, value_); }
  const std::string& name() const { return name_; }

 private:
  at::Tensor value_;
  std::string name_;
};

struct Branch {
  at::Tensor weight;
  std::vector<Branch> children;

  auto members() { return std::tie(weight, children); }
};

struct Unlisted {
  at::Tensor value;
};

struct ListsCopies {
  at::Tensor value;
  auto members() { return std::make_tuple(value); }
};

struct ListsConst {
  at::Tensor value;
  auto members() const { return std::tie(value); }
};

struct ListsUnlisted {
  Unlisted value;
  auto members() { return std::tie(value); }
};

struct BadBranch {
  std::vector<BadBranch> children;
  Unlisted value;
  auto members() { return std::tie(children, value); }
};

static_assert(Tree<at::Tensor> && Tree<const at::Tensor&> && Tree<bool> && Tree<uint8_t>);
static_assert(Tree<float> && Tree<std::string> && Tree<c10::Scalar> && Tree<at::ScalarType>);
static_assert(Tree<std::vector<bool>> && Tree<std::array<Batch, 2>> && Tree<std::tuple<>>);
static_assert(Tree<std::map<Mode, Fixed>> && Tree<std::unordered_map<std::string, Batch>>);
static_assert(Tree<std::optional<std::vector<std::pair<Branch, Mode>>>>);
static_assert(!Tree<Unlisted> && !Tree<ListsCopies> && !Tree<ListsConst> && !Tree<ListsUnlisted>);
static_assert(!Tree<BadBranch> && !Tree<std::map<c10::Scalar, int>>);
static_assert(!Tree<std::tuple<at::Tensor&>> && !Tree<std::pair<const int, at::Tensor>>);
static_assert(!Tree<std::vector<Unlisted>> && !Tree<std::map<int, std::optional<Unlisted>>>);
static_assert(!Tree<at::Tensor*> && !Tree<std::unique_ptr<at::Tensor>> && !Tree<const char*>);
static_assert(!Tree<std::string_view> && !Tree<Batch*>);

at::Tensor number(double value) { return at::full({}, value); }

std::string text_of(const at::Tensor& tensor) {
  return tensor.defined() ? "T" + std::to_string(tensor.item<int64_t>()) : "T-";
}
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const c10::Scalar& value) { return "S" + std::to_string(value.toLong()); }
std::string text_of(std::size_t value) { return "#" + std::to_string(value); }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(double value) { return value < 0 ? "negative" : "positive"; }
std::string text_of(Mode value) { return "mode" + std::to_string(static_cast<int>(value)); }

template <class T>
std::vector<std::string> leaves(T& value) {
  std::vector<std::string> texts;
  visit_leaves(value, [&](const auto& leaf) { texts.push_back(text_of(leaf)); });
  return texts;
}

/// The leaves of something const; the walk over the same thing not const must agree.
template <class T>
std::vector<std::string> leaves_of(T value) {
  const T& as_const = value;
  EXPECT_EQ(leaves(as_const), leaves(value));
  return leaves(as_const);
}

/// Copies `prototype` and assigns new tensors in order; the prototype must keep its own.
template <class T>
T rebuild(const T& prototype) {
  std::vector<at::Tensor> before;
  collect_tensors(prototype, before);
  T copy = prototype;
  int64_t next = 100;
  visit_leaves(copy, [&]<class Leaf>(Leaf& leaf) {
    if constexpr (std::same_as<Leaf, at::Tensor>) leaf = number(static_cast<double>(next++));
  });

  std::vector<at::Tensor> old_tensors;
  std::vector<at::Tensor> new_tensors;
  collect_tensors(prototype, old_tensors);
  collect_tensors(copy, new_tensors);
  EXPECT_EQ(old_tensors.size(), before.size());
  EXPECT_EQ(new_tensors.size(), count_tensors(prototype));
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(old_tensors[i].is_same(before[i]));
    EXPECT_EQ(new_tensors[i].template item<int64_t>(), 100 + static_cast<int64_t>(i));
  }
  return copy;
}

TEST(Tree, VisitsSingleLeaves) {
  EXPECT_THAT(leaves_of(number(7)), ElementsAre("T7"));
  EXPECT_THAT(leaves_of(at::Tensor()), ElementsAre("T-"));
  EXPECT_THAT(leaves_of(true), ElementsAre("true"));
  EXPECT_THAT(leaves_of(int64_t{-4}), ElementsAre("-4"));
  EXPECT_THAT(leaves_of(-0.5), ElementsAre("negative"));
  EXPECT_THAT(leaves_of(Mode::kTrain), ElementsAre("mode3"));
  EXPECT_THAT(leaves_of(std::string("a")), ElementsAre("a"));
  EXPECT_THAT(leaves_of(c10::Scalar(5)), ElementsAre("S5"));
}

TEST(Tree, ShowsStructureBeforeContents) {
  EXPECT_THAT(leaves_of(std::optional<at::Tensor>()), ElementsAre("false"));
  EXPECT_THAT(leaves_of(std::optional(number(1))), ElementsAre("true", "T1"));
  EXPECT_THAT(leaves_of(std::vector<at::Tensor>{}), ElementsAre("#0"));
  EXPECT_THAT(leaves_of(std::vector{number(1), number(2)}), ElementsAre("#2", "T1", "T2"));
  EXPECT_THAT(leaves_of(std::vector<bool>{true, false}), ElementsAre("#2", "true", "false"));
  EXPECT_THAT(leaves_of(std::array<bool, 2>{true, false}), ElementsAre("true", "false"));
  EXPECT_THAT(leaves_of(std::array{number(1), number(2)}), ElementsAre("T1", "T2"));
  EXPECT_THAT(leaves_of(std::pair(3, number(1))), ElementsAre("3", "T1"));
  EXPECT_THAT(leaves_of(std::tuple(number(1), std::string("x"), number(2))),
              ElementsAre("T1", "x", "T2"));
  EXPECT_THAT(leaves_of(std::tuple<>()), ElementsAre());
}

TEST(Tree, WalksMapsByKey) {
  EXPECT_THAT(leaves_of(std::map<int, at::Tensor>{{2, number(20)}, {1, number(10)}}),
              ElementsAre("#2", "1", "T10", "2", "T20"));
  EXPECT_THAT(leaves_of(std::unordered_map<Mode, at::Tensor>{{Mode::kTrain, number(1)}}),
              ElementsAre("#1", "mode3", "T1"));
}

TEST(Tree, WalksHashMapsBySortedKeyWhateverTheBuckets) {
  std::unordered_map<std::string, at::Tensor> map;
  std::vector<std::string> expected = {"#26"};
  for (char letter = 'z'; letter >= 'a'; --letter) map[std::string(1, letter)] = number(letter);
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    expected.emplace_back(1, letter);
    expected.push_back("T" + std::to_string(int{letter}));
  }
  EXPECT_EQ(leaves_of(map), expected);
  map.rehash(1000);
  EXPECT_EQ(leaves_of(map), expected);
}

TEST(Tree, WalksStructsByTheirMembers) {
  EXPECT_THAT(leaves_of(Batch{number(1), std::nullopt, 9}), ElementsAre("T1", "false", "9"));
  EXPECT_THAT(leaves_of(Batch{number(1), number(2), 9}), ElementsAre("T1", "true", "T2", "9"));
  EXPECT_THAT(leaves_of(Fixed(number(1), "name")), ElementsAre("name", "T1"));
  EXPECT_THAT(leaves_of(Branch{number(1), {{number(2), {}}, {number(3), {}}}}),
              ElementsAre("T1", "#2", "T2", "#0", "T3", "#0"));
}

TEST(Tree, KeepsTensorsConstOnlyInConstValues) {
  using Value = std::tuple<Batch, std::map<int, std::vector<at::Tensor>>, int>;
  Value value{{number(1), number(2), 3}, {{1, {number(4)}}}, 5};
  visit_leaves(value, []<class Leaf>(Leaf& leaf) {
    constexpr bool kIsTensor = std::same_as<std::remove_const_t<Leaf>, at::Tensor>;
    static_assert(std::is_const_v<Leaf> != kIsTensor);
    (void)leaf;
  });
  visit_leaves(std::as_const(value), []<class Leaf>(Leaf& leaf) {
    static_assert(std::is_const_v<Leaf>);
    (void)leaf;
  });
}

TEST(Tree, VisitsTheTensorsThemselves) {
  Batch batch{number(1), number(2), 0};
  std::vector<const at::Tensor*> seen;
  const auto visitor = [&]<class Leaf>(const Leaf& leaf) {
    if constexpr (std::same_as<Leaf, at::Tensor>) seen.push_back(&leaf);
  };
  visit_leaves(std::as_const(batch), visitor);
  EXPECT_THAT(seen, ElementsAre(&batch.input, &*batch.mask));
}

TEST(Tree, CountsAndCollectsUndefinedTensorsToo) {
  const std::tuple value(number(1), at::Tensor(), std::optional<at::Tensor>(), 3);
  EXPECT_EQ(count_tensors(value), 2u);
  c10::SmallVector<at::Tensor, 4> tensors;
  collect_tensors(value, tensors);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_TRUE(tensors[0].is_same(std::get<0>(value)));
  EXPECT_FALSE(tensors[1].defined());
}

TEST(Tree, RebuildsEveryContainer) {
  rebuild(number(1));
  rebuild(std::optional(number(1)));
  rebuild(std::optional<at::Tensor>());
  rebuild(std::vector{number(1), number(2)});
  rebuild(std::array{number(1), number(2)});
  rebuild(std::pair(number(1), number(2)));
  rebuild(std::tuple(number(1), 3, number(2)));
  rebuild(std::map<std::string, at::Tensor>{{"b", number(1)}, {"a", number(2)}});
  rebuild(std::unordered_map<int, at::Tensor>{{5, number(1)}, {-3, number(2)}, {40, number(3)}});
  rebuild(Batch{number(1), number(2), 9});
  EXPECT_EQ(rebuild(std::tuple(3, std::string("x"))), std::tuple(3, std::string("x")));
}

TEST(Tree, RebuildsWithoutDefaultConstructor) {
  static_assert(!std::is_default_constructible_v<Fixed>);
  EXPECT_EQ(rebuild(Fixed(number(1), "name")).name(), "name");
  EXPECT_THAT(
      leaves_of(rebuild(std::map<int, Fixed>{{1, {number(1), "a"}}, {0, {number(2), "b"}}})),
      ElementsAre("#2", "0", "b", "T100", "1", "a", "T101"));
}

TEST(Tree, RebuildsNestedValues) {
  using Value = std::tuple<std::vector<std::optional<Batch>>,
                           std::unordered_map<std::string, std::pair<Branch, Fixed>>>;
  const Value prototype{{Batch{number(1), number(2), 7}, std::nullopt},
                        {{"k", {Branch{number(3), {{number(4), {}}}}, Fixed(number(5), "f")}}}};
  EXPECT_THAT(leaves_of(rebuild(prototype)),
              ElementsAre("#2", "true", "T100", "true", "T101", "7", "false",  //
                          "#1", "k", "T102", "#1", "T103", "#0", "f", "T104"));
}

}  // namespace
}  // namespace foregrad
