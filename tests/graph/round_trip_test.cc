// Random graphs over every operator whose arguments graph text can express: text of a graph reads
// back as the graph.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "graph/literal.h"
#include "graph/parser.h"
#include "graph/printer.h"
#include "graph/verifier.h"
#include "support/graph_builder.h"

namespace foregrad {
namespace {

using c10::TypeKind;

bool is_tensor(const c10::Type& type) {
  return type.kind() == TypeKind::TensorType ||
         (type.kind() == TypeKind::OptionalType && is_tensor(*type.containedType(0)));
}

bool is_tensor_list(const c10::Type& type) {
  return type.kind() == TypeKind::ListType && is_tensor(*type.containedType(0));
}

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) generators_.push_back(at::detail::createCPUGenerator(i));
  }

  Graph make(const std::vector<c10::OperatorHandle>& ops, size_t nodes) {
    graph_ = {};
    for (uint32_t i = 0; i < 3; ++i) defined_.push_back(add_input(graph_, type(), UserInput{{i}}));
    defined_.push_back(add_input(graph_, type(), Tangent{MutatedInput{{1}}}));
    while (graph_.nodes.size() < nodes) add_node(ops[pick(ops.size())]);
    for (uint32_t i = 0; i < 4; ++i)
      graph_.outputs.push_back({defined_[pick(defined_.size())], UserOutput{{i}}});
    graph_.outputs.push_back({std::nullopt, Grad{{2}}});
    return graph_;
  }

  const std::vector<at::Generator>& generators() const { return generators_; }

 private:
  size_t pick(size_t count) { return random_() % count; }
  bool chance(size_t in) { return pick(in) == 0; }

  TensorType type() {
    TensorType type;
    type.dtype = static_cast<at::ScalarType>(pick(static_cast<size_t>(at::ScalarType::Undefined)));
    for (size_t dim = pick(4); dim-- > 0;) {
      type.sizes.push_back(static_cast<int64_t>(pick(5)));
      type.strides.push_back(static_cast<int64_t>(pick(20)));
    }
    if (chance(4)) type.storage_offset = static_cast<int64_t>(pick(9));
    if (chance(9)) type.device = c10::Device("cuda:1");
    type.is_conj = chance(9);
    type.is_neg = chance(9);
    return type;
  }

  void add_node(const c10::OperatorHandle& op) {
    Node node{.op = op, .args = {}, .results = {}};
    for (const c10::Argument& parameter : op.schema().arguments()) {
      if (parameter.default_value() && chance(2)) {
        node.args.emplace_back(*parameter.default_value());
      } else {
        node.args.push_back(operand(*parameter.real_type()));
      }
    }
    for (const c10::Argument& result : op.schema().returns())
      node.results.push_back(define(*result.real_type()));
    node.phase = graph_.nodes.size() > 20 ? Phase::Backward : Phase::Forward;
    for_each_definition(node, [&](ValueId value) { defined_.push_back(value); });
    graph_.nodes.push_back(std::move(node));
  }

  Operand operand(const c10::Type& type) {
    if (is_tensor(type)) {
      if (chance(6)) return c10::IValue();
      if (chance(6)) return c10::IValue(constant());
      return defined_[pick(defined_.size())];
    }
    if (!is_tensor_list(type)) return literal(type);
    ValueList list;
    for (size_t length = pick(4); length-- > 0;) {
      list.push_back(chance(4) ? std::nullopt : std::optional(defined_[pick(defined_.size())]));
    }
    return list;
  }

  Operand define(const c10::Type& type) {
    if (is_tensor(type) && !chance(5)) return add_value(graph_, this->type());
    if (!is_tensor_list(type)) return c10::IValue();
    ValueList list;
    for (size_t length = pick(4); length-- > 0;) {
      list.push_back(chance(4) ? std::nullopt : std::optional(add_value(graph_, this->type())));
    }
    return list;
  }

  double number() {
    return chance(3) ? std::bit_cast<double>(random_()) : static_cast<double>(pick(7)) - 3;
  }

  at::Tensor constant() {
    at::Tensor tensor = at::empty({}, chance(2) ? at::kDouble : at::kLong);
    *static_cast<uint64_t*>(tensor.mutable_data_ptr()) = random_();
    tensor.unsafeGetTensorImpl()->set_wrapped_number(chance(2));
    return tensor;
  }

  c10::IValue scalar() {
    switch (pick(4)) {
      case 0: return static_cast<int64_t>(random_());
      case 1: return number();
      case 2: return c10::complex<double>(number(), number());
      default: return chance(2);
    }
  }

  c10::IValue literal(const c10::Type& type) {
    switch (type.kind()) {
      case TypeKind::OptionalType:
        return chance(3) ? c10::IValue() : literal(*type.containedType(0));
      case TypeKind::ListType: {
        const c10::TypePtr& element = type.containedType(0);
        const bool is_symbolic = element->kind() == TypeKind::SymIntType;
        c10::impl::GenericList list(is_symbolic ? c10::TypePtr(c10::IntType::get()) : element);
        for (size_t length = pick(4); length-- > 0;) list.push_back(literal(*element));
        return list;
      }
      case TypeKind::FloatType: return number();
      case TypeKind::BoolType: return chance(2);
      case TypeKind::NumberType: return scalar();
      case TypeKind::StringType: return std::string(pick(4), static_cast<char>(random_()));
      case TypeKind::DeviceObjType: return c10::Device(chance(2) ? "cpu" : "cuda:3");
      case TypeKind::GeneratorType: return generators_[pick(generators_.size())];
      case TypeKind::ScalarTypeType: return static_cast<int64_t>(pick(40));
      case TypeKind::LayoutType: return static_cast<int64_t>(pick(8));
      case TypeKind::MemoryFormatType: return static_cast<int64_t>(pick(4));
      default: return static_cast<int64_t>(random_());
    }
  }

  std::mt19937_64 random_;
  std::vector<at::Generator> generators_;
  Graph graph_;
  std::vector<ValueId> defined_;
};

