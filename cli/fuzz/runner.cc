// Both sides run in step: eager calls, compiled calls, compare; eager writes, compiled writes,
// compare; and so on. So nothing has to be kept for later but the tensors themselves. Where eager
// throws the call ends: a function that threw half-way leaves other writes (docs/limits.md).
#include "cli/fuzz/runner.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/GradMode.h>
#include <cxxabi.h>
#include <fmt/format.h>
#include <foregrad/compile.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <regex>
#include <typeinfo>

#include "cli/fuzz/interpreter.h"

namespace foregrad::cli::fuzz {
namespace {

struct Thrown {
  std::string type;
  std::string line;  // the first of the message
};

/// Eager or compiled: what the caller has in hand.
struct Side {
  Prepared prepared{};
  Tensors outputs{};
  Tensors gradients{};  // that `torch::autograd::grad` returned
  std::optional<Thrown> thrown{};
  /// Of `prepared.visible`, before the call. Held, or a new node could come to lie where it was.
  std::vector<c10::intrusive_ptr<torch::autograd::Node>> history{};
};

std::string type_name(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), std::free);
  return name != nullptr ? name.get() : typeid(error).name();
}

/// libtorch names the node that a view comes from; those of a compiled call have names of their
/// own.
std::string without_node_name(const std::string& line) {
  static const std::regex name(R"(^Output \d+ of .* (is a view and))");
  return std::regex_replace(line, name, "An output of a node $1");
}

template <class Action>
std::optional<Thrown> thrown_by(const Action& action) {
  const auto describe = [](const std::exception& error, const std::string& text) {
    return Thrown{.type = type_name(error), .line = text.substr(0, text.find('\n'))};
  };
  try {
    action();
  } catch (const c10::Error& error) {
    return describe(error, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return describe(error, error.what());
  }
  return std::nullopt;
}

/// Where gradients of a tensor go; of a leaf, what accumulates them.
c10::intrusive_ptr<torch::autograd::Node> history_of(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return {};
  return torch::autograd::impl::gradient_edge(tensor).function;
}

std::vector<Seen> seen_by_caller(const Side& side) {
  Tensors leaf_gradients;
  Tensors retained;
  const auto retain = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.retains_grad()) return;
    // Its history ends where zeros are added without grad mode, which are defined or not
    // (docs/limits.md).
    retained.push_back(tensor.grad().defined() ? tensor.grad().detach() : tensor.grad());
  };
  for (const at::Tensor& tensor : side.prepared.visible) {
    if (tensor.is_leaf()) leaf_gradients.push_back(tensor.grad());
    retain(tensor);
  }
  for (const at::Tensor& tensor : side.outputs) retain(tensor);
  return {
      {.role = "an input", .tensors = side.prepared.visible},
      {.role = "an output", .tensors = side.outputs},
      {.role = "a leaf's gradient", .tensors = std::move(leaf_gradients), .are_gradients = true},
      {.role = "a retained gradient", .tensors = std::move(retained), .are_gradients = true},
      {.role = "a returned gradient", .tensors = side.gradients, .are_gradients = true}};
}

at::Tensor tangent_of(const at::Tensor& output, Backward::Tangent kind) {
  // Autograd's own formulas look at the strides of tensors without elements.
  if (output.numel() == 0) kind = Backward::Tangent::Ones;
  switch (kind) {
    case Backward::Tangent::Expanded:
      return at::full({}, 0.5, output.options()).expand(output.sizes());
    case Backward::Tangent::Varied:
      return (at::arange(output.numel()) % 5 - 2).div(4).to(output.options()).view(output.sizes());
    default:
      return at::ones_like(output, output.options().memory_format(at::MemoryFormat::Contiguous));
  }
}

/// Whether backward throws for a write to a tensor without elements (docs/limits.md).
bool is_about_empty_tensor(const std::string& line) {
  static const std::regex shape(R"(modified by an inplace operation: \[\w+ \[([\d, ]*)\]\])");
  std::smatch found;
  if (!std::regex_search(line, found, shape)) return false;
  static const std::regex zero(R"(\b0\b)");
  const std::string sizes = found[1];
  return std::regex_search(sizes, zero);
}

/// Whether eager alone throws it, as docs/limits.md says.
bool is_known(const std::string& line) {
  return is_about_empty_tensor(line) || line.find("INTERNAL ASSERT FAILED") != std::string::npos ||
         (line.starts_with("setStorage") && line.find("out of bounds") != std::string::npos);
}

