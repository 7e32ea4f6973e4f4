#include "graph/effects.h"

#include <fmt/format.h>

#include "graph/literal.h"

namespace foregrad {
namespace {

std::string write(const CallAgain& call) {
  std::string results;
  for (const Operand& result : call.op.results) {
    for_each_value(result, [&](ValueId slot) {
      results += fmt::format("{}%{}", results.empty() ? "" : ", ", slot.index);
    });
  }
  return fmt::format("{}{}{}", results, results.empty() ? "" : " = ", to_text(call.op));
}
std::string write(const TakeStrided& take) {
  return fmt::format("%{} = strided view of %{}: {}", take.view.index, take.base.index,
                     to_text(take.type));
}
std::string write(const AdvanceVersion& advance) {
  return fmt::format("%{}: version +{}", advance.slot.index, advance.by);
}
std::string write(const JoinHistory& join) {
  return fmt::format("%{}: the call is its history, as {}", join.slot.index, to_text(join.as));
}

std::string write(const HoldHistory& hold) {
  return fmt::format("%{}: has a history until it is written", hold.slot.index);
}
std::string write(const RefreshHistory& refresh) {
  return fmt::format("%{}: takes its base's history", refresh.slot.index);
}

}  // namespace

bool operator==(const CallAgain& left, const CallAgain& right) {
  return left.op.op == right.op.op && left.op.modes == right.op.modes &&
         operands_equal(left.op.args, right.op.args) &&
         operands_equal(left.op.results, right.op.results);
}

std::string to_text(const Effect& effect) {
  return std::visit([](const auto& one) { return write(one); }, effect);
}

}  // namespace foregrad
