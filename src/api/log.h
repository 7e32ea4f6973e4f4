// What `FOREGRAD_LOG` switches on: a list of topics, such as `graph,timing`, written through
// spdlog's default logger at level `info`. Warnings need no switch and don't go through here.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foregrad/report.h"

namespace foregrad {

enum class LogTopic : std::uint8_t {
  Graph,       // the forward and backward graph of each compilation
  Guards,      // what each specialisation is guarded by
  Recompiles,  // for each compilation but the first, the guard that failed
  Timing,      // the stages of each compilation
  Fallbacks,   // each call that runs eagerly; shapes that took a run of the real kernel
};

using LogTopics = std::bitset<5>;

struct LogRequest {
  LogTopics topics;
  std::vector<std::string> unknown;  // names in the list that are no topic's
};

/// Reads a list of topics, separated by commas; `all` is all of them.
LogRequest parse_log_request(std::string_view list);

/// Says what is wrong with a request; empty if nothing is.
std::string describe_unknown(const LogRequest& request);

/// Says whether a topic is switched on. The first call in a process reads `FOREGRAD_LOG`, and warns
/// of names that it doesn't know.
bool is_logged(LogTopic topic);

/// Says whether any topic is.
bool is_any_logged();

/// Switches topics whatever the environment says, and returns those before.
LogTopics exchange_log_topics(LogTopics topics);

/// Writes a text under its topic, if that is switched on.
void log(LogTopic topic, const std::string& text);

/// Writes what the topics ask for of one compilation.
void log_compilation(const Report::Specialisation& made);

}  // namespace foregrad