class ProgramRun {
 public:
  ProgramRun(const Program& program, const Compiler& compiler)
      : program_(program), compiled_(compiler([&program](const Tensors& arguments) {
          return fuzz::run(program.body, arguments);
        })) {}

  Verdict run() {
    for (call_ = 1; call_ <= program_.calls && !has_strong_difference(); ++call_) {
      run_call(call_ == 3 ? program_.other : program_.inputs, static_cast<uint64_t>(call_) * 10);
      if (call_ == 2) check_reuse();
    }
    verdict_.refusals = compiled_.report().fallback_reasons;
    return std::move(verdict_);
  }

 private:
  /// Runs one step of the caller on both sides and compares. Returns whether there is a next one.
  template <class Action>
  bool step(const std::string& name, bool compares_text, const Action& action) {
    eager_.thrown = thrown_by([&] { action(eager_); });
    compiled_side_.thrown = thrown_by([&] { action(compiled_side_); });
    verdict_.eager_threw |= eager_.thrown.has_value();
    auto difference = compare_thrown(compares_text);
    if (!difference && !eager_.thrown) {
      difference = first_difference(seen_by_caller(eager_), seen_by_caller(compiled_side_));
    }
    if (difference) add(std::move(*difference), " after " + name);
    return !has_strong_difference() && !eager_.thrown;
  }

  bool has_strong_difference() const {
    return verdict_.difference && !verdict_.difference->is_weak;
  }

  /// Keeps the first difference; a weak one gives way to a strong one.
  void add(Difference difference, const std::string& where) {
    if (verdict_.difference && (difference.is_weak || !verdict_.difference->is_weak)) return;
    difference.kind += where;
    difference.detail = fmt::format("call {}: {}{}", call_, difference.detail, where);
    verdict_.difference = std::move(difference);
  }

  std::optional<Difference> compare_thrown(bool compares_text) const {
    const auto& a = eager_.thrown;
    const auto& b = compiled_side_.thrown;
    const auto text = [](const std::optional<Thrown>& thrown) {
      return thrown ? fmt::format("{}: {}", thrown->type, thrown->line) : "none";
    };
    const auto differ = [&](const char* kind) -> Difference {
      return {.kind = kind,
              .detail = fmt::format("{}: eager {}, compiled {}", kind, text(a), text(b)),
              .is_weak = false};
    };
    if (a && !b && is_known(a->line)) return std::nullopt;
    if (a && !b) return differ("exception of eager alone");
    if (b && !a) return differ("exception of compiled alone");
    if (!a || !compares_text) return std::nullopt;
    if (a->type != b->type) return differ("exception's type");
    if (without_node_name(a->line) != without_node_name(b->line)) return differ("exception's text");
    return std::nullopt;
  }

  void run_call(const Inputs& inputs, uint64_t data_seed, bool is_between = false) {
    for (Side* side : {&eager_, &compiled_side_}) {
      *side = {.prepared = prepare(inputs, data_seed)};
      for (const at::Tensor& tensor : side->prepared.visible)
        side->history.push_back(history_of(tensor));
    }
    meets_empty_ = meets_empty(inputs, data_seed);
    at::Tensor generator_of_eager;
    const bool goes_on = step("the call", true, [&](Side& side) {
      at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
      generator.set_current_seed(data_seed);
      call(inputs, side);
      if (&side == &eager_) {
        generator_of_eager = generator.get_state();
      } else if (generator_of_eager.defined() &&
                 !has_same_elements(generator_of_eager, generator.get_state())) {
        add({.kind = "default generator's state", .detail = "default generator's state"},
            " after the call");
      }
    });
    if (!goes_on || !watch()) return;
    if (program_.is_interleaved && !is_between && !call_between(inputs, data_seed)) return;
    if (program_.writes_before_backward && !write()) return;
    for (size_t i = 0; i < program_.backwards.size(); ++i) {
      if (!differentiate(program_.backwards[i], i + 1 < program_.backwards.size())) return;
    }
    if (!program_.writes_before_backward) write();
  }

