#include "graph/scanner.h"

#include <algorithm>
#include <charconv>

#include <c10/util/Exception.h>

namespace foregrad {
namespace {

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

void Scanner::skip_blanks() {
  while (position_ < text_.size()) {
    if (text_[position_] == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (is_blank(text_[position_])) {
      ++position_;
    } else {
      return;
    }
  }
}

bool Scanner::at_end() {
  skip_blanks();
  return position_ == text_.size();
}

char Scanner::peek() { return at_end() ? '\0' : text_[position_]; }

bool Scanner::accept(std::string_view token) {
  skip_blanks();
  if (!text_.substr(position_).starts_with(token)) return false;
  const size_t end = position_ + token.size();
  const bool cuts_a_word =
      is_word_character(token.back()) && end < text_.size() && is_word_character(text_[end]);
  if (cuts_a_word) return false;
  position_ = end;
  return true;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token)) fail("`" + std::string(token) + "`");
}

std::string_view Scanner::word(std::string_view expected) { return run("", expected); }

std::string_view Scanner::run(std::string_view extra, std::string_view expected) {
  skip_blanks();
  const size_t start = position_;
  size_t end = start;
  while (end < text_.size() &&
         (is_word_character(text_[end]) || extra.find(text_[end]) != extra.npos))
    ++end;
  if (end == start) fail(expected);
  position_ = end;
  return text_.substr(start, end - start);
}

uint32_t Scanner::index(std::string_view expected) {
  skip_blanks();
  uint32_t number = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
  if (error != std::errc()) fail(expected);
  position_ += end - begin;
  return number;
}

int64_t Scanner::integer(std::string_view expected) {
  skip_blanks();
  int64_t number = 0;
  const char* begin = text_.data() + position_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
  if (error != std::errc()) fail(expected);
  position_ += end - begin;
  return number;
}

char Scanner::next_character(std::string_view expected) {
  if (position_ == text_.size()) fail(expected);
  return text_[position_++];
}

std::string Scanner::found_at(size_t position) const {
  constexpr size_t kLongestExcerpt = 30;
  if (position == text_.size()) return "the end of the text";
  size_t end = position + 1;
  while (end < text_.size() && end - position < kLongestExcerpt &&
         is_word_character(text_[end - 1]) && is_word_character(text_[end])) {
    ++end;
  }
  return "`" + std::string(text_.substr(position, end - position)) + "`";
}

void Scanner::fail(std::string_view expected) {
  skip_blanks();
  fail_at(position_, expected);
}

void Scanner::fail_at(size_t position, std::string_view expected) {
  const std::string_view before = text_.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = position - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  TORCH_CHECK(false, subject_, ", line ", line, ", column ", column, ": expected ", expected,
              ", got ", found_at(position));
}

}  // namespace foregrad
