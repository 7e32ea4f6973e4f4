#include "graph/scanner.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foregrad {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Scanner, SkipsBlanksLineEndsAndComments) {
  Scanner scanner("  # a comment\n\t a # the end", "text");
  EXPECT_TRUE(scanner.accept("a"));
  EXPECT_TRUE(scanner.at_end());
  EXPECT_EQ(scanner.peek(), '\0');
}

TEST(Scanner, DoesNotCutWords) {
  Scanner scanner("inputs", "text");
  EXPECT_FALSE(scanner.accept("input"));
  EXPECT_EQ(scanner.word("a word"), "inputs");
}

TEST(Scanner, ReadsNumbers) {
  Scanner scanner("7 -3 x", "text");
  EXPECT_EQ(scanner.index("a number"), 7u);
  EXPECT_EQ(scanner.integer("a number"), -3);
  EXPECT_THAT([&] { scanner.index("a place"); },
              ThrowsMessage<c10::Error>(HasSubstr("expected a place, got `x`")));
}

TEST(Scanner, NumberBeyondItsTypeIsAnError) {
  Scanner scanner("4294967296", "text");
  EXPECT_THAT([&] { scanner.index("a place"); },
              ThrowsMessage<c10::Error>(HasSubstr("expected a place")));
}

TEST(Scanner, NamesSubjectLineAndColumn) {
  Scanner scanner("one\n  two", "poem");
  scanner.expect("one");
  EXPECT_THAT(
      [&] { scanner.expect("three"); },
      ThrowsMessage<c10::Error>(HasSubstr("poem, line 2, column 3: expected `three`, got `two`")));
}

TEST(Scanner, NamesTheEndOfTheText) {
  Scanner scanner("one  ", "poem");
  scanner.expect("one");
  EXPECT_THAT([&] { scanner.word("a word"); },
              ThrowsMessage<c10::Error>(HasSubstr("got the end of the text")));
  EXPECT_THAT([&] { scanner.next_character("`\"`"); },
              ThrowsMessage<c10::Error>(HasSubstr("the end of the text")));
}

TEST(Scanner, SeekGoesBack) {
  Scanner scanner("one two", "poem");
  const size_t start = scanner.position();
  scanner.expect("one");
  scanner.seek(start);
  EXPECT_TRUE(scanner.accept("one"));
}

}  // namespace
}  // namespace foregrad