  /// Whether gradients of tensors without elements have a history depends on shortcuts in kernels
  /// (docs/limits.md). Told only where it matters.
  bool meets_empty(const Inputs& inputs, uint64_t data_seed) const {
    const bool matters = std::ranges::any_of(
        program_.backwards, [](const Backward& backward) { return backward.order > 1; });
    if (!matters) return false;
    bool meets = true;
    thrown_by([&] {
      const CallScope scope(inputs);
      meets = fuzz::meets_empty(program_.body, prepare(inputs, data_seed).arguments);
    });
    return meets;
  }

  void call(const Inputs& inputs, Side& side) {
    const CallScope scope(inputs);
    side.outputs = &side == &eager_ ? fuzz::run(program_.body, side.prepared.arguments)
                                    : compiled_.call(side.prepared.arguments);
    TORCH_CHECK(c10::GradMode::is_enabled() == (inputs.mode == CallMode::Grad) &&
                    c10::InferenceMode::is_enabled() == (inputs.mode == CallMode::Inference) &&
                    at::autocast::is_autocast_enabled(at::kCPU) == inputs.is_autocast,
                "the call left another mode");
  }

  /// Whether nothing differed in a call of its own that comes between.
  bool call_between(const Inputs& inputs, uint64_t data_seed) {
    const Side eager = std::move(eager_);
    const Side compiled = std::move(compiled_side_);
    const bool meets_empty = meets_empty_;
    run_call(inputs, data_seed + 5, /*is_between=*/true);
    eager_ = eager;
    compiled_side_ = compiled;
    meets_empty_ = meets_empty;
    return !has_strong_difference();
  }

  /// The values of what the caller does after the call.
  static Tensors in_hand(const Side& side) {
    Tensors all = side.outputs;
    all.insert(all.end(), side.prepared.arguments.begin(), side.prepared.arguments.end());
    return all;
  }

  bool watch() {
    if (program_.watches.empty()) return true;
    std::vector<Watch> chosen;
    const Tensors of_eager = in_hand(eager_);
    for (const Watch& watch : program_.watches) {
      const at::Tensor& tensor = of_eager.at(watch.value);
      if (!tensor.defined() || !tensor.requires_grad() || tensor.is_view()) continue;
      // libtorch crashes if such a tensor gets another history.
      const bool is_later_result = tensor.grad_fn() && tensor.output_nr() > 0;
      if (watch.kind == Watch::Kind::RetainGrad && (is_later_result || !knows_its_sizes(tensor)))
        continue;
      chosen.push_back(watch);
    }
    if (chosen.empty()) return true;
    return step("the caller's hooks", true, [&](Side& side) {
      const Tensors all = in_hand(side);
      for (const Watch& watch : chosen) {
        const at::Tensor& tensor = all[watch.value];
        if (watch.kind == Watch::Kind::Hook) {
          tensor.register_hook([](const at::Tensor& gradient) {
            // A compiled call asks where eager's gradient never comes by (docs/limits.md).
            return gradient.defined() ? gradient * 2 : gradient;
          });
        } else {
          tensor.retain_grad();
        }
      }
    });
  }

  bool write() {
    if (program_.writes.empty()) return true;
    return step("the caller's writes", true, [&](Side& side) {
      const Tensors all = in_hand(side);
      Values values = to_values(all);
      for (const Instruction& instruction : program_.writes) fuzz::run(instruction, values);
    });
  }

  bool differentiate(const Backward& backward, bool is_followed) {
    std::vector<size_t> chosen;
    for (const size_t i : backward.outputs) {
      const at::Tensor& output = eager_.outputs.at(i);
      if (!output.defined() || !output.requires_grad()) continue;
      chosen.push_back(i);
    }
    if (chosen.empty()) return true;
    const int order = meets_empty_ ? 1 : backward.order;
    return step("backward", false, [&](Side& side) {
      const AutocastScope autocast(backward.is_autocast);
      Tensors outputs;
      Tensors tangents;
      for (const size_t i : chosen) {
        outputs.push_back(side.outputs[i]);
        tangents.push_back(tangent_of(side.outputs[i], backward.tangent));
        if (order > 1 && backward.differentiates_tangents) tangents.back().requires_grad_();
      }
      if (backward.kind == Backward::Kind::Backward) {
        torch::autograd::backward(outputs, tangents, is_followed);
      } else if (Tensors inputs = gradient_inputs(side, order); !inputs.empty()) {
        side.gradients = gradients_of(std::move(outputs), std::move(inputs), std::move(tangents),
                                      order, is_followed);
      }
    });
  }

