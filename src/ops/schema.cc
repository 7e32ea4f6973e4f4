// Facts about operators, computed once each and found again by the operator's address.
//
// Passes, the tracer and the analysis ask these questions for every node, several times: reading a
// schema (strings, hash sets) each time would cost more than tracing. So the facts are kept in an
// open-addressing table from the operator's address to its facts. Readers take no lock: a slot's
// key is written after its facts. Writers hold a mutex; a table that is half full is replaced by
// one of twice the size, and the old one is kept for readers that are in it. An operator can be
// deregistered (its library unloaded) and its address given to another: a listener empties the
// slot. Facts are never freed. Cost: about 50 bytes an operator in use and 2 ns a question.
#include "ops/schema.h"

#include <ATen/core/alias_info.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "ops/declared_effects.h"
#include "ops/functional_variant.h"
#include "ops/memory_variant.h"
#include "ops/op_table.h"

namespace foregrad {
namespace {

using c10::TypeKind;

struct OpFacts {
  bool mutating = false;
  bool certain_view = false;
  bool random = false;
  bool effects = false;
  bool declared_effect = false;
  bool pure = false;
  bool gives_uninitialised = false;
  bool cuts_history = false;
  bool checks_alignment = false;
  bool checks_values = false;
  bool pointwise = false;
  std::vector<bool> written;  // by argument
  std::vector<AliasPair> view_aliases;
  std::vector<AliasPair> memory_aliases;
  std::optional<c10::OperatorHandle> in_place;
};

// ---- reading a schema

bool holds_tensors(const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::TensorType: return true;
    case TypeKind::OptionalType:
    case TypeKind::ListType: return holds_tensors(*type.containedType(0));
    default: return false;
  }
}

bool holds_generator(const c10::Type& type) {
  if (type.kind() == TypeKind::OptionalType) return holds_generator(*type.containedType(0));
  return type.kind() == TypeKind::GeneratorType;
}

bool writes(const c10::AliasInfo* alias) {
  if (!alias) return false;
  return alias->isWrite() ||
         std::ranges::any_of(alias->containedTypes(), [](const auto& one) { return writes(&one); });
}

// Whether the two annotations name a common set of memory.
bool share_a_set(const c10::AliasInfo& argument, const c10::AliasInfo& result) {
  if (result.isWildcardBefore() || argument.isWildcardBefore()) return true;
  for (const c10::Symbol& set : argument.beforeSets()) {
    if (result.beforeSets().contains(set)) return true;
  }
  const auto& argument_elements = argument.containedTypes();
  const auto& result_elements = result.containedTypes();
  return std::ranges::any_of(argument_elements,
                             [&](const auto& one) { return share_a_set(one, result); }) ||
         std::ranges::any_of(result_elements,
                             [&](const auto& one) { return share_a_set(argument, one); });
}

bool have_same_parameters(const c10::FunctionSchema& left, const c10::FunctionSchema& right) {
  return std::ranges::equal(left.arguments(), right.arguments(),
                            [](const c10::Argument& a, const c10::Argument& b) {
                              return a.name() == b.name() && *a.real_type() == *b.real_type();
                            });
}

bool is_in_place_variant(const c10::FunctionSchema& variant,
                         const c10::FunctionSchema& functional) {
  if (!have_same_parameters(variant, functional) || variant.returns().size() != 1) return false;
  const c10::AliasInfo* result = variant.returns()[0].alias_info();
  const c10::AliasInfo* self = variant.arguments()[0].alias_info();
  if (!writes(self) || !result || !share_a_set(*self, *result)) return false;
  return std::ranges::none_of(variant.arguments().begin() + 1, variant.arguments().end(),
                              [](const auto& one) { return writes(one.alias_info()); });
}

std::optional<c10::OperatorHandle> find_in_place_variant(const c10::OperatorHandle& op,
                                                         bool mutating) {
  const c10::FunctionSchema& schema = op.schema();
  if (mutating || schema.arguments().empty() || schema.returns().size() != 1 ||
      schema.arguments()[0].real_type()->kind() != TypeKind::TensorType ||
      schema.returns()[0].real_type()->kind() != TypeKind::TensorType) {
    return std::nullopt;
  }
  // An in-place overload leaves out that `self` is a tensor: `pow.Tensor_Scalar`, `pow_.Scalar`.
  const std::string& overload = op.operator_name().overload_name;
  constexpr std::string_view kSelfIsTensor = "Tensor_";
  const std::array<std::string, 2> overloads = {
      overload, overload.starts_with(kSelfIsTensor) ? overload.substr(kSelfIsTensor.size()) : ""};
  for (const std::string& candidate : overloads) {
    auto variant =
        c10::Dispatcher::singleton().findSchema({op.operator_name().name + "_", candidate});
    if (variant && is_in_place_variant(variant->schema(), schema)) return variant;
  }
  return std::nullopt;
}

OpFacts read_facts(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const auto& arguments = schema.arguments();
  const auto& returns = schema.returns();
  const OpRow* found = find_op_row(op.operator_name());
  const OpRow row = found ? *found : OpRow{.name = ""};
  // Set only on composite operators that call others: may return an argument, may write one.
  const bool composite_does_anything = op.hasTag(at::Tag::maybe_aliasing_or_mutating);

  OpFacts facts;
  for (const auto& argument : arguments) facts.written.push_back(writes(argument.alias_info()));
  facts.mutating = std::ranges::find(facts.written, true) != facts.written.end();
  for (uint32_t result = 0; result < returns.size(); ++result) {
    if (!holds_tensors(*returns[result].real_type())) continue;
    for (uint32_t argument = 0; argument < arguments.size(); ++argument) {
      if (!holds_tensors(*arguments[argument].real_type())) continue;
      const auto* from = arguments[argument].alias_info();
      const auto* to = returns[result].alias_info();
      const bool declared = from && to && share_a_set(*from, *to);
      if (declared && !facts.written[argument]) facts.view_aliases.push_back({argument, result});
      if (declared || row.may_share_memory || composite_does_anything)
        facts.memory_aliases.push_back({argument, result});
    }
  }
  facts.certain_view = !facts.mutating && !facts.view_aliases.empty() &&
                       !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  const auto holds = [](bool (*what)(const c10::Type&)) {
    return [what](const c10::Argument& one) { return what(*one.real_type()); };
  };
  facts.random = op.hasTag(at::Tag::nondeterministic_seeded) || row.draws_random ||
                 std::ranges::any_of(arguments, holds(holds_generator));
  const bool gives_tensors = std::ranges::any_of(returns, holds(holds_tensors));
  facts.declared_effect = is_effect_declared(op.operator_name());
  facts.effects = facts.declared_effect || facts.mutating || is_memory_variant(op) ||
                  row.has_hidden_write || composite_does_anything || facts.random || !gives_tensors;
  facts.pure =
      !facts.effects && !row.gives_uninitialised && !op.hasTag(at::Tag::nondeterministic_bitwise);
  facts.gives_uninitialised = row.gives_uninitialised;
  facts.cuts_history = row.cuts_history;
  facts.checks_alignment = row.checks_alignment;
  facts.checks_values = std::ranges::any_of(arguments, [](const c10::Argument& argument) {
    const std::string& name = argument.name();
    return holds_tensors(*argument.real_type()) &&
           (name == "index" || name == "indices" || name == "target");
  });
  facts.pointwise = op.hasTag(at::Tag::pointwise);
  facts.in_place = find_in_place_variant(op, facts.mutating);
  return facts;
}

// ---- the table

class FactTable {
 public:
  // Never destroyed: operators outlive static objects, and so do questions about them.
  static FactTable& instance() {
    static auto* table = new FactTable;
    return *table;
  }

