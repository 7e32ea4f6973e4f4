#include "cli/fuzz/session.h"

#include <cctype>
#include <chrono>

#include "cli/fuzz/generator.h"

namespace foregrad::cli::fuzz {
namespace {

constexpr size_t kMaxReason = 110;
constexpr size_t kMostPrograms = 100;

void count(const Verdict& verdict, uint64_t number, Tally& tally) {
  ++tally.programs;
  tally.eager_threw += verdict.eager_threw ? 1 : 0;
  for (const std::string& reason : verdict.refusals) {
    add(without_details(reason), {.count = 1, .programs = {number}, .detail = reason},
        tally.refusals);
  }
  if (verdict.difference) {
    ++tally.differ;
    add(verdict.difference->kind,
        {.count = 1, .programs = {number}, .detail = verdict.difference->detail},
        tally.differences);
  } else if (!verdict.refusals.empty()) {
    ++tally.refused;
  } else {
    ++tally.as_eager;
  }
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

void add(const std::string& name, const Group& more, Groups& groups) {
  const auto [place, is_new] = groups.try_emplace(name, more);
  if (is_new) return;
  Group& group = place->second;
  group.count += more.count;
  for (const uint64_t program : more.programs) {
    if (group.programs.size() < kMostPrograms) group.programs.push_back(program);
  }
}

std::string without_details(const std::string& reason) {
  std::string result;
  for (size_t i = 0; i < reason.size() && reason[i] != '\n' && result.size() < kMaxReason; ++i) {
    const size_t end = reason[i] == '`' ? reason.find('`', i + 1) : std::string::npos;
    if (end != std::string::npos) {
      result += "`…`";
      i = end;
    } else if (!is_digit(reason[i])) {
      result += reason[i];
    } else if (!result.ends_with('N')) {
      result += 'N';
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
