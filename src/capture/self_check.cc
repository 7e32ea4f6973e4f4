// Problem. Tracing lives on two dispatch keys that libtorch leaves to others, and on details of
// functionalization and autograd. Another libtorch, or another library in the process, may take a
// key; then operators would go past the trace, and a factory would give a real, uninitialised
// tensor.
// Idea. Ask the dispatcher, for every operator, which kernel it would run at each key, and compare
// with ours. libtorch's own kernels are registered before ours, which then hide them, so that the
// list of an operator's kernels must be read too; its text costs 10 µs, so only some operators are
// read: any backend needs a kernel for those. What the dispatcher can't tell, a small function
// does: traced, replayed and run, it must equal eager.
#include "capture/self_check.h"

#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <exception>
#include <future>
#include <sstream>

#include "capture/keys.h"
#include "capture/recorder.h"
#include "capture/registration.h"
#include "capture/replay.h"
#include "capture/trace_handler.h"
#include "graph/interpreter.h"

namespace foregrad {

namespace {

using Lines = std::vector<std::string>;

/// Operators that no backend does without.
constexpr std::array kBasicOperators{
    std::pair{"aten::empty", "memory_format"},
    std::pair{"aten::empty_strided", ""},
    std::pair{"aten::as_strided", ""},
    std::pair{"aten::view", ""},
    std::pair{"aten::copy_", ""},
    std::pair{"aten::_to_copy", ""},
    std::pair{"aten::fill_", "Scalar"},
    std::pair{"aten::add", "Tensor"},
    std::pair{"aten::mm", ""},
    std::pair{"aten::convolution", ""},
};

std::string running_version() {
  constexpr std::string_view kName = "TORCH_VERSION=";
  const std::string config = at::show_config();
  const size_t found = config.find(kName);
  if (found == std::string::npos) return "unknown";
  const size_t begin = found + kName.size();
  return config.substr(begin, config.find_first_of(", \n", begin) - begin);
}

std::string_view major_and_minor(std::string_view version) {
  const size_t dot = version.find('.');
  return dot == version.npos ? version : version.substr(0, version.find('.', dot + 1));
}

/// `a`, `b` and 3 more.
std::string first_of(const Lines& names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += fmt::format("{}`{}`", i == 0 ? "" : ", ", names[i]);
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

/// Whether the operator runs `handler` at the key.
bool runs_at(const c10::OperatorHandle& op, c10::DispatchKey key,
             const c10::KernelFunction& handler) {
  return op.hasComputedKernelForDispatchKey(key) &&
         op.lookup(c10::DispatchKeySet(key))._equalsBoxedAndUnboxed(handler);
}

/// Whether more than one kernel is registered at the trace key: the one in use hides the others.
bool hides_a_kernel(const c10::OperatorHandle& op) {
  const std::string prefix = fmt::format("{} (inactive)", c10::toString(kTraceKey));
  std::istringstream kernels(op.dumpState());
  for (std::string line; std::getline(kernels, line);) {
    if (line.starts_with(prefix)) return true;
  }
  return false;
}

void check_handlers(Lines& failures) {
  const auto trace = c10::KernelFunction::makeFromBoxedFunction<&handle_traced_operator>();
  const auto front = c10::KernelFunction::makeFromBoxedFunction<&handle_front_operator>();
  auto& dispatcher = c10::Dispatcher::singleton();
  Lines not_traced;
  Lines taken;
  Lines not_recorded;
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;
    const bool is_composite =
        op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    const bool has_kernel = op->hasKernelForDispatchKey(kTraceKey);
    if (!is_composite && !has_kernel) not_traced.push_back(operator_text(*op));
    if (has_kernel && !runs_at(*op, kTraceKey, trace)) taken.push_back(operator_text(*op));
    if (!runs_at(*op, kFrontKey, front)) not_recorded.push_back(operator_text(*op));
  }
  for (const auto& [name, overload] : kBasicOperators) {
    const auto op = dispatcher.findSchema({name, overload});
    if (op && runs_at(*op, kTraceKey, trace) && hides_a_kernel(*op))
      taken.push_back(operator_text(*op));
  }
  const char* const trace_key = c10::toString(kTraceKey);
  const char* const front_key = c10::toString(kFrontKey);
  if (!not_traced.empty()) {
    failures.push_back(
        fmt::format("trace key `{}`: expected Foregrad's handler for every operator that is not "
                    "composite, got none for {}. Report this as a fault of Foregrad.",
                    trace_key, first_of(not_traced)));
  }
  if (!taken.empty() || dispatcher.hasBackendFallbackForDispatchKey(kTraceKey)) {
    failures.push_back(fmt::format(
        "trace key `{}`: expected no kernels but Foregrad's, got another library's {}. "
        "Load no library for a device on `{}`; if libtorch itself has taken the key, "
        "use a supported version.",
        trace_key, taken.empty() ? "fallback for all operators" : "for " + first_of(taken),
        trace_key));
  }
  if (!not_recorded.empty()) {
    failures.push_back(
        fmt::format("front key `{}`: expected Foregrad's handler for every operator, got another "
                    "kernel or none for {}. Load no other library that traces operators there (a "
                    "fake-tensor or deferred-initialisation library).",
                    front_key, first_of(not_recorded)));
  }
}

/// A function with all that a trace is made of: a captured tensor, a factory, a view, a write.
at::Tensor small_function(const at::Tensor& x, const at::Tensor& captured) {
  at::Tensor y = x.mul(captured).add(at::ones({3}, at::kFloat));
  y.select(0, 1).mul_(2);
  return y.exp();
}

at::Tensor small_input(int64_t count, at::IntArrayRef sizes) {
  return at::arange(count, at::kFloat).mul(0.25).reshape(sizes).set_requires_grad(true);
}

void compare_with_eager(Lines& failures) {
  const at::Tensor x = small_input(6, {2, 3});
  const at::Tensor captured = small_input(3, {3});
  if (x.key_set().has_any(c10::DispatchKeySet({kFrontKey, kTraceKey}))) {
    failures.push_back(fmt::format(
        "dispatch keys: expected tensors without `{}` and `{}`, got a CPU tensor with "
        "`{}`. Use a supported libtorch.",
        c10::toString(kFrontKey), c10::toString(kTraceKey), c10::toString(x.key_set())));
  }
  const RecordResult recorded = record({.arguments = {x},
                                        .run =
                                            [&](const std::vector<at::Tensor>& in) {
                                              return std::vector{small_function(in[0], captured)};
                                            },
                                        .on_capture = {}});
  const at::Tensor eager = small_function(x, captured);
  const at::Tensor tangent = at::ones({2, 3}, at::kFloat);
  ViewAndMutationMeta meta;
  for (const at::Tensor& input : {x, captured})
    meta.inputs.push_back({.type = type_of(input), .requires_grad = true});
  meta.outputs.push_back(
      {.origin = NewTensor{}, .type = type_of(eager), .requires_grad = true, .is_leaf = false});
  const JointTrace joint = trace_joint(recorded.recording, meta, meta.tangents());
  if (joint.gradient_error) std::rethrow_exception(joint.gradient_error);

  const auto factory = c10::Dispatcher::singleton().findSchemaOrThrow("aten::ones", "");
  const auto& nodes = joint.graph.nodes;
  if (std::none_of(nodes.begin(), nodes.end(),
                   [&](const Node& node) { return node.op == factory; })) {
    failures.push_back(
        "factories: expected a traced function that calls `aten::ones` to hold a node for it, got "
        "a "
        "graph without one. Use a supported libtorch.");
  }
  std::vector<at::Tensor> expected = torch::autograd::grad({eager}, {x, captured}, {tangent});
  expected.insert(expected.begin(), eager);
  const std::vector<at::Tensor> got =
      interpret(joint.graph, {x.detach(), captured.detach(), tangent});
  const bool same = std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                               [](const at::Tensor& a, const at::Tensor& b) {
                                 return a.defined() && at::equal(a, b.detach());
                               });
  if (!same) {
    failures.push_back(
        "a small function: expected its joint graph to equal eager, got other values. Use a "
        "supported libtorch.");
  }
}

void check_trace(Lines& failures) {
  const auto fail = [&](const char* what) {
    failures.push_back(
        fmt::format("a small function: expected to trace it and to run its joint graph, got the "
                    "error \"{}\". Use a supported libtorch.",
                    what));
  };
  try {
    // A thread has its own modes, and no trace.
    std::async(std::launch::async, [&] { compare_with_eager(failures); }).get();
  } catch (const c10::Error& error) {
    fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

}  // namespace

std::optional<std::string> version_problem(std::string_view running, std::string_view built) {
  const std::string_view supported = major_and_minor(built);
  if (major_and_minor(running) == supported) return std::nullopt;
  return fmt::format(
      "libtorch: expected {}.x, for which this library was built, got {}. Put the libtorch that "
      "Foregrad was built with first on the loader's path, or build Foregrad again.",
      supported, running);
}

CaptureCheck check_capture() {
  CaptureCheck check{.libtorch_version = running_version(),
                     .trace_key = c10::toString(kTraceKey),
                     .operators = registered_operators(),
                     .failures = {}};
  if (auto problem = version_problem(check.libtorch_version, TORCH_VERSION))
    check.failures.push_back(std::move(*problem));
  check_handlers(check.failures);
  check_trace(check.failures);
  return check;
}

}  // namespace foregrad