  const OpFacts& facts(const c10::OperatorHandle& op) {
    const size_t key = key_of(op);
    if (const OpFacts* known = find(*slots_.load(std::memory_order_acquire), key)) return *known;
    return add(op, key);
  }

  void forget(const c10::OperatorHandle& op) {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : *slots_.load(std::memory_order_relaxed)) {
      if (slot.key.load(std::memory_order_relaxed) == key_of(op))
        slot.facts.store(nullptr, std::memory_order_release);
    }
  }

 private:
  struct Slot {
    std::atomic<size_t> key{0};  // 0: free, and so are all slots that a search would visit after it
    std::atomic<const OpFacts*> facts{nullptr};
  };
  using Slots = std::vector<Slot>;

  class Forgetting : public c10::OpRegistrationListener {
    void onOperatorRegistered(const c10::OperatorHandle&) override {}
    void onOperatorDeregistered(const c10::OperatorHandle& op) override { instance().forget(op); }
  };

  FactTable() {
    constexpr size_t kFirstSize = 1024;
    grow_to(kFirstSize);
    // Kept for the life of the process, as the table is.
    static auto* registration = new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Forgetting>()));
    (void)registration;
  }

  static size_t key_of(const c10::OperatorHandle& op) {
    return std::hash<c10::OperatorHandle>{}(op);  // the operator's address
  }

  static size_t first_place(size_t key, size_t size) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return (key * kGolden) >> (64 - std::countr_zero(size));
  }

  static const OpFacts* find(Slots& slots, size_t key) {
    const size_t mask = slots.size() - 1;
    for (size_t place = first_place(key, slots.size());; place = (place + 1) & mask) {
      const size_t found = slots[place].key.load(std::memory_order_acquire);
      if (found == key) return slots[place].facts.load(std::memory_order_acquire);
      if (found == 0) return nullptr;
    }
  }

  static void place(Slots& slots, size_t key, const OpFacts* facts) {
    const size_t mask = slots.size() - 1;
    size_t place = first_place(key, slots.size());
    for (;; place = (place + 1) & mask) {
      const size_t found = slots[place].key.load(std::memory_order_relaxed);
      if (found == key || found == 0) break;
    }
    slots[place].facts.store(facts, std::memory_order_release);
    slots[place].key.store(key, std::memory_order_release);
  }

  const OpFacts& add(const c10::OperatorHandle& op, size_t key) {
    OpFacts read = read_facts(op);  // outside the lock: it looks other operators up
    const std::lock_guard lock(mutex_);
    Slots* slots = slots_.load(std::memory_order_relaxed);
    if (const OpFacts* known = find(*slots, key)) return *known;
    const OpFacts& facts = kept_.emplace_back(std::move(read));
    if (kept_.size() * 2 > slots->size()) slots = &grow_to(slots->size() * 2);
    place(*slots, key, &facts);
    return facts;
  }

  Slots& grow_to(size_t size) {
    auto grown = std::make_unique<Slots>(size);
    if (const Slots* old = slots_.load(std::memory_order_relaxed)) {
      for (const Slot& slot : *old) {
        const OpFacts* facts = slot.facts.load(std::memory_order_relaxed);
        if (facts) place(*grown, slot.key.load(std::memory_order_relaxed), facts);
      }
    }
    Slots& slots = *tables_.emplace_back(std::move(grown));
    slots_.store(&slots, std::memory_order_release);
    return slots;
  }

  std::mutex mutex_;
  std::atomic<Slots*> slots_{nullptr};
  std::deque<std::unique_ptr<Slots>> tables_;  // the last one is in use
  std::deque<OpFacts> kept_;
};

