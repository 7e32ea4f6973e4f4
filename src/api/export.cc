#include "foregrad/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <variant>

#include "analysis/views_and_mutations.h"
#include "analysis/visible_hooks.h"
#include "api/compilation.h"
#include "capture/replay.h"
#include "graph/printer.h"
#include "graph/refusal.h"
#include "passes/pipeline.h"

namespace foregrad {

namespace detail {

namespace {

[[noreturn]] void refuse_captured(const at::Tensor& tensor, const std::string& op) {
  throw Refusal(fmt::format(
      "export: a tensor `{}` that is no argument, parameter or buffer is captured; `{}` "
      "uses it first. Pass it as an argument, or register it with the module.",
      to_text(type_of(tensor)), op));
}

/// One function on its way to a graph that stands by itself.
class Export {
 public:
  Export(const ExportRequest& request, const Leaves& leaves, BoundFunction& function,
         const CompileOptions& options)
      : request_(request) {
    name_module();
    Recorded recorded = record_call(leaves, function, options, refuse_captured);
    recording_ = settle(std::make_shared<const Recording>(std::move(recorded.recording)), leaves);
    meta_ = analyze_views_and_mutations(*recording_);
    refuse_visible_hooks();
    refuse_repeated(leaves);
  }

  Exported run() {
    check_inputs();
    check_outputs();
    JointTrace joint = trace_all_outputs(*recording_, meta_, tangents());
    if (joint.gradient_error) std::rethrow_exception(joint.gradient_error);
    if (request_.kind == ExportRequest::Kind::Training) take_ones(joint.graph);
    Exported exported{
        .graph = run_passes(joint_passes(), std::move(joint.graph)), .inputs = {}, .outputs = {}};
    check_generators(exported.graph);
    for (const GraphInput& input : exported.graph.inputs)
      exported.inputs.push_back(name_of(input.role));
    for (const GraphOutput& output : exported.graph.outputs)
      exported.outputs.push_back(name_of(output.role));
    return exported;
  }

 private:
  std::vector<Differentiable> tangents() const {
    if (request_.kind == ExportRequest::Kind::Training)
      return {UserOutput{{static_cast<uint32_t>(request_.loss)}}};
    std::vector<Differentiable> results;
    for (uint32_t i = 0; i < meta_.outputs.size(); ++i) {
      if (request_.kind == ExportRequest::Kind::Joint && meta_.outputs[i].takes_tangent())
        results.emplace_back(UserOutput{{i}});
    }
    return results;
  }

  void refuse_visible_hooks() const {
    const bool is_seen = std::ranges::any_of(recording_->hooks, [&](const RecordedHook& hook) {
      return touches_seen_tensors(*recording_, hook);
    });
    if (!is_seen && meta_.hooks.empty()) return;
    refuse("a hook inside the function is on a tensor that its caller sees, or reads or writes one",
           "Leave it out.");
  }

  void name_module() {
    if (!request_.module) return;
    for (const auto& item : request_.module->named_parameters())
      names_.emplace(item.value().unsafeGetTensorImpl(),
                     ExportedInput{ExportedInput::Kind::Parameter, item.key()});
    for (const auto& item : request_.module->named_buffers())
      names_.emplace(item.value().unsafeGetTensorImpl(),
                     ExportedInput{ExportedInput::Kind::Buffer, item.key()});
  }

  ExportedInput name_of(InputIndex input) const {
    const at::Tensor& held = recording_->inputs[input.index].tensor;
    if (held.defined()) {
      const auto found = names_.find(held.unsafeGetTensorImpl());
      if (found != names_.end()) return found->second;
    }
    return {ExportedInput::Kind::Argument, fmt::format("argument_{}", input.index)};
  }

  ExportedInput name_of(const InputRole& role) const {
    if (const auto* tangent = std::get_if<Tangent>(&role))
      return {ExportedInput::Kind::Tangent, foregrad::to_text(tangent->of)};
    return name_of(*primal_of(role));
  }

  ExportedOutput name_of(const OutputRole& role) const {
    using Kind = ExportedOutput::Kind;
    if (const auto* mutated = std::get_if<MutatedInput>(&role))
      return {Kind::Updated, name_of(mutated->of).name};
    if (const auto* grad = std::get_if<Grad>(&role))
      return {Kind::Gradient, name_of(grad->of).name};
    const uint32_t index = std::get<UserOutput>(role).output.index;
    const bool is_loss = request_.kind == ExportRequest::Kind::Training && index == request_.loss;
    return {is_loss ? Kind::Loss : Kind::Result, fmt::format("result_{}", index)};
  }

  [[noreturn]] void refuse(const std::string& what, const char* instead) const {
    throw Refusal(fmt::format("export: {}, which a graph that stands by itself can't carry. {}",
                              what, instead));
  }

  void refuse_repeated(const Leaves& leaves) const {
    std::unordered_map<const c10::TensorImpl*, uint32_t> inputs;
    for (const at::Tensor* tensor : leaves.tensors) {
      if (!tensor->defined()) continue;
      const auto next = static_cast<uint32_t>(inputs.size());
      const auto [known, is_new] = inputs.try_emplace(tensor->unsafeGetTensorImpl(), next);
      if (is_new || !meta_.inputs[known->second].data_mutated) continue;
      refuse(fmt::format("{} is passed twice and written", name_of(InputIndex{known->second}).name),
             "Pass two tensors.");
    }
  }

