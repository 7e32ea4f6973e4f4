#include "cli/fuzz/session.h"

#include <cctype>
#include <chrono>
#include <string_view>

#include "cli/fuzz/generator.h"

namespace foregrad::cli::fuzz {
namespace {

void count(const Verdict& verdict, uint64_t number, Tally& tally) {
  ++tally.programs;
  tally.eager_threw += verdict.eager_threw ? 1 : 0;
  for (const std::string& reason : verdict.refusals) ++tally.refusals[without_numbers(reason)];
  if (verdict.difference) {
    ++tally.differ;
    DifferenceCount& same = tally.differences[verdict.difference->kind];
    if (same.count++ == 0) {
      same.program = number;
      same.detail = verdict.difference->detail;
    }
  } else if (!verdict.refusals.empty()) {
    ++tally.refused;
  } else {
    ++tally.as_eager;
  }
}

}  // namespace

std::string without_numbers(const std::string& reason) {
  std::string result;
  for (const char c : reason) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) {
      result += c;
    } else if (result.empty() || result.back() != 'N') {
      result += 'N';
    }
    for (const std::string_view repeated : {",N", ", N"}) {  // sizes: of any length
      if (result.ends_with("N" + std::string(repeated))) {
        result.resize(result.size() - repeated.size());
      }
    }
  }
  return result;
}

Tally run_session(const SessionOptions& options, const Compiler& compiler,
                  const std::function<void(const Tally&)>& between) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Tally tally;
  for (uint64_t number = options.first;; ++number) {
    tally.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (options.programs && tally.programs >= *options.programs) break;
    if (options.seconds && tally.seconds >= *options.seconds) break;
    if (between) between(tally);
    count(run_program(draw_program(options.seed, number), compiler), number, tally);
  }
  return tally;
}

}  // namespace foregrad::cli::fuzz