// Listens from the time the library is loaded: asked first from inside another listener, under the
// dispatcher's lock, it could not.
[[maybe_unused]] const FactTable& kListeningTable = FactTable::instance();

const OpFacts& facts_of(const c10::OperatorHandle& op) { return FactTable::instance().facts(op); }

}  // namespace

bool is_mutating(const c10::OperatorHandle& op) { return facts_of(op).mutating; }

bool is_written(const c10::OperatorHandle& op, size_t index) {
  return facts_of(op).written.at(index);
}

const std::vector<AliasPair>& view_aliases(const c10::OperatorHandle& op) {
  return facts_of(op).view_aliases;
}

const std::vector<AliasPair>& memory_aliases(const c10::OperatorHandle& op) {
  return facts_of(op).memory_aliases;
}

bool is_view(const c10::OperatorHandle& op) {
  const OpFacts& facts = facts_of(op);
  return !facts.mutating && !facts.view_aliases.empty();
}

bool is_certain_view(const c10::OperatorHandle& op) { return facts_of(op).certain_view; }

bool is_random(const c10::OperatorHandle& op) { return facts_of(op).random; }

bool has_effects(const c10::OperatorHandle& op) { return facts_of(op).effects; }

void declare_effect(const c10::OperatorHandle& op) {
  if (has_functional_variant(op)) declare_effect(functional_variant(op).op);
  note_declared_effect(op.operator_name());
  FactTable::instance().forget(op);
}

bool has_declared_effect(const c10::OperatorHandle& op) { return facts_of(op).declared_effect; }

bool is_pure(const c10::OperatorHandle& op) { return facts_of(op).pure; }

bool gives_uninitialised(const c10::OperatorHandle& op) { return facts_of(op).gives_uninitialised; }

bool checks_values(const c10::OperatorHandle& op) { return facts_of(op).checks_values; }

bool checks_alignment(const c10::OperatorHandle& op) { return facts_of(op).checks_alignment; }

bool cuts_history(const c10::OperatorHandle& op) { return facts_of(op).cuts_history; }

bool is_pointwise(const c10::OperatorHandle& op) { return facts_of(op).pointwise; }

const std::optional<c10::OperatorHandle>& in_place_variant(const c10::OperatorHandle& op) {
  return facts_of(op).in_place;
}

}  // namespace foregrad
