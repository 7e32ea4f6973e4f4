#include "support/as_eager.h"

#include <c10/util/StringUtil.h>

namespace foregrad::testing {

namespace {

/// The tensors of a run by name, in the order in which facts are told.
std::vector<NamedTensor> name_all(const Start& start, const Tensors& results) {
  std::vector<NamedTensor> named;
  const auto add = [&](const char* name, const Tensors& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      named.push_back({c10::str(name, " ", i), tensors[i]});
  };
  add("kept tensor", start.kept);
  add("argument", start.arguments);
  add("result", results);
  return named;
}

void note_gradients(Seen& seen, const std::vector<NamedTensor>& named) {
  for (const auto& [name, tensor] : named) {
    if (!tensor.defined()) continue;
    bool is_leaf = false;
    seen.attempt("is_leaf of " + name, [&, &t = tensor] { is_leaf = t.is_leaf(); });
    if (is_leaf) seen.note_values("the gradient of " + name, tensor.grad());
  }
}

Seen see(const Program& run, const Scene& scene, uint64_t seed) {
  at::manual_seed(seed);
  const Start start = scene.make();
  std::vector<c10::Storage> storages;
  for (const auto& argument : start.arguments)
    storages.push_back(argument.defined() ? argument.storage() : c10::Storage());
  at::manual_seed(seed + 1);
  Seen seen;
  Tensors results;
  const bool returned = seen.attempt("the call", [&] {
    const at::AutoGradMode mode(scene.grad_mode);
    results = run(start.arguments);
    seen.note("grad mode after the call", c10::str(at::GradMode::is_enabled()));
  });
  seen.note_values("the next random number", at::rand({1}));
  seen.note("number of results", c10::str(results.size()));
  for (size_t i = 0; i < storages.size(); ++i) {
    if (storages[i]) {
      seen.note(c10::str("presence of its former storage in argument ", i),
                c10::str(start.arguments[i].storage().is_alias_of(storages[i])));
    }
  }
  const auto named = name_all(start, results);
  seen.note_tensors("after the call", named);
  if (!returned) return seen;
  seen.attempt("the caller", [&] { scene.caller({start.arguments, start.kept, results, seen}); });
  seen.note_tensors("at the end", named);
  note_gradients(seen, named);
  return seen;
}

std::string joined(const std::vector<std::string>& lines) { return c10::Join("\n  ", lines); }

void compare(const Twin& twin, const std::vector<Scene>& scenes) {
  uint64_t seed = 11;
  for (size_t i = 0; i < scenes.size(); ++i) {
    for (int call = 0; call < 3; ++call, seed += 2) {
      const std::string where = c10::str("scene ", i, ", call ", call);
      const Seen eager = see(twin.eager, scenes[i], seed);
      const auto of_itself = Seen::differences(eager, see(twin.eager, scenes[i], seed));
      ASSERT_TRUE(of_itself.empty())
          << where << ": two eager runs differ:\n  " << joined(of_itself);
      const auto found = Seen::differences(eager, see(twin.compiled, scenes[i], seed));
      EXPECT_TRUE(found.empty()) << where << ":\n  " << joined(found);
    }
  }
}

at::Tensor weighted_sum(const at::Tensor& tensor) {
  auto weights = at::arange(1, tensor.numel() + 1, tensor.options().requires_grad(false));
  auto sum = (tensor * weights.view(tensor.sizes())).sum();
  return sum.is_complex() ? at::real(sum) : sum;
}

}  // namespace

void differentiate(const Called& called) {
  at::Tensor total;
  for (const Tensors* tensors : {&called.results, &called.arguments, &called.kept}) {
    for (const at::Tensor& tensor : *tensors) {
      if (!tensor.defined() || !tensor.requires_grad() || tensor.is_leaf()) continue;
      if (!has_its_data(tensor)) continue;
      const at::Tensor sum = weighted_sum(tensor);
      total = total.defined() ? total + sum : sum;
    }
  }
  if (total.defined()) total.backward();
}

Report expect_like_eager(const Twin& twin, const std::vector<Scene>& scenes) {
  compare(twin, scenes);
  return twin.report();
}

Report expect_as_eager(const Twin& twin, const std::vector<Scene>& scenes) {
  const Report report = expect_like_eager(twin, scenes);
  EXPECT_EQ(report.eager_calls, 0u) << "refused: " << joined(report.fallback_reasons);
  return report;
}

Report expect_as_eager(const Twin& twin, MakeStart make, Caller caller) {
  return expect_as_eager(twin, {{.make = std::move(make), .caller = std::move(caller)}});
}

Report expect_refused(const Twin& twin, const std::vector<Scene>& scenes,
                      const std::string& message) {
  const Report report = expect_like_eager(twin, scenes);
  EXPECT_EQ(report.eager_calls, 3 * scenes.size());
  for (const std::string& reason : report.fallback_reasons)
    EXPECT_NE(reason.find(message), std::string::npos) << reason;
  return report;
}

Report expect_refused(const Twin& twin, MakeStart make, const std::string& message, Caller caller) {
  return expect_refused(twin, {{.make = std::move(make), .caller = std::move(caller)}}, message);
}

at::Tensor plain(at::IntArrayRef sizes) { return at::randint(1, 9, sizes) / 4; }

at::Tensor leaf(at::IntArrayRef sizes) { return plain(sizes).requires_grad_(); }

at::Tensor tracked(Start& start, at::IntArrayRef sizes) {
  return start.kept.emplace_back(leaf(sizes)) * 1;
}

at::Tensor make(Start& start, Kind kind, at::IntArrayRef sizes) {
  switch (kind) {
    case Kind::Plain: return plain(sizes);
    case Kind::Leaf: return leaf(sizes);
    case Kind::Tracked: return tracked(start, sizes);
  }
  return {};
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::Plain: return "plain";
    case Kind::Leaf: return "leaf";
    case Kind::Tracked: return "tracked";
  }
  return "";
}

MakeStart start_of(Kind kind, const std::vector<int64_t>& sizes) {
  return start_of(std::vector<Kind>{kind}, sizes);
}

MakeStart start_of(const std::vector<Kind>& kinds, const std::vector<int64_t>& sizes) {
  return [=]() -> Start {
    Start start;
    for (const Kind kind : kinds) start.arguments.push_back(make(start, kind, sizes));
    return start;
  };
}

}  // namespace foregrad::testing
