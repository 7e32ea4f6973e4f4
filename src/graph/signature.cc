#include "graph/signature.h"

#include <type_traits>

#include <fmt/format.h>

namespace foregrad {
namespace {

std::string write(UserInput role) { return fmt::format("user({})", role.input.index); }
std::string write(Lifted role) { return fmt::format("lifted({})", role.input.index); }
std::string write(ViewBase role) { return fmt::format("view_base({})", role.input.index); }
std::string write(Memory role) { return fmt::format("memory({})", role.input.index); }
std::string write(UserOutput role) { return fmt::format("output({})", role.output.index); }
std::string write(MutatedInput role) { return fmt::format("mutated({})", role.of.index); }
std::string write(IntermediateBase role) {
  return fmt::format("intermediate_base({})", role.base.index);
}
std::string write(Grad role) { return fmt::format("grad({})", role.of.index); }
std::string write(Saved role) { return fmt::format("saved(%{})", role.value.index); }
std::string write(const Tangent& role) { return fmt::format("tangent({})", to_text(role.of)); }

std::string write(LateInput role) { return fmt::format("late({})", role.input.index); }
std::string write(LateWrite role) { return fmt::format("late_write({})", role.of.index); }
std::string write(const TangentWrite& role) {
  return fmt::format("tangent_write({})", to_text(role.of));
}

constexpr auto kWrite = [](const auto& role) { return write(role); };

}  // namespace

std::string to_text(const InputRole& role) { return std::visit(kWrite, role); }
std::string to_text(const OutputRole& role) { return std::visit(kWrite, role); }
std::string to_text(const Differentiable& role) { return std::visit(kWrite, role); }

bool belongs_to_backward(const InputRole& role) {
  return std::holds_alternative<Tangent>(role) || std::holds_alternative<LateInput>(role);
}

bool belongs_to_backward(const OutputRole& role) {
  return std::holds_alternative<Grad>(role) || std::holds_alternative<LateWrite>(role) ||
         std::holds_alternative<TangentWrite>(role);
}

std::optional<InputIndex> primal_of(const InputRole& role) {
  if (const auto* user = std::get_if<UserInput>(&role)) return user->input;
  if (const auto* lifted = std::get_if<Lifted>(&role)) return lifted->input;
  if (const auto* base = std::get_if<ViewBase>(&role)) return base->input;
  if (const auto* memory = std::get_if<Memory>(&role)) return memory->input;
  return std::nullopt;
}

std::optional<Differentiable> differentiable_of(const OutputRole& role) {
  return std::visit(
      [](const auto& one) -> std::optional<Differentiable> {
        using Role = std::decay_t<decltype(one)>;
        if constexpr (std::is_constructible_v<Differentiable, Role>) {
          return one;
        } else {
          return std::nullopt;
        }
      },
      role);
}

}  // namespace foregrad