bool is_expressible(const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
    case TypeKind::ListType: return is_expressible(*type.containedType(0));
    case TypeKind::TensorType:
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::FloatType:
    case TypeKind::BoolType:
    case TypeKind::NumberType:
    case TypeKind::StringType:
    case TypeKind::DeviceObjType:
    case TypeKind::GeneratorType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType: return true;
    default: return false;
  }
}

bool is_nested_tensor_list(const c10::Type& type) {
  return type.kind() == TypeKind::ListType && is_tensor_list(*type.containedType(0));
}

/// All functional operators whose arguments are tensors, lists of tensors and literals, in the
/// order of their names.
std::vector<c10::OperatorHandle> expressible_ops() {
  auto names = c10::Dispatcher::singleton().getAllOpNames();
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return toString(a) < toString(b); });
  std::vector<c10::OperatorHandle> ops;
  for (const c10::OperatorName& name : names) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) continue;
    const auto& arguments = op->schema().arguments();
    const bool fits =
        std::all_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
          return is_expressible(*argument.real_type()) &&
                 !is_nested_tensor_list(*argument.real_type()) &&
                 !(argument.alias_info() && argument.alias_info()->isWrite());
        });
    if (fits) ops.push_back(*op);
  }
  return ops;
}

TEST(RoundTrip, RandomGraphsOverAllOperatorsReadBackAsTheyWere) {
  const auto ops = expressible_ops();
  ASSERT_GT(ops.size(), 1500u);
  for (unsigned seed = 0; seed < 150; ++seed) {
    RandomGraph random(seed);
    const Graph graph = random.make(ops, 40);
    ASSERT_NO_THROW(verify(graph, "made at random"));
    std::vector<at::Generator> generators = random.generators();
    const std::string text = print_graph(graph, generators);
    ASSERT_EQ(generators.size(), random.generators().size());
    const Graph back = parse_graph(text, generators);
    ASSERT_TRUE(testing::graphs_equal(graph, back)) << text;
    ASSERT_EQ(print_graph(back, generators), text);
  }
}

TEST(RoundTrip, EveryOperatorIsFoundByItsText) {
  for (const c10::OperatorHandle& op : expressible_ops()) {
    RandomGraph random(1);
    const Graph graph = random.make({op}, 1);
    std::vector<at::Generator> generators = random.generators();
    const std::string text = print_graph(graph, generators);
    ASSERT_TRUE(testing::graphs_equal(parse_graph(text, generators), graph)) << text;
  }
}

}  // namespace
}  // namespace foregrad
