// Runs a program eagerly and compiled from equal states and holds all that a caller can see of the
// compiled run against eager.
//
// A program takes and gives back tensors. A *start* makes its arguments anew, from equal generator
// states, with whatever else the caller holds (bases, leaves). After the call a *caller* acts on
// what came back; the usual one differentiates.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "foregrad/compile.h"
#include "support/seen.h"

namespace foregrad::testing {

using Tensors = std::vector<at::Tensor>;
using Program = std::function<Tensors(const Tensors&)>;

struct Start {
  Tensors arguments;
  Tensors kept{};  // what the caller holds besides
};
using MakeStart = std::function<Start()>;

/// One call and its surroundings, as the caller has them.
struct Called {
  const Tensors& arguments;
  const Tensors& kept;
  const Tensors& results;
  Seen& seen;
};
using Caller = std::function<void(const Called&)>;

/// Runs backward from everything that has a history, with a weight for each element.
void differentiate(const Called& called);
/// Does nothing.
inline void look_only(const Called&) {}

/// How a program is called.
struct Scene {
  MakeStart make;
  Caller caller = differentiate;
  bool grad_mode = true;  // during the call
};

/// A program and its compiled form.
struct Twin {
  Program eager;
  Program compiled;
  std::function<Report()> report;

  // A program stands where its twin is wanted.
  // NOLINTBEGIN(google-explicit-constructor)
  template <std::invocable<const Tensors&> Fn>
  Twin(Fn fn)
      : Twin(Program(std::move(fn)), [](const auto& fn, const Tensors& in) { return fn(in); }) {}
  // NOLINTEND(google-explicit-constructor)

  /// `call(fn, tensors)` calls a function of other arguments and gives back the tensors of its
  /// result.
  template <class Fn, class Call>
  Twin(Fn fn, Call call, CompileOptions options = {}) {
    auto compiled_fn = compile(fn, std::move(options));
    eager = [fn, call](const Tensors& in) -> Tensors { return call(fn, in); };
    compiled = [compiled_fn, call](const Tensors& in) -> Tensors { return call(compiled_fn, in); };
    report = [compiled_fn] { return compiled_fn.report(); };
  }
};

/// Calls each scene three times. All must look as after eager; calls may have run eagerly.
Report expect_like_eager(const Twin& twin, const std::vector<Scene>& scenes);

/// The same, and no call may have run eagerly.
Report expect_as_eager(const Twin& twin, const std::vector<Scene>& scenes);
Report expect_as_eager(const Twin& twin, MakeStart make, Caller caller = differentiate);

/// The same, but the compiler refuses every call for a reason that contains `message`; the calls
/// run eagerly.
Report expect_refused(const Twin& twin, const std::vector<Scene>& scenes,
                      const std::string& message);
Report expect_refused(const Twin& twin, MakeStart make, const std::string& message,
                      Caller caller = differentiate);

/// A leaf that requires grad. The values are quarters from 1/4 to 2: sums and products of a few of
/// them are exact, in whatever order they are taken.
at::Tensor leaf(at::IntArrayRef sizes);
/// The same, not requiring grad.
at::Tensor plain(at::IntArrayRef sizes);
/// A tensor with a history, whose leaf is kept.
at::Tensor tracked(Start& start, at::IntArrayRef sizes);
/// One of the three.
enum class Kind { Plain, Leaf, Tracked };
/// Those that may be written with grad mode on.
inline constexpr Kind kWritable[] = {Kind::Plain, Kind::Tracked};
at::Tensor make(Start& start, Kind kind, at::IntArrayRef sizes);
const char* name_of(Kind kind);

/// A start with one argument, or several.
MakeStart start_of(Kind kind, const std::vector<int64_t>& sizes);
MakeStart start_of(const std::vector<Kind>& kinds, const std::vector<int64_t>& sizes);

}  // namespace foregrad::testing
