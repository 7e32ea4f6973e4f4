// The grammar is the one that printer.h shows. Line ends are blanks, so a long call may go over
// several lines. The parser checks form only: the rules of the IR are the verifier's, so that a
// text may show a broken graph.
#include "graph/parser.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "graph/literal.h"
#include "graph/literal_reader.h"
#include "graph/scanner.h"

namespace foregrad {
namespace {

// Bounds the table of values that a single large id makes.
constexpr uint32_t kLargestValueId = (1u << 24) - 1;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Whether operands of the type are lists of values rather than literals.
bool is_tensor_list(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType) return is_tensor_list(*type.containedType(0));
  if (type.kind() != c10::TypeKind::ListType) return false;
  const c10::Type* element = type.containedType(0).get();
  if (element->kind() == c10::TypeKind::OptionalType) element = element->containedType(0).get();
  return element->kind() == c10::TypeKind::TensorType;
}

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::vector<at::Generator>& generators)
      : scanner_(text, "graph text"), generators_(generators) {}

  Graph run() {
    scanner_.expect("graph");
    scanner_.expect("{");
    while (!scanner_.accept("}")) statement();
    if (!scanner_.at_end()) scanner_.fail("the end of the text");
    return std::move(graph_);
  }

 private:
  void statement() {
    if (scanner_.accept("input")) {
      const ValueId value = definition();
      scanner_.expect("=");
      graph_.inputs.push_back({value, input_role()});
    } else if (scanner_.accept("output")) {
      std::optional<ValueId> value;
      if (!scanner_.accept("undefined")) value = value_id("a value or `undefined`");
      scanner_.expect("=");
      graph_.outputs.push_back({value, output_role()});
    } else {
      node();
    }
  }

  // ---- nodes
  void node() {
    const Phase phase = scanner_.accept("backward") ? Phase::Backward : Phase::Forward;
    std::vector<Operand> defined = results();
    scanner_.expect("=");
    const c10::OperatorHandle op = operator_handle();
    Node& node = graph_.nodes.emplace_back(
        Node{.op = op, .args = arguments(op), .results = std::move(defined), .phase = phase});
    if (scanner_.accept("overwrites")) node.overwrites = scanner_.index("the place of an argument");
  }

  std::vector<Operand> results() {
    std::vector<Operand> results;
    if (scanner_.accept("()")) return results;
    do {
      if (scanner_.accept("undefined")) {
        results.emplace_back(c10::IValue());
      } else if (scanner_.accept("[")) {
        results.emplace_back(result_list());
      } else if (scanner_.peek() == '%') {
        results.emplace_back(definition());
      } else {
        scanner_.fail(
            "`input`, `output`, `backward`, a result (`%`, `[`, `undefined` or `()`) or `}`");
      }
    } while (scanner_.accept(","));
    return results;
  }

  ValueList result_list() {
    ValueList list;
    if (scanner_.accept("]")) return list;
    do {
      if (scanner_.accept("undefined")) {
        list.emplace_back();
      } else {
        list.emplace_back(definition());
      }
    } while (scanner_.accept(","));
    if (!scanner_.accept("]")) scanner_.fail("`,` or `]`");
    return list;
  }

  c10::OperatorHandle operator_handle() {
    scanner_.peek();
    const size_t start = scanner_.position();
    const std::string name(scanner_.run(":.", "an operator, for example `aten::mul.Tensor`"));
    const size_t space = name.find("::");
    const size_t dot = space == name.npos ? name.npos : name.find('.', space);
    const std::string overload = dot == name.npos ? "" : name.substr(dot + 1);
    auto op = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
    if (!op) scanner_.fail_at(start, "an operator that is registered, not `" + name + "`");
    return *op;
  }

  std::vector<Operand> arguments(const c10::OperatorHandle& op) {
    const auto& parameters = op.schema().arguments();
    std::vector<std::optional<Operand>> given(parameters.size());
    scanner_.expect("(");
    size_t next = 0;
    if (scanner_.peek() != ')') {
      do {
        next = named_place(op, next);
        if (next >= parameters.size())
          scanner_.fail(fmt::format("at most {} arguments", parameters.size()));
        given[next] = operand(*parameters[next].real_type());
        ++next;
      } while (scanner_.accept(","));
    }
    if (scanner_.peek() != ')') scanner_.fail("`,` or `)`");
    std::vector<Operand> args;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!given[i] && !parameters[i].default_value()) {
        scanner_.fail(fmt::format("argument `{}` of `{}`, which has no default",
                                  parameters[i].name(), operator_text(op)));
      }
      args.push_back(given[i] ? std::move(*given[i]) : Operand(*parameters[i].default_value()));
    }
    scanner_.expect(")");
    return args;
  }

  /// Reads `name=` if it comes next and returns the place of that argument, else `next`.
  size_t named_place(const c10::OperatorHandle& op, size_t next) {
    if (!is_letter(scanner_.peek())) return next;
    const size_t start = scanner_.position();
    const std::string name(scanner_.word("an argument"));
    if (!scanner_.accept("=")) {  // a literal that is a word
      scanner_.seek(start);
      return next;
    }
    const auto& parameters = op.schema().arguments();
    for (size_t i = next; i < parameters.size(); ++i) {
      if (parameters[i].name() == name) return i;
    }
    scanner_.fail_at(start,
                     fmt::format("an argument of `{}` that is not given yet, in the schema's order",
                                 operator_text(op)));
  }

  Operand operand(const c10::Type& type) {
    if (scanner_.peek() == '%') return value_id("a value");
    if (is_tensor_list(type) && scanner_.accept("[")) return value_list();
    if (is_tensor_list(type) && !scanner_.accept("none")) scanner_.fail("`[` or `none`");
    if (is_tensor_list(type)) return c10::IValue();
    return read_literal(scanner_, type, generators_);
  }

  ValueList value_list() {
    ValueList list;
    if (scanner_.accept("]")) return list;
    do {
      if (scanner_.accept("none")) {
        list.emplace_back();
      } else {
        list.emplace_back(value_id("a value or `none`"));
      }
    } while (scanner_.accept(","));
    if (!scanner_.accept("]")) scanner_.fail("`,` or `]`");
    return list;
  }

  // ---- values and their types
  ValueId value_id(std::string_view expected) {
    if (!scanner_.accept("%")) scanner_.fail(expected);
    const size_t start = scanner_.position();
    const uint32_t index = scanner_.index("the number of a value");
    if (index > kLargestValueId)
      scanner_.fail_at(start, fmt::format("a value up to %{}", kLargestValueId));
    if (index >= graph_.values.size()) graph_.values.resize(index + 1);
    return {index};
  }

  ValueId definition() {
    const ValueId value = value_id("a value");
    scanner_.expect(":");
    graph_.values[value.index] = tensor_type();
    return value;
  }

  TensorType tensor_type() {
    TensorType type;
    type.dtype = read_literal(scanner_, *c10::ScalarTypeType::get(), generators_).toScalarType();
    type.sizes = extents("[", "]");
    const size_t start = scanner_.position();
    type.strides = extents("{", "}");
    if (type.strides.size() != type.sizes.size())
      scanner_.fail_at(start, "as many strides as sizes");
    if (scanner_.accept("+")) type.storage_offset = scanner_.integer("a storage offset");
    if (scanner_.accept("@"))
      type.device = read_literal(scanner_, *c10::DeviceObjType::get(), generators_).toDevice();
    type.is_conj = scanner_.accept("conj");
    type.is_neg = scanner_.accept("neg");
    return type;
  }

  c10::DimVector extents(std::string_view open, std::string_view close) {
    c10::DimVector extents;
    scanner_.expect(open);
    if (scanner_.accept(close)) return extents;
    do {
      extents.push_back(scanner_.integer("an integer"));
    } while (scanner_.accept(","));
    if (!scanner_.accept(close)) scanner_.fail(fmt::format("`,` or `{}`", close));
    return extents;
  }

  // ---- roles
  uint32_t role_index() {
    const uint32_t index = scanner_.index("a number");
    scanner_.expect(")");
    return index;
  }

  std::optional<Saved> saved_role() {
    if (!scanner_.accept("saved(")) return std::nullopt;
    const ValueId value = value_id("a value");
    scanner_.expect(")");
    return Saved{value};
  }

  std::optional<Differentiable> differentiable_role() {
    if (scanner_.accept("output(")) return UserOutput{{role_index()}};
    if (scanner_.accept("mutated(")) return MutatedInput{{role_index()}};
    if (scanner_.accept("intermediate_base(")) return IntermediateBase{{role_index()}};
    return std::nullopt;
  }

  Differentiable differentiable_in_parentheses() {
    const auto of = differentiable_role();
    if (!of) scanner_.fail("`output(`, `mutated(` or `intermediate_base(`");
    scanner_.expect(")");
    return *of;
  }

  InputRole input_role() {
    if (scanner_.accept("user(")) return UserInput{{role_index()}};
    if (scanner_.accept("lifted(")) return Lifted{{role_index()}};
    if (scanner_.accept("view_base(")) return ViewBase{{role_index()}};
    if (scanner_.accept("memory(")) return Memory{{role_index()}};
    if (scanner_.accept("late(")) return LateInput{{role_index()}};
    if (const auto saved = saved_role()) return *saved;
    if (!scanner_.accept("tangent("))
      scanner_.fail("`user(`, `lifted(`, `view_base(`, `memory(`, `tangent(`, `late(` or `saved(`");
    return Tangent{differentiable_in_parentheses()};
  }

  OutputRole output_role() {
    if (const auto role = differentiable_role()) {
      return std::visit([](const auto& one) -> OutputRole { return one; }, *role);
    }
    if (scanner_.accept("grad(")) return Grad{{role_index()}};
    if (const auto saved = saved_role()) return *saved;
    if (scanner_.accept("late_write(")) return LateWrite{{role_index()}};
    if (scanner_.accept("tangent_write(")) return TangentWrite{differentiable_in_parentheses()};
    scanner_.fail(
        "`output(`, `mutated(`, `intermediate_base(`, `grad(`, `late_write(`, "
        "`tangent_write(` or `saved(`");
  }

  Scanner scanner_;
  const std::vector<at::Generator>& generators_;
  Graph graph_;
};

}  // namespace

Graph parse_graph(std::string_view text, const std::vector<at::Generator>& generators) {
  return GraphParser(text, generators).run();
}

}  // namespace foregrad
