#include "cli/fuzz/fuzz_command.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/atomic_file.h"
#include "cli/fuzz/cpp_printer.h"
#include "cli/fuzz/generator.h"
#include "cli/fuzz/isolation.h"
#include "cli/fuzz/session.h"
#include "cli/fuzz/shrinker.h"
#include "cli/fuzz/tally_text.h"
#include "cli/interrupt.h"

namespace foregrad::cli {
namespace {

using fuzz::Program;
using fuzz::Tally;
using fuzz::Verdict;

struct FuzzCommand {
  fuzz::SessionOptions session;
  std::optional<uint64_t> print;  // the number of a program: it is printed, none is run
  bool shrink = false;
  size_t max_failures = 5;
  std::string json;  // empty: none
};

/// Silences what would be said thousands of times, and keeps tiny tensors on one thread.
class Quiet {
 public:
  Quiet() {
    spdlog::set_level(spdlog::level::off);  // each refusal would be a warning
    at::set_num_threads(1);
  }
  ~Quiet() {
    spdlog::set_level(level_);
    at::set_num_threads(threads_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  struct Mute final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };

  spdlog::level::level_enum level_ = spdlog::get_level();
  int threads_ = at::get_num_threads();
  Mute mute_;
  c10::WarningUtils::WarningHandlerGuard guard_{&mute_};
};

Verdict run_isolated(const Program& program) {
  return fuzz::run_isolated(program, fuzz::compile_by_foregrad);
}

/// Returns a program made small, if it differs, with what differs.
std::pair<Program, std::string> find_small_program(uint64_t seed, uint64_t number) {
  Program program = fuzz::draw_program(seed, number);
  std::string comment = fmt::format("Program {} of seed {}", number, seed);
  const auto difference = run_isolated(program).difference;
  if (!difference) return {std::move(program), comment + "."};
  program = fuzz::shrink(std::move(program), [&](const std::vector<Program>& smaller) {
    return fuzz::find_isolated(smaller, difference->kind, fuzz::compile_by_foregrad);
  });
  comment += ", shrunk. Differs: " + run_isolated(program).difference->detail;
  return {std::move(program), comment};
}

/// Prints the first program of each kind of difference, shrunk.
void print_failures(const FuzzCommand& command, const Tally& tally) {
  std::vector<std::pair<uint64_t, std::string>> kinds;
  for (const auto& [kind, group] : tally.differences)
    kinds.emplace_back(group.programs.front(), kind);
  std::ranges::sort(kinds);
  kinds.resize(std::min(kinds.size(), command.max_failures));
  for (const auto& [number, kind] : kinds) {
    const auto [program, comment] = find_small_program(command.session.seed, number);
    fmt::print(
        "== {} ==\n{}\n\n{}\nThe whole source: foregrad fuzz --seed {} --print {} --shrink\n\n",
        kind, comment, fuzz::to_cpp_fragment(program), command.session.seed, number);
  }
}

ExitCode run(const FuzzCommand& command) {
  const Quiet quiet;
  if (command.print) {
    const uint64_t seed = command.session.seed;
    const auto [program, comment] =
        command.shrink ? find_small_program(seed, *command.print)
                       : std::pair(fuzz::draw_program(seed, *command.print),
                                   fmt::format("Program {} of seed {}.", *command.print, seed));
    fmt::print("{}", fuzz::to_cpp(program, comment));
    return ExitCode::kOk;
  }
  if (!command.session.programs && !command.session.seconds) {
    throw Failure(ExitCode::kUsage, "`fuzz`: expected a limit: `--programs`, `--seconds` or both.");
  }
  const InterruptGuard interrupt;
  const Tally tally = fuzz::run_isolated_session(command.session, fuzz::compile_by_foregrad,
                                                 [&](const Tally&) { interrupt.check(); });
  print_failures(command, tally);
  if (!command.json.empty()) {
    write_file(command.json,
               to_json(tally, command.session.seed)
                       .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                   "\n");
  }
  fmt::print("{}", to_text(tally));
  return tally.differ == 0 ? ExitCode::kOk : ExitCode::kMismatch;
}

}  // namespace

void add_fuzz_command(CLI::App& application, ExitCode& result) {
  auto values = std::make_shared<FuzzCommand>();
  CLI::App* command = application.add_subcommand(
      "fuzz", "Run random programs eagerly and compiled and compare all that a caller can see");
  command->add_option("--seed", values->session.seed, "Which programs (default 1)");
  command->add_option("--first", values->session.first, "Begin with this program (default 0)");
  command->add_option("--programs", values->session.programs, "Stop after so many programs");
  command->add_option("--seconds", values->session.seconds, "Stop after so many seconds");
  command->add_option(
      "--max-failures", values->max_failures,
      "Shrink and print so many programs that differ, one of each kind (default 5)");
  command->add_option("--print", values->print, "Print this program as C++ instead");
  command->add_flag("--shrink", values->shrink, "With `--print`: shrink it first if it differs");
  command->add_option("--json", values->json, "Write the counts to this file too");
  command->callback([values, &result] { result = run(*values); });
}

}  // namespace foregrad::cli
