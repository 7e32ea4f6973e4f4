#include "foregrad/self_check.h"

#include <fmt/format.h>

#include <utility>

#include "capture/self_check.h"

namespace foregrad {

SelfCheck self_check() {
  CaptureCheck check = check_capture();
  SelfCheck result{.ok = check.failures.empty(),
                   .libtorch_version = std::move(check.libtorch_version),
                   .trace_key = std::move(check.trace_key),
                   .lines = std::move(check.failures)};
  result.lines.push_back(fmt::format("{} operators have the trace handler", check.operators));
  return result;
}

}  // namespace foregrad
