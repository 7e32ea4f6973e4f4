#include "api/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

namespace foregrad {

namespace {

// In the order of `LogTopic`.
constexpr std::array<std::string_view, LogTopics{}.size()> kTopicNames{
    "graph", "guards", "recompiles", "timing", "fallbacks"};

unsigned long topics_of_environment() {
  const char* list = std::getenv("FOREGRAD_LOG");
  if (list == nullptr) return 0;
  const LogRequest request = parse_log_request(list);
  if (!request.unknown.empty()) spdlog::warn("foregrad: {}", describe_unknown(request));
  return request.topics.to_ulong();
}

std::atomic<unsigned long>& topics_in_use() {
  static std::atomic<unsigned long> topics(topics_of_environment());
  return topics;
}

}  // namespace

LogRequest parse_log_request(std::string_view list) {
  LogRequest request;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    if (name.empty()) continue;
    const auto* found = std::ranges::find(kTopicNames, name);
    if (name == "all") {
      request.topics.set();
    } else if (found != kTopicNames.end()) {
      request.topics.set(static_cast<size_t>(found - kTopicNames.begin()));
    } else {
      request.unknown.emplace_back(name);
    }
  }
  return request;
}

std::string describe_unknown(const LogRequest& request) {
  if (request.unknown.empty()) return {};
  return fmt::format(
      "`FOREGRAD_LOG`: expected topics out of `{}`, or `all`, separated by commas; got `{}`, which "
      "is ignored.",
      fmt::join(kTopicNames, "`, `"), fmt::join(request.unknown, "`, `"));
}

bool is_logged(LogTopic topic) {
  return LogTopics(topics_in_use().load(std::memory_order_relaxed))
      .test(static_cast<size_t>(topic));
}

bool is_any_logged() { return topics_in_use().load(std::memory_order_relaxed) != 0; }

LogTopics exchange_log_topics(LogTopics topics) {
  return {topics_in_use().exchange(topics.to_ulong())};
}

void log(LogTopic topic, const std::string& text) {
  if (!is_logged(topic)) return;
  spdlog::info("foregrad: {}: {}", kTopicNames[static_cast<size_t>(topic)], text);
}

void log_compilation(const Report::Specialisation& made) {
  if (is_logged(LogTopic::Graph)) {
    log(LogTopic::Graph, fmt::format("forward {}", made.forward_graph));
    log(LogTopic::Graph, fmt::format("backward {}", made.backward_graph));
  }
  if (is_logged(LogTopic::Guards)) log(LogTopic::Guards, fmt::format("\n{}", made.guards));
  if (is_logged(LogTopic::Timing)) {
    std::string text = fmt::format("compiled in {:.3f} ms", made.compile_ms);
    for (const auto& stage : made.stages)
      text += fmt::format("; {} {:.3f} ms", stage.name, stage.ms);
    log(LogTopic::Timing, text);
  }
  for (const auto& [op, count] : made.last_resort_shapes) {
    log(LogTopic::Fallbacks, fmt::format("shape of `{}` found by running it, {} times", op, count));
  }
}

}  // namespace foregrad