  /// The gradients of all orders, one after the other. A gradient of a gradient that is undefined
  /// counts as zeros (docs/limits.md).
  static Tensors gradients_of(Tensors roots, Tensors inputs, Tensors tangents, int order,
                              bool is_followed) {
    Tensors all =
        torch::autograd::grad(roots, inputs, tangents, is_followed || order > 1, order > 1, true);
    Tensors last = all;
    for (const at::Tensor& tangent : tangents) {
      if (tangent.requires_grad()) inputs.push_back(tangent);
    }
    for (int i = 2; i <= order; ++i) {
      roots.clear();
      tangents.clear();
      for (const at::Tensor& gradient : last) {
        if (!gradient.defined() || !gradient.requires_grad()) continue;
        roots.push_back(gradient);
        tangents.push_back(tangent_of(gradient, Backward::Tangent::Varied));
      }
      last.assign(inputs.size(), at::Tensor());
      if (!roots.empty())
        last = torch::autograd::grad(roots, inputs, tangents, is_followed || i < order, i < order,
                                     true);
      for (size_t k = 0; k < inputs.size(); ++k)
        all.push_back(last[k].defined() ? last[k].detach() : at::zeros_like(inputs[k]));
    }
    // Whether one that does not depend on what requires grad has a history is not told either.
    for (at::Tensor& gradient : all) {
      if (order > 1 && gradient.defined()) gradient = gradient.detach();
    }
    return all;
  }

  /// Whether autograd saw the last change of sizes: one without grad mode is not told to it.
  static bool knows_its_sizes(const at::Tensor& tensor) {
    if (!tensor.grad_fn()) return true;
    return tensor.grad_fn()->input_metadata(tensor.output_nr()).shape_as_dim_vector() ==
           tensor.sym_sizes();
  }

  /// The tensors that the gradient is taken with respect to: what the caller made and the results,
  /// as far as they require grad, but for views and leaves that the call gave another history
  /// (docs/limits.md).
  Tensors gradient_inputs(const Side& side, int order) const {
    // What gradients of gradients with respect to a result are depends on how it was saved.
    const bool takes_results = order == 1;
    Tensors inputs;
    for (size_t i = 0; i < side.prepared.visible.size(); ++i) {
      const at::Tensor& eager = eager_.prepared.visible[i];
      if (!eager.requires_grad()) continue;
      side.prepared.visible[i].grad_fn();  // asking a view for its history brings it up to date
      const bool is_as_before = history_of(eager) == eager_.history[i];
      const bool is_new_leaf = eager.is_leaf() && !eager_.history[i];
      const bool is_result = takes_results && !eager.is_view() && !eager.is_leaf();
      if (is_as_before || is_new_leaf || is_result) inputs.push_back(side.prepared.visible[i]);
    }
    for (size_t i = 0; takes_results && i < side.outputs.size(); ++i) {
      const at::Tensor& eager = eager_.outputs[i];
      if (eager.defined() && eager.requires_grad() && !eager.is_view() && knows_its_sizes(eager))
        inputs.push_back(side.outputs[i]);
    }
    return inputs;
  }

  void check_reuse() {
    if (has_strong_difference() || verdict_.eager_threw) return;
    const Report report = compiled_.report();
    if (report.eager_calls == 0 && report.specialisations.size() > 1) {
      add({.kind = "second compilation for equal aliasing",
           .detail = report.recompiles.empty() ? "" : report.recompiles.back()},
          "");
    }
  }

  const Program& program_;
  CompiledFunction compiled_;
  Side eager_;
  Side compiled_side_;
  Verdict verdict_;
  bool meets_empty_ = false;
  int call_ = 1;
};

}  // namespace

CompiledFunction compile_by_foregrad(Function function) {
  auto compiled = foregrad::compile(std::move(function));
  return {.call = [compiled](const Tensors& arguments) { return compiled(arguments); },
          .report = [compiled] { return compiled.report(); }};
}

Verdict run_program(const Program& program, const Compiler& compiler) {
  return ProgramRun(program, compiler).run();
}

bool shows(const Program& program, const std::string& kind, const Compiler& compiler) {
  try {
    for (const Inputs* inputs : {&program.inputs, &program.other}) prepare(*inputs, 0);
    const Verdict verdict = run_program(program, compiler);
    return verdict.difference && verdict.difference->kind == kind;
  } catch (const std::exception&) {  // an edit made the caller's inputs impossible
    return false;
  }
}

}  // namespace foregrad::cli::fuzz
