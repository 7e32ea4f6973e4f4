#include "cli/fuzz/tally_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace foregrad::cli::fuzz {
namespace {

uint64_t count_of(uint64_t count) { return count; }
uint64_t count_of(const DifferenceCount& same) { return same.count; }

template <class Counts>
auto most_frequent_first(const Counts& counts) {
  std::vector<std::pair<std::string, typename Counts::mapped_type>> rows(counts.begin(),
                                                                         counts.end());
  std::ranges::stable_sort(
      rows, [](const auto& a, const auto& b) { return count_of(a.second) > count_of(b.second); });
  return rows;
}

double rate(const Tally& tally) {
  return tally.seconds > 0 ? static_cast<double>(tally.programs) / tally.seconds : 0;
}

}  // namespace

std::string to_text(const Tally& tally) {
  std::string text;
  if (!tally.refusals.empty()) text += "refused, by reason:\n";
  for (const auto& [reason, count] : most_frequent_first(tally.refusals)) {
    text += fmt::format("{:>8}  {}\n", count, reason.substr(0, reason.find('\n')));
  }
  if (!tally.differences.empty()) text += "differ, by kind, each with the first program:\n";
  for (const auto& [kind, same] : most_frequent_first(tally.differences)) {
    text += fmt::format("{:>8}  {}\n{:>8}  program {}, {}\n", same.count, kind, "", same.program,
                        same.detail);
  }
  return text + fmt::format(
                    "{:.0f} programs a second; eager itself threw in {}\n"
                    "programs {}, as eager {}, refused {}, differ {}\n",
                    rate(tally), tally.eager_threw, tally.programs, tally.as_eager, tally.refused,
                    tally.differ);
}

nlohmann::ordered_json to_json(const Tally& tally, uint64_t seed) {
  nlohmann::ordered_json json{{"seed", seed},
                              {"programs", tally.programs},
                              {"as_eager", tally.as_eager},
                              {"refused", tally.refused},
                              {"differ", tally.differ},
                              {"eager_threw", tally.eager_threw},
                              {"seconds", tally.seconds},
                              {"programs_per_second", rate(tally)},
                              {"refusals", nlohmann::ordered_json::array()},
                              {"differences", nlohmann::ordered_json::array()}};
  for (const auto& [reason, count] : most_frequent_first(tally.refusals)) {
    json["refusals"].push_back({{"reason", reason}, {"count", count}});
  }
  for (const auto& [kind, same] : most_frequent_first(tally.differences)) {
    json["differences"].push_back({{"kind", kind},
                                   {"count", same.count},
                                   {"first_program", same.program},
                                   {"detail", same.detail}});
  }
  return json;
}

Tally to_tally(const nlohmann::ordered_json& json) {
  Tally tally{.programs = json["programs"],
              .as_eager = json["as_eager"],
              .refused = json["refused"],
              .differ = json["differ"],
              .eager_threw = json["eager_threw"],
              .seconds = json["seconds"],
              .refusals = {},
              .differences = {}};
  for (const auto& row : json["refusals"]) tally.refusals[row["reason"]] = row["count"];
  for (const auto& row : json["differences"]) {
    tally.differences[row["kind"]] = {
        .count = row["count"], .program = row["first_program"], .detail = row["detail"]};
  }
  return tally;
}

}  // namespace foregrad::cli::fuzz
