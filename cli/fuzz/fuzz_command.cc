#include "cli/fuzz/fuzz_command.h"

#include <ATen/Parallel.h>
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
#include "cli/fuzz/session.h"
#include "cli/interrupt.h"

namespace foregrad::cli {
namespace {

using fuzz::Tally;

struct FuzzCommand {
  fuzz::SessionOptions session;
  std::string json;  // empty: none
};

/// Sorts by count, most frequent first.
template <class Counts, class Key>
auto most_frequent(const Counts& counts, const Key& key) {
  std::vector<std::pair<std::string, typename Counts::mapped_type>> rows(counts.begin(),
                                                                         counts.end());
  std::ranges::stable_sort(
      rows, [&](const auto& a, const auto& b) { return key(a.second) > key(b.second); });
  return rows;
}

void print_refusals(const Tally& tally) {
  if (tally.refusals.empty()) return;
  fmt::print("refused, by reason:\n");
  for (const auto& [reason, count] : most_frequent(tally.refusals, [](uint64_t n) { return n; })) {
    fmt::print("{:>8}  {}\n", count, reason.substr(0, reason.find('\n')));
  }
}

void print_differences(const Tally& tally) {
  if (tally.differences.empty()) return;
  fmt::print("differ, by kind:\n");
  for (const auto& [kind, same] :
       most_frequent(tally.differences, [](const auto& d) { return d.count; })) {
    fmt::print("{:>8}  {}\n          program {}: {}\n", same.count, kind, same.program,
               same.detail);
  }
}

ExitCode run(const FuzzCommand& command) {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);  // each refusal would be a warning
  at::set_num_threads(1);                 // tensors are tiny
  const InterruptGuard interrupt;
  const Tally tally = fuzz::run_session(command.session, fuzz::compile_by_foregrad,
                                        [&](const Tally&) { interrupt.check(); });
  spdlog::set_level(level);
  print_refusals(tally);
  print_differences(tally);
  fmt::print("{:.0f} programs a second; eager itself threw in {}\n",
             static_cast<double>(tally.programs) / tally.seconds, tally.eager_threw);
  fmt::print("programs {}, as eager {}, refused {}, differ {}\n", tally.programs, tally.as_eager,
             tally.refused, tally.differ);
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
  command->callback([values, &result] { result = run(*values); });
}

}  // namespace foregrad::cli