  void check_inputs() const {
    const bool is_joint = request_.kind != ExportRequest::Kind::Inference;
    for (uint32_t i = 0; i < meta_.inputs.size(); ++i) {
      const InputInfo& info = meta_.inputs[i];
      const std::string name = name_of(InputIndex{i}).name;
      if (!info.is_graph_input() || !info.span.type.sizes.empty())
        refuse(name + " shares memory with another input and is written",
               "Pass tensors with memory of their own.");
      if (info.metadata_mutated || info.storage_changed)
        refuse(name + " gets other sizes, strides or another storage",
               "Return a new tensor instead.");
      if (is_joint && info.data_mutated && info.requires_grad)
        refuse(name + " requires grad and is written", "Return what it is to become.");
      if (info.requires_grad != info.requires_grad_after)
        refuse("whether " + name + " requires grad is changed", "Set it outside.");
    }
  }

  void check_outputs() const {
    if (request_.kind == ExportRequest::Kind::Training) check_loss();
    std::map<uint32_t, uint32_t> storages;  // of results: how many lie in it
    for (const OutputInfo& info : meta_.outputs) ++storages[info.storage];
    for (uint32_t i = 0; i < meta_.outputs.size(); ++i) {
      const OutputInfo& info = meta_.outputs[i];
      if (std::holds_alternative<UndefinedOutput>(info.origin)) continue;
      const bool is_lone_view = std::holds_alternative<ViewOfIntermediate>(info.origin) &&
                                storages[info.storage] == 1 && !info.requires_grad;
      if (!info.is_computed() && !is_lone_view)
        refuse(fmt::format(
                   "result {} is an input, or shares memory with one or with another result", i),
               "Return a clone.");
      if (request_.kind == ExportRequest::Kind::Training && i != request_.loss &&
          info.requires_grad)
        refuse(
            fmt::format("result {} requires grad and is not the loss, result {}", i, request_.loss),
            "Detach it.");
    }
  }

  void check_loss() const {
    if (request_.loss >= meta_.outputs.size())
      refuse(fmt::format("the loss is to be result {} of {}", request_.loss, meta_.outputs.size()),
             "Name one that there is.");
    const OutputInfo& loss = meta_.outputs[request_.loss];
    if (!loss.takes_tangent() || loss.type.numel() != 1)
      refuse(
          fmt::format("result {}, the loss, is `{}`{}", request_.loss, foregrad::to_text(loss.type),
                      loss.takes_tangent() ? "" : " and requires no grad"),
          "Return one number that requires grad.");
  }

  void check_generators(const Graph& graph) const {
    for (const foregrad::Node& node : graph.nodes) {
      const bool takes_generator = std::ranges::any_of(node.args, [](const Operand& arg) {
        const auto* literal = std::get_if<c10::IValue>(&arg);
        return literal && literal->isGenerator();
      });
      if (takes_generator)
        refuse(fmt::format("`{}` draws from a generator of its own, whose state",
                           operator_text(node.op)),
               "Draw from the default generator, or pass the numbers as an argument.");
    }
  }

  /// The tangent of a loss is one.
  static void take_ones(Graph& joint) {
    static const auto ones = c10::Dispatcher::singleton().findSchemaOrThrow("aten::ones", "");
    const auto tangent = std::ranges::find_if(joint.inputs, [](const GraphInput& input) {
      return std::holds_alternative<Tangent>(input.role);
    });
    const TensorType& type = joint.type(tangent->value);
    const std::vector<int64_t> sizes(type.sizes.begin(), type.sizes.end());
    foregrad::Node node{.op = ones,
                        .args = {c10::IValue(sizes), c10::IValue(type.dtype), c10::IValue(),
                                 c10::IValue(), c10::IValue()},
                        .results = {tangent->value},
                        .phase = Phase::Backward};
    joint.inputs.erase(tangent);
    const auto backward = std::ranges::find(joint.nodes, Phase::Backward, &foregrad::Node::phase);
    joint.nodes.insert(backward, std::move(node));
  }

  const ExportRequest& request_;
  std::unordered_map<const c10::TensorImpl*, ExportedInput> names_;
  std::shared_ptr<const Recording> recording_;
  ViewAndMutationMeta meta_;
};

}  // namespace

Exported export_call(const ExportRequest& request, const Leaves& leaves, BoundFunction& function,
                     const CompileOptions& options) {
  return Export(request, leaves, function, options).run();
}

}  // namespace detail

std::string to_text(const Exported& exported) {
  constexpr const char* kInputKinds[] = {"parameter", "buffer", "argument", "tangent"};
  constexpr const char* kOutputKinds[] = {"updated", "result", "loss", "gradient"};
  std::string text;
  for (const ExportedInput& input : exported.inputs)
    text += fmt::format("input {} {}\n", kInputKinds[static_cast<int>(input.kind)], input.name);
  for (const ExportedOutput& output : exported.outputs)
    text += fmt::format("output {} {}\n", kOutputKinds[static_cast<int>(output.kind)], output.name);
  return text + print_graph(exported.graph);
}

}  // namespace foregrad
