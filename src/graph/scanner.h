// Walks text from left to right and says where something else was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foregrad {

/// Reads tokens off a text. Blanks, line ends and `#` comments before a token are skipped.
/// All errors are `c10::Error` with the subject, line and column, what was expected and what came.
class Scanner {
 public:
  /// `subject` names the text in errors, for example `graph text`. Both must outlive the scanner.
  Scanner(std::string_view text, std::string_view subject) : text_(text), subject_(subject) {}

  /// Skips blanks and tells whether nothing is left.
  bool at_end();
  /// Skips blanks and returns the next character, 0 at the end.
  char peek();
  /// Consumes the token if it comes next. A token that is a word must end where a word ends.
  bool accept(std::string_view token);
  /// Consumes the token or fails.
  void expect(std::string_view token);
  /// Reads letters, digits and underscores; fails if there is none. `expected` names what should
  /// have come.
  std::string_view word(std::string_view expected);
  /// Reads the characters of a number, a name or a path: letters, digits and any of `extra`.
  std::string_view run(std::string_view extra, std::string_view expected);
  /// Reads a non-negative integer.
  uint32_t index(std::string_view expected);
  /// Reads an integer with an optional sign.
  int64_t integer(std::string_view expected);
  /// Consumes one character as it stands, blanks included; fails at the end.
  char next_character(std::string_view expected);

  size_t position() const { return position_; }
  /// Goes back to (or on to) a position.
  void seek(size_t position) { position_ = position; }

  /// Throws: at the next token, `expected` was expected.
  [[noreturn]] void fail(std::string_view expected);
  /// Throws: at `position`, `expected` was expected.
  [[noreturn]] void fail_at(size_t position, std::string_view expected);

 private:
  void skip_blanks();
  std::string found_at(size_t position) const;

  std::string_view text_;
  std::string_view subject_;
  size_t position_ = 0;
};

}  // namespace foregrad
