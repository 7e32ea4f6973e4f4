#include "cli/fuzz/tally_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace foregrad::cli::fuzz {
namespace {

std::vector<std::pair<std::string, Group>> most_frequent_first(const Groups& groups) {
  std::vector<std::pair<std::string, Group>> rows(groups.begin(), groups.end());
  std::ranges::stable_sort(
      rows, [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  return rows;
}

std::string table(const char* title, const Groups& groups) {
  if (groups.empty()) return "";
  std::string text = fmt::format("{}, each with the first program:\n", title);
  for (const auto& [name, group] : most_frequent_first(groups)) {
    text += fmt::format("{:>8}  {}\n{:>8}  program {}, {}\n", group.count, name, "",
                        group.programs.front(), group.detail.substr(0, group.detail.find('\n')));
  }
  return text;
}

nlohmann::ordered_json list(const Groups& groups) {
  auto result = nlohmann::ordered_json::array();
  for (const auto& [name, group] : most_frequent_first(groups)) {
    result.push_back({{"name", name},
                      {"count", group.count},
                      {"programs", group.programs},
                      {"detail", group.detail}});
  }
  return result;
}

Groups groups_of(const nlohmann::ordered_json& list) {
  Groups groups;
  for (const auto& row : list) {
    groups[row["name"]] = {
        .count = row["count"], .programs = row["programs"], .detail = row["detail"]};
  }
  return groups;
}

double rate(const Tally& tally) {
  return tally.seconds > 0 ? static_cast<double>(tally.programs) / tally.seconds : 0;
}

}  // namespace

std::string to_text(const Tally& tally) {
  return table("refused, by reason", tally.refusals) + table("differ, by kind", tally.differences) +
         fmt::format(
             "{:.0f} programs a second; eager itself threw in {}\n"
             "programs {}, as eager {}, refused {}, differ {}\n",
             rate(tally), tally.eager_threw, tally.programs, tally.as_eager, tally.refused,
             tally.differ);
}

nlohmann::ordered_json to_json(const Tally& tally, uint64_t seed) {
  return {{"seed", seed},
          {"programs", tally.programs},
          {"as_eager", tally.as_eager},
          {"refused", tally.refused},
          {"differ", tally.differ},
          {"eager_threw", tally.eager_threw},
          {"seconds", tally.seconds},
          {"programs_per_second", rate(tally)},
          {"refusals", list(tally.refusals)},
          {"differences", list(tally.differences)}};
}

Tally to_tally(const nlohmann::ordered_json& json) {
  return {.programs = json["programs"],
          .as_eager = json["as_eager"],
          .refused = json["refused"],
          .differ = json["differ"],
          .eager_threw = json["eager_threw"],
          .seconds = json["seconds"],
          .refusals = groups_of(json["refusals"]),
          .differences = groups_of(json["differences"])};
}

}  // namespace foregrad::cli::fuzz
