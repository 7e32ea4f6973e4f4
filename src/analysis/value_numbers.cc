#include "analysis/value_numbers.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <unordered_map>

#include "graph/literal.h"
#include "ops/memory_variant.h"
#include "ops/schema.h"

namespace foregrad {

namespace {

size_t hash_of(const Operand& operand) {
  if (const auto* literal = std::get_if<c10::IValue>(&operand)) return literal_hash(*literal);
  size_t hash = operand.index();
  for_each_value(operand, [&](ValueId value) { hash = c10::hash_combine(hash, value.index); });
  return hash;
}

}  // namespace

size_t hash_of(const Node& node) {
  size_t hash = std::hash<c10::OperatorHandle>{}(node.op);
  for (const Operand& arg : node.args) hash = c10::hash_combine(hash, hash_of(arg));
  return hash;
}

std::vector<std::optional<ValueId>> results_of(const Node& node) {
  std::vector<std::optional<ValueId>> values;
  for (const Operand& result : node.results) {
    if (const auto* value = std::get_if<ValueId>(&result)) {
      values.emplace_back(*value);
    } else if (const auto* list = std::get_if<ValueList>(&result)) {
      values.insert(values.end(), list->begin(), list->end());
    } else {
      values.emplace_back();
    }
  }
  return values;
}

bool computes_same(const Graph& graph, const Node& left, const Node& right) {
  if (left.op != right.op || !operands_equal(left.args, right.args)) return false;
  return std::ranges::equal(results_of(left), results_of(right), [&](const auto& a, const auto& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return graph.type(*a) == graph.type(*b);
  });
}

std::vector<bool> told_apart_values(const Graph& graph) {
  std::vector<bool> is_told_apart(graph.values.size());
  for (const Node& node : graph.nodes) {
    if (is_memory_variant(node.op))
      for_each_read(node, [&](ValueId value) { is_told_apart[value.index] = true; });
  }
  return is_told_apart;
}

std::vector<ValueId> first_equals(const Graph& graph) {
  std::vector<ValueId> first(graph.values.size());
  for (uint32_t i = 0; i < first.size(); ++i) first[i] = {i};
  const std::vector<bool> is_told_apart = told_apart_values(graph);
  std::vector<Node> known;
  std::unordered_multimap<size_t, size_t> places;  // by hash
  for (Node node : graph.nodes) {
    if (!is_pure(node.op)) continue;
    for_each_read(node, [&](ValueId& value) { value = first[value.index]; });
    const auto values = results_of(node);
    const bool is_plain = std::ranges::none_of(
        values, [&](const auto& value) { return value && is_told_apart[value->index]; });
    if (!is_plain) continue;
    const size_t hash = hash_of(node);
    const auto is_equal = [&](const auto& entry) {
      return computes_same(graph, known[entry.second], node);
    };
    const auto [begin, end] = places.equal_range(hash);
    const auto found = std::find_if(begin, end, is_equal);
    if (found == end) {
      places.emplace(hash, known.size());
      known.push_back(std::move(node));
      continue;
    }
    const auto others = results_of(known[found->second]);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) first[values[i]->index] = *others[i];
    }
  }
  return first;
}

}  // namespace foregrad
