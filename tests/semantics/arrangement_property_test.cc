// Inputs that are taken as views of memories and of bases look to the function as they are, and
// what is found of them at a call lies where they do: for any inputs, and whatever is said to be
// written.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/arrangement.h"
#include "analysis/views_and_mutations.h"
#include "capture/input_table.h"
#include "capture/keys.h"
#include "graph/alias.h"
#include "graph/overlap.h"
#include "graph/refusal.h"
#include "runtime/epilogue.h"

namespace foregrad {
namespace {

using Tensors = std::vector<at::Tensor>;

class RandomInputs {
 public:
  explicit RandomInputs(uint64_t seed) : random_(seed) {}

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool chance(int64_t percent) { return between(1, 100) <= percent; }

  /// Views of one or two bases, each tensor once; some overlap.
  Tensors draw() {
    Tensors bases;
    for (int64_t i = between(1, 2); i > 0; --i) bases.push_back(draw_base());
    Tensors inputs;
    for (int64_t i = between(1, 4); i > 0; --i) {
      at::Tensor input = bases[between(0, static_cast<int64_t>(bases.size()) - 1)];
      for (int64_t k = between(0, 2); k > 0; --k) input = draw_view(input);
      bool is_new = true;
      for (const at::Tensor& known : inputs) is_new &= !known.is_same(input);
      if (is_new) inputs.push_back(input);
    }
    return inputs;
  }

 private:
  at::Tensor draw_base() {
    const at::ScalarType dtypes[] = {at::kFloat, at::kFloat, at::kDouble, at::kComplexFloat,
                                     at::kLong};
    at::Tensor base = at::arange(24).to(dtypes[between(0, 4)]).view({2, 3, 4}).clone();
    if (chance(30)) base = base.select(0, between(0, 1)).clone();
    if (base.is_floating_point() && chance(40)) {
      base.requires_grad_();
      if (chance(60)) base = base * 1;
    }
    return base;
  }

  at::Tensor draw_view(const at::Tensor& x) {
    if (x.dim() == 0) return x.view({1});
    const int64_t dim = between(0, x.dim() - 1);
    const int64_t size = x.size(dim);
    switch (between(0, 7)) {
      case 0: return x.slice(dim, between(0, size), size);
      case 1: return x.transpose(0, dim);
      case 2: return size > 0 ? x.select(dim, between(0, size - 1)) : x;
      case 3: return x.slice(dim, 0, size, 2);
      case 4: return x.detach();
      case 5: return x.unsqueeze(dim).expand_as(x.unsqueeze(dim));
      case 6: return x.is_complex() ? at::view_as_real(x.resolve_conj()) : x.detach();
      default: return x.is_complex() ? x.conj() : x.unsqueeze(dim);
    }
  }

  std::mt19937_64 random_;
};

TensorType without_offset(TensorType type) {
  type.storage_offset = 0;
  return type;
}

/// In: the stand-ins are to the function what the tensors are.
void expect_same_to_the_function(const Tensors& tensors, const InputTable& inputs,
                                 const std::vector<InputWrites>& writes) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor stand_in = inputs.stand_in_of(tensors[i]);
    EXPECT_EQ(to_text(without_offset(type_of(stand_in))),
              to_text(without_offset(type_of(tensors[i]))));
    EXPECT_EQ(stand_in.requires_grad(), tensors[i].requires_grad());
    EXPECT_EQ(stand_in.is_leaf(), tensors[i].is_leaf());
    for (size_t k = 0; k < i; ++k) {
      const at::Tensor other = inputs.stand_in_of(tensors[k]);
      // A write to one is to be seen in the other.
      if (tensors[i].is_alias_of(tensors[k]) && (writes[i].data || writes[k].data) &&
          overlaps(type_of(tensors[i]), type_of(tensors[k]))) {
        EXPECT_TRUE(stand_in.is_alias_of(other));
      }
      if (!stand_in.is_alias_of(other)) continue;
      // Those that share a memory lie in it as they do in their storage.
      EXPECT_TRUE(tensors[i].is_alias_of(tensors[k]));
      EXPECT_EQ(overlaps(type_of(stand_in), type_of(other)),
                overlaps(type_of(tensors[i]), type_of(tensors[k])));
    }
  }
}

/// Out: what is found through the tensors at a call holds their elements where they are.
void expect_same_at_a_call(const Tensors& tensors, const ViewAndMutationMeta& meta) {
  Tensors found = tensors;
  append_found_inputs(meta, found);
  ASSERT_EQ(found.size(), meta.inputs.size());
  for (size_t i = 0; i < meta.inputs.size(); ++i) {
    const InputInfo& info = meta.inputs[i];
    for (const auto& container : {info.memory, info.view_of}) {
      if (!container) continue;
      const at::Tensor& outer = found[container->index];
      const TensorType type = type_of(found[i]);
      const at::NoGradGuard no_grad;
      const at::Tensor seen = alias_of(outer, type, offset_between(type_of(outer), type));
      EXPECT_EQ(seen.const_data_ptr(), found[i].const_data_ptr());
      EXPECT_EQ(to_text(without_offset(type_of(seen))), to_text(without_offset(type)));
    }
  }
}

TEST(ArrangementProperty, InAndOutIsTheIdentity) {
  constexpr uint64_t kPrograms = 2000;
  uint64_t refused = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    RandomInputs random(seed);
    const Tensors tensors = random.draw();
    const InputSet set = gather_inputs(tensors);
    std::vector<InputWrites> writes(tensors.size());
    for (InputWrites& write : writes) {
      write.data = random.chance(50);
      write.history = write.data && random.chance(50);
    }
    const Arrangement arrangement = arrange(set.facts, writes, random.chance(10));
    Tracer tracer(Tracer::Keep::ShapesOnly);
    Tracer::Scope tracing(tracer);
    Recording recording;
    ValueTable values(recording);
    InputTable inputs(tracer, values);
    try {
      inputs.place(set, arrangement, tensors.size());
    } catch (const Refusal&) {
      ++refused;
      continue;
    }
    expect_same_to_the_function(tensors, inputs, writes);
    recording.inputs = inputs.finish();
    const ViewAndMutationMeta meta = analyze_views_and_mutations(recording);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const InputInfo& info = meta.inputs[i];
      EXPECT_EQ(to_text(info.type), to_text(type_of(tensors[i])));
      EXPECT_EQ(to_text(info.after), to_text(type_of(tensors[i])));
      EXPECT_FALSE(info.data_mutated || info.metadata_mutated || info.storage_changed);
      EXPECT_EQ(info.version_advance, 0U);
      EXPECT_TRUE(info.hidden_from_autograd);
    }
    EXPECT_TRUE(meta.effects.empty());
    expect_same_at_a_call(tensors, meta);
  }
  EXPECT_LE(refused, kPrograms / 50);
}

}  // namespace
}  // namespace foregrad
