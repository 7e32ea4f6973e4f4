#include "capture/replay.h"

#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "capture/call_again.h"
#include "capture/history_walk.h"
#include "capture/keys.h"
#include "capture/outside_state.h"
#include "capture/reached_hooks.h"
#include "capture/replayed_node.h"
#include "capture/stand_in.h"
#include "capture/trace_tensor.h"
#include "capture/tracer.h"
#include "graph/alias.h"
#include "graph/refusal.h"
#include "ops/offsets.h"

namespace foregrad {

namespace {

/// A replay may come later than its recording, when the default dtype is another one.
class DefaultDtype {
 public:
  explicit DefaultDtype(at::ScalarType dtype) { set(dtype); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;
  ~DefaultDtype() { set(before_); }

 private:
  static void set(at::ScalarType dtype) {
    if (dtype != c10::get_default_dtype_as_scalartype())
      c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
  }
  at::ScalarType before_ = c10::get_default_dtype_as_scalartype();
};

class JointReplay {
 public:
  JointReplay(const Recording& recording, const ViewAndMutationMeta& meta, const GradientCuts& cuts)
      : JointReplay(recording, meta, cuts, meta.forward_outputs()) {}

  JointReplay(const Recording& recording, const ViewAndMutationMeta& meta, const GradientCuts& cuts,
              std::vector<OutputRole> outputs)
      : recording_(recording),
        meta_(meta),
        cuts_(cuts),
        outputs_(std::move(outputs)),
        tracer_(Tracer::Keep::Nodes, recording.decompositions.get()),
        takes_offsets_(takes_offsets(recording)),
        bases_(meta.bases.size()),
        custom_nodes_(recording, std::make_shared<const std::function<at::Tensor(ValueId)>>(
                                     [this](ValueId value) { return late_tensor(value); })) {
    for (const Effect& effect : meta.effects) {
      if (const auto* join = std::get_if<JoinHistory>(&effect)) joins_.push_back(join);
    }
  }

  JointTrace run(const std::vector<GradientRound>& rounds) {
    DefaultDtype default_dtype(recording_.default_dtype);
    const WithoutNanChecks without_nan_checks;
    Tracer::Scope tracing(tracer_);
    TracingScope scope(TracingScope::Level::Replaying);
    make_primals();
    for (uint32_t i = 0; i < recording_.ops.size(); ++i) {
      replay(recording_.ops[i]);
      keep_histories(i);
    }
    for (const OutputRole& role : outputs_)
      tracer_.graph().outputs.push_back({output_value(role), role});
    check_outputs();
    if (rounds.size() == 1) {
      tracer_.set_phase(Phase::Backward);
    } else {
      tracer_.graph().outputs.clear();
    }
    find_edges();
    std::vector<History> histories = histories_of(rounds.front());
    std::vector<std::vector<Differentiable>> leads_to;
    std::vector<ReachedHook> reached_hooks;
    if (rounds.size() == 1 && cuts_.always.empty()) {
      leads_to = find_what_they_lead_to(histories);
      if (!hooks_.empty()) reached_hooks = find_reached_hooks(histories);
    }
    for (size_t k = 0; k + 1 < rounds.size(); ++k) {
      const at::AutoGradMode with_history(true);
      const auto gradients = take_earlier(rounds[k], histories);
      histories = histories_of(rounds[k + 1], gradients);
      if (k + 2 == rounds.size()) give_back(gradients);
    }
    tracer_.set_phase(Phase::Backward);
    take_last(rounds.back(), histories);
    // It has views take their histories anew.
    if (rounds.size() == 1 && !first_round_.roots.empty() && !gradient_error_)
      find_read_by_backward(first_round_);
    std::set<uint32_t> hooks_in_graph;
    for (const auto& [node, hook] : hooks_) hooks_in_graph.insert(hook);
    return {.graph = std::move(tracer_.graph()),
            .last_resort_shapes = tracer_.last_resort_shapes(),
            .gradient_error = gradient_error_,
            .read_by_backward = std::move(read_by_backward_),
            .leads_to = std::move(leads_to),
            .reached_hooks = std::move(reached_hooks),
            .hooks = std::move(hooks_in_graph),
            .late_advances = std::move(late_advances_),
            .differentiable = std::move(differentiable_)};
  }

 private:
  void make_primals() {
    values_.resize(recording_.value_count);
    edges_.resize(recording_.inputs.size());
    for (const auto& [view, base] : recording_.view_bases) view_bases_[view.index] = base;
    const auto place_all = [&](auto&& is_due) {
      for (uint32_t i = 0; i < recording_.inputs.size(); ++i) {
        if (is_due(recording_.inputs[i])) place(i);
      }
    };
    place_all([](const RecordedInput& input) { return !input.view_of && !input.memory; });
    place_all([](const RecordedInput& input) { return input.memory.has_value(); });
    place_all([](const RecordedInput& input) { return input.view_of.has_value(); });
  }

  void place(uint32_t i) {
    const RecordedInput& input = recording_.inputs[i];
    const auto& seen = input.seen;
    TensorType type = seen.before;
    // Unless the function tells, a graph holds wherever in its storage an input begins.
    if (!takes_offsets_) type.storage_offset = 0;
    at::Tensor primal;
    if (input.view_of) {
      const RecordedInput& base = recording_.inputs[input.view_of->index];
      primal = place_as_view(values_[base.value.index], seen.before,
                             offset_between(base.seen.before, seen.before), input.creation_meta);
    } else if (input.memory) {
      primal =
          place_in_memory(values_[recording_.inputs[input.memory->index].value.index], seen.before,
                          seen.traced_offset, seen.requires_grad_before, seen.is_leaf);
    } else {
      primal = make_stand_in(tracer_, type, input.role, seen.requires_grad_before, seen.is_leaf);
    }
    if (takes_offsets_ && seen.storage_bytes > 0 && !input.view_of && !input.memory) {
      traced_inside(primal)->meta().storage().set_nbytes(static_cast<size_t>(seen.storage_bytes));
    }
    if (const auto counter = recording_.counters.find(input.value);
        counter != recording_.counters.end() && values_[counter->second.index].defined()) {
      primal.unsafeGetTensorImpl()->set_version_counter(
          values_[counter->second.index].unsafeGetTensorImpl()->version_counter());
    }
    // That of a leaf begins where it is first used.
    if (!input.view_of && seen.requires_grad_before && !seen.is_leaf)
      edges_[i] = torch::autograd::impl::gradient_edge(primal);
    values_[input.value.index] = std::move(primal);
  }

  /// What joins the history of a tensor is the history that it has at that place.
  void keep_histories(uint32_t op) {
    for (size_t b = 0; b < meta_.bases.size(); ++b) {
      if (meta_.bases[b].after_op == op)
        bases_[b] = memory_view(values_[meta_.bases[b].value.index]);
    }
    for (; next_join_ < joins_.size() && joins_[next_join_]->after_op == op; ++next_join_) {
      const at::Tensor& tensor = tensor_of(joins_[next_join_]->as);
      joined_.emplace_back(joins_[next_join_]->as,
                           History{type_of(tensor), torch::autograd::impl::gradient_edge(tensor)});
    }
  }

  /// A leaf that is given another storage gets another accumulator: what used it before ends at the
  /// one that it had.
  void keep_accumulators(const RecordedOp& recorded) {
    for (const RecordedWrite& write : recorded.writes) {
      if (!write.storage) continue;
      for (uint32_t i = 0; i < recording_.inputs.size(); ++i) {
        const RecordedInput& input = recording_.inputs[i];
        if (!(input.value == write.value) || !input.seen.is_leaf || earlier_edges_.contains(i))
          continue;
        auto accumulator =
            torch::autograd::impl::try_get_grad_accumulator(values_[write.value.index]);
        if (accumulator)
          earlier_edges_.emplace(i, torch::autograd::Edge(std::move(accumulator), 0));
      }
    }
  }

  void replay(const RecordedOp& recorded) {
    if (recorded.hook && is_elsewhere(*recorded.hook)) return;
    if (!recorded.is_call) {
      custom_nodes_.do_again(recorded, values_);
      if (recorded.hook) note_hook(recorded);
      return;
    }
    keep_accumulators(recorded);
    if (call_again(recorded, values_) != recorded.history) refuse_other_history(recorded);
    if (view_bases_.empty()) return;
    // The base of a view that an operator made inside.
    for (const Operand& result : recorded.results) {
      for_each_value(result, [&](ValueId view) {
        const auto base = view_bases_.find(view.index);
        if (base == view_bases_.end() || values_[base->second.index].defined()) return;
        if (values_[view.index].is_view())
          values_[base->second.index] = base_of(values_[view.index]);
      });
    }
  }

  /// Whether the call registers the hook itself, or another node calls it.
  bool is_elsewhere(uint32_t hook) const {
    return cuts_.other_hooks.contains(hook) ||
           std::ranges::find(meta_.hooks, hook, &VisibleHook::hook) != meta_.hooks.end();
  }

  void note_hook(const RecordedOp& recorded) {
    const at::Tensor& tensor = values_[recording_.hooks[*recorded.hook].value.index];
    if (const auto node = tensor.grad_fn()) hooks_.emplace(node.get(), *recorded.hook);
  }

  /// A history that changed without an operator call is not in the recording.
  [[noreturn]] static void refuse_other_history(const RecordedOp& recorded) {
    throw Refusal(
        fmt::format("`{}`: when it ran, autograd knew something else of its arguments than a "
                    "replay of the operators before it tells. "
                    "Expected a function whose effects on autograd are all operator calls; a "
                    "custom `autograd::Function`, or a change of "
                    "`requires_grad` by hand, is not supported yet.",
                    operator_text(recorded.op)));
  }

  const at::Tensor& tensor_of(const Differentiable& role) const {
    if (const auto* output = std::get_if<UserOutput>(&role))
      return values_[recording_.outputs[output->output.index].seen.value->index];
    if (const auto* base = std::get_if<IntermediateBase>(&role))
      return values_[meta_.bases[base->base.index].value.index];
    return values_[recording_.inputs[std::get<MutatedInput>(role).of.index].value.index];
  }

  /// Inputs are written back as they lay, and bases given as they were made: the effects change
  /// their sizes afterwards.
  std::optional<ValueId> output_value(const OutputRole& role) const {
    // A base may have been given another storage since.
    if (const auto* base = std::get_if<IntermediateBase>(&role))
      return traced_value(bases_[base->base.index]);
    const at::Tensor& tensor = tensor_of(*differentiable_of(role));
    return std::holds_alternative<UserOutput>(role) ? traced_value(tensor)
                                                    : traced_memory(tensor.storage());
  }

  void check_outputs() const {
    for (size_t i = 0; i < recording_.outputs.size(); ++i) {
      const auto& seen = recording_.outputs[i].seen;
      if (!seen.defined) continue;
      const at::Tensor& replayed = values_[seen.value->index];
      TensorType type = type_of(replayed);
      if (!takes_offsets_) type.storage_offset = seen.type.storage_offset;
      if (replayed.requires_grad() == seen.requires_grad && type == seen.type) continue;
      throw Refusal(fmt::format(
          "output {}: a replay of the recorded operators gives `{}`{}, the function gave `{}`{}. "
          "Expected a function whose "
          "effects on autograd are all operator calls; a custom `autograd::Function` is not "
          "supported yet.",
          i, to_text(type_of(replayed)), replayed.requires_grad() ? " that requires grad" : "",
          to_text(seen.type), seen.requires_grad ? " that requires grad" : ""));
    }
  }

  struct History {
    TensorType type;
    torch::autograd::Edge edge;
  };
  History history_of(const Differentiable& role) const {
    for (const auto& [joined, history] : joined_) {
      if (joined == role) return history;
    }
    const at::Tensor& output = tensor_of(role);
    return {type_of(output), torch::autograd::impl::gradient_edge(output)};
  }

  std::vector<History> histories_of(const GradientRound& first) const {
    std::vector<History> histories;
    for (const Differentiable& of : first.of) histories.push_back(history_of(of));
    return histories;
  }
  /// `gradients`: of the round before, by InputIndex.
  static std::vector<History> histories_of(const GradientRound& round,
                                           const std::vector<at::Tensor>& gradients) {
    std::vector<History> histories;
    for (const Differentiable& of : round.of) {
      const at::Tensor& gradient = gradients.at(std::get<UserOutput>(of).output.index);
      histories.push_back({type_of(gradient), torch::autograd::impl::gradient_edge(gradient)});
    }
    return histories;
  }

  static TensorType tangent_type(const GradientRound& round, size_t i, TensorType type) {
    type.storage_offset = 0;
    type.is_conj = type.is_neg = false;
    if (!round.strides.empty()) {
      type.strides = round.strides[i];
    } else if (!type.is_dense_and_non_overlapping()) {
      type.strides = contiguous_strides(type.sizes);
    }
    return type;
  }

  /// Finds where the histories of the inputs begin.
  void find_edges() {
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      // `requires_grad_` in the function makes it a leaf to the operators that follow.
      const RecordedInput& input = recording_.inputs[i];
      const at::Tensor& tensor = values_[input.value.index];
      // One that is given another storage gets another accumulator.
      const bool is_late = !edges_[i].is_valid() || input.seen.storage_changed;
      if (!is_late || input.view_of) continue;
      if (input.seen.requires_grad_after && input.seen.is_leaf_after) {
        edges_[i] = torch::autograd::impl::gradient_edge(tensor);
      } else if (input.seen.requires_grad_before && input.seen.is_leaf) {
        edges_[i] = {torch::autograd::impl::try_get_grad_accumulator(tensor), 0};
      }
    }
    std::erase_if(earlier_edges_, [&](const auto& earlier) {
      torch::autograd::Edge& edge = edges_[earlier.first];
      if (!edge.is_valid()) edge = earlier.second;
      return edge == earlier.second;
    });
    for (const Differentiable& cut : cuts_.always) edges_.push_back(end_at(cut));
    edges_.resize(edges_.size() + cuts_.later.size());
    first_tangent_ = edges_.size();
  }

  /// Where the caller finds its history. Nothing for a view that may not be asked: its base was
  /// freed of its history, or was written and the view is one of several.
  std::optional<torch::autograd::Edge> edge_seen(const Differentiable& role) const {
    try {
      return torch::autograd::impl::gradient_edge(tensor_of(role));
    } catch (const c10::Error&) {
      return std::nullopt;
    }
  }

  torch::autograd::Edge end_at(const Differentiable& cut) const {
    torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(tensor_of(cut));
    end_gradient_at(edge);
    return edge;
  }

  std::vector<std::vector<Differentiable>> find_what_they_lead_to(
      const std::vector<History>& histories) const {
    std::vector<std::vector<Differentiable>> found(histories.size());
    const std::vector<Differentiable> visible = meta_.visible();
    if (visible.size() < 2 && histories.size() < 2) return found;
    std::map<std::pair<const torch::autograd::Node*, uint32_t>, Differentiable> by_edge;
    for (const Differentiable& role : visible) {
      if (const auto edge = edge_seen(role))
        by_edge.try_emplace({edge->function.get(), edge->input_nr}, role);
    }
    for (size_t i = 0; i < histories.size(); ++i) {
      walk_history(histories[i].edge, [&](const torch::autograd::Edge& edge) {
        const auto end = by_edge.find({edge.function.get(), edge.input_nr});
        if (end == by_edge.end()) return true;
        if (std::ranges::find(found[i], end->second) == found[i].end())
          found[i].push_back(end->second);
        return false;
      });
    }
    return found;
  }

  std::vector<ReachedHook> find_reached_hooks(const std::vector<History>& histories) const {
    torch::autograd::edge_list seen;
    for (const Differentiable& role : meta_.visible()) {
      const auto edge = edge_seen(role);
      if (edge && edge->is_valid()) seen.push_back(*edge);
    }
    torch::autograd::edge_list roots;
    for (const History& history : histories) roots.push_back(history.edge);
    return foregrad::find_reached_hooks(hooks_, roots, seen);
  }

  /// What a custom function's backward reads of an input that it kept is what the input holds then:
  /// nobody can say how that came about.
  at::Tensor late_tensor(ValueId value) {
    for (uint32_t i = 0; i < recording_.inputs.size(); ++i) {
      if (!(recording_.inputs[i].value == value) || !meta_.inputs[i].may_be_late()) continue;
      if (c10::GradMode::is_enabled()) {
        throw Refusal(
            "the backward of a custom function reads an argument that it kept without "
            "`save_for_backward`. Expected it to save it, to differentiate its gradients again.");
      }
      at::Tensor& late = late_[i];
      if (!late.defined())
        late = make_stand_in(tracer_, type_of(values_[value.index]), LateInput{{i}}, false, true);
      return late;
    }
    return {};
  }

  bool is_first_round() const { return edges_.size() == first_tangent_; }

  /// Takes a round that a later one differentiates. Returns the gradients, by InputIndex.
  std::vector<at::Tensor> take_earlier(const GradientRound& round,
                                       const std::vector<History>& histories) {
    if (!hooks_.empty()) {
      throw Refusal(
          "a hook inside the function is on a tensor that gets another history afterwards, by a "
          "write. Expected it to be registered after the write, to differentiate gradients again.");
    }
    Gradients gradients = all_wanted();
    torch::autograd::edge_list edges;  // of the tangents
    for (size_t i = 0; i < histories.size(); ++i) {
      const InputIndex index{static_cast<uint32_t>(edges_.size() + i)};
      const bool requires_grad = !round.requires_grad.empty() && round.requires_grad[i];
      const at::Tensor tangent = make_stand_in(tracer_, tangent_type(round, i, histories[i].type),
                                               UserInput{index}, requires_grad, /*is_leaf=*/true);
      edges.push_back(requires_grad ? torch::autograd::impl::gradient_edge(tangent)
                                    : torch::autograd::Edge());
      gradients.root_grads.push_back(tangent);
      gradients.roots.push_back(histories[i].edge);
    }
    gradients.autocast = round.autocast;
    auto taken = take(gradients, Keep::GraphAndHistory);
    if (gradient_error_) std::rethrow_exception(gradient_error_);
    std::vector<at::Tensor> by_input = sum_by_input(std::move(*taken));
    if (is_first_round()) {
      const size_t first = edges_.size() - cuts_.later.size();
      for (size_t i = 0; i < cuts_.later.size(); ++i) {
        const auto edge = edge_seen(cuts_.later[i]);
        if (edge && std::ranges::find(gradients.roots, *edge) != gradients.roots.end())
          edges_[first + i] = end_at(cuts_.later[i]);
      }
    }
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    return by_input;
  }

  /// The gradients are the outputs of the graph.
  void give_back(const std::vector<at::Tensor>& gradients) {
    for (uint32_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      tracer_.graph().outputs.push_back({traced_value(gradients[i]), UserOutput{{i}}});
      if (gradients[i].requires_grad()) differentiable_.push_back({i});
    }
  }

  void take_last(const GradientRound& round, const std::vector<History>& histories) {
    Gradients gradients = all_wanted();
    gradients.autocast = round.autocast;
    for (size_t i = 0; i < histories.size(); ++i) {
      gradients.root_grads.push_back(
          make_tangent(tracer_, tangent_type(round, i, histories[i].type), round.of[i]));
      gradients.roots.push_back(histories[i].edge);
    }
    torch::autograd::variable_list grads(gradients.wanted.size());
    if (!gradients.roots.empty() && !gradients.wanted.empty()) {
      first_round_ = gradients;
      if (auto taken = take(gradients, Keep::Graph)) grads = std::move(*taken);
    }
    const auto reached = gradient_error_ ? nodes_behind(gradients.roots)
                                         : std::unordered_set<const torch::autograd::Node*>();
    const std::vector<at::Tensor> by_input = sum_by_input(std::move(grads));
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      if (!edges_[i].is_valid()) continue;
      if (gradient_error_ && !reached.contains(edges_[i].function.get())) continue;
      tracer_.graph().outputs.push_back({traced_value(by_input[i]), Grad{InputIndex{i}}});
    }
    if (!gradient_error_) give_late_writes(round, gradients);
  }

  /// An input that was given another storage has two accumulators.
  std::vector<at::Tensor> sum_by_input(torch::autograd::variable_list grads) const {
    const size_t earlier = grads.size() - earlier_edges_.size();
    std::vector<at::Tensor> by_input(edges_.size());
    size_t next = 0;
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      if (!edges_[i].is_valid()) continue;
      at::Tensor& grad = by_input[i] = std::move(grads[next++]);
      if (const auto found = earlier_edges_.find(i); found != earlier_edges_.end()) {
        const auto place = static_cast<size_t>(std::distance(earlier_edges_.begin(), found));
        const at::Tensor& other = grads[earlier + place];
        if (other.defined()) grad = grad.defined() ? other.add(grad) : other;
      }
    }
    return by_input;
  }

  /// Whether eager's backward throws the same. Functional wrappers replay view operators where
  /// tensors are viewed by strides: then a view whose sizes were changed in place is not followed.
  bool is_eagers(const c10::Error& error) const {
    if (dynamic_cast<const c10::NotImplementedError*>(&error)) return true;
    const std::string_view text = error.what_without_backtrace();
    const auto says = [&](const char* what) { return text.find(what) != std::string_view::npos; };
    if (says("modified by an inplace operation") || says("detached in-place")) return true;
    if (says("backward through the graph a second time")) return true;
    return says("returned an invalid gradient") &&
           std::ranges::any_of(recording_.inputs, [](const RecordedInput& input) {
             return input.seen.storage_changed && !input.seen.is_view;
           });
  }

  struct Gradients {
    torch::autograd::edge_list roots;
    torch::autograd::variable_list root_grads;
    torch::autograd::edge_list wanted;
    AutocastState autocast{};
  };
  Gradients all_wanted() const {
    Gradients gradients;
    for (const auto& edge : edges_) {
      if (edge.is_valid()) gradients.wanted.push_back(edge);
    }
    for (const auto& [input, edge] : earlier_edges_) gradients.wanted.push_back(edge);
    return gradients;
  }

  enum class Keep { Graph, GraphAndHistory };

  /// Takes the gradients; nothing if a tensor that they need was written since, which is eager's
  /// error too.
  std::optional<torch::autograd::variable_list> take(const Gradients& gradients, Keep keep) {
    auto& nodes = tracer_.graph().nodes;
    const auto forward_nodes = static_cast<ptrdiff_t>(nodes.size());
    const AutocastScope autocast(gradients.autocast);
    try {
      return torch::autograd::Engine::get_default_engine().execute(
          gradients.roots, gradients.root_grads, /*keep_graph=*/true,
          /*create_graph=*/keep == Keep::GraphAndHistory,
          /*accumulate_grad=*/false, gradients.wanted);
    } catch (const Refusal&) {
      throw;
    } catch (const c10::Error& error) {
      if (!is_eagers(error)) {
        throw Refusal(
            fmt::format("the gradients can't be taken: {}", error.what_without_backtrace()));
      }
      gradient_error_ = std::current_exception();
      nodes.erase(nodes.begin() + forward_nodes, nodes.end());
      return std::nullopt;
    }
  }

  /// What backward wrote besides.
  void give_late_writes(const GradientRound& round, const Gradients& gradients) {
    for (const auto& [input, tensor] : late_) give_late_write(tensor, LateWrite{{input}});
    for (size_t i = 0; i < gradients.root_grads.size(); ++i)
      give_late_write(gradients.root_grads[i], TangentWrite{round.of[i]});
  }

  void give_late_write(const at::Tensor& tensor, const OutputRole& role) {
    if (functional_storage(tensor.storage()).generation() == 0) return;
    tracer_.graph().outputs.push_back({traced_memory(tensor.storage()), role});
    late_advances_.push_back(static_cast<uint32_t>(tensor._version()));
  }

  struct Candidate {
    Slot slot;
    at::Tensor tensor;
  };

  /// Tries what autograd does if they are written once more.
  void find_read_by_backward(const Gradients& gradients) {
    std::vector<Candidate> candidates;
    std::unordered_set<const void*> counters;
    const auto add = [&](Slot slot, const at::Tensor& tensor) {
      if (tensor.defined() && counters.insert(version_counter_identity(tensor)).second)
        candidates.push_back({slot, tensor});
    };
    for (uint32_t i = 0; i < recording_.inputs.size(); ++i) {
      if (!meta_.inputs[i].is_saved_itself())
        add(Slot{i}, values_[recording_.inputs[i].value.index]);
    }
    for (const BaseInfo& base : meta_.bases) {
      const at::Tensor& tensor = values_[base.value.index];
      if (tensor.defined() && (tensor._version() > 0 || !recording_.nodes.empty()))
        add(base.slot, tensor);
    }
    if (candidates.empty() || !reads(candidates, gradients)) return;
    for (const Candidate& candidate : candidates) {
      if (candidates.size() == 1 || reads({candidate}, gradients))
        read_by_backward_.push_back(candidate.slot);
    }
  }

  bool reads(const std::vector<Candidate>& candidates, const Gradients& gradients) {
    std::vector<int64_t> versions;
    for (const Candidate& candidate : candidates) {
      versions.push_back(candidate.tensor._version());
      torch::autograd::impl::bump_version(candidate.tensor);
    }
    auto& nodes = tracer_.graph().nodes;
    const auto forward_nodes = static_cast<ptrdiff_t>(nodes.size());
    bool throws = true;
    try {
      throws = !take(gradients, Keep::Graph);
    } catch (const Refusal&) {
      // Of one of several views autograd says otherwise that it was written.
    }
    nodes.erase(nodes.begin() + forward_nodes, nodes.end());
    gradient_error_ = nullptr;
    for (size_t i = 0; i < candidates.size(); ++i) {
      c10::VariableVersion counter =
          torch::autograd::impl::version_counter(candidates[i].tensor);  // shared
      counter.set_version(versions[i]);
    }
    return throws;
  }

  const Recording& recording_;
  const ViewAndMutationMeta& meta_;
  const GradientCuts& cuts_;
  const std::vector<OutputRole> outputs_;  // of forward
  Tracer tracer_;
  bool takes_offsets_;
  std::vector<MemoryView> bases_;        // by BaseIndex: where it was made
  std::vector<at::Tensor> values_;       // by the recording's values
  std::map<uint32_t, at::Tensor> late_;  // by InputIndex
  std::vector<uint32_t> late_advances_;
  ReplayedNodes custom_nodes_;
  std::multimap<const torch::autograd::Node*, uint32_t> hooks_;  // of the recording, in the graph
  std::vector<const JoinHistory*> joins_;                        // in order
  size_t next_join_ = 0;
  std::vector<std::pair<Differentiable, History>> joined_;
  Gradients first_round_;
  std::exception_ptr gradient_error_;
  std::vector<Slot> read_by_backward_;
  std::vector<InputIndex> differentiable_;
  size_t first_tangent_ = 0;  // number among the inputs of the first round's first tangent
  std::vector<torch::autograd::Edge> edges_;                 // by input: where its history begins
  std::map<uint32_t, torch::autograd::Edge> earlier_edges_;  // where it began before, if elsewhere
  std::unordered_map<uint32_t, ValueId> view_bases_;         // `Recording::view_bases`
};

}  // namespace

JointTrace trace_rounds(const Recording& recording, const ViewAndMutationMeta& meta,
                        const std::vector<GradientRound>& rounds, const GradientCuts& cuts) {
  return JointReplay(recording, meta, cuts).run(rounds);
}

JointTrace trace_all_outputs(const Recording& recording, const ViewAndMutationMeta& meta,
                             const std::vector<Differentiable>& tangents) {
  std::vector<OutputRole> outputs;
  for (const OutputRole& role : meta.forward_outputs()) {
    if (std::holds_alternative<MutatedInput>(role)) outputs.push_back(role);
  }
  for (uint32_t i = 0; i < recording.outputs.size(); ++i) {
    if (recording.outputs[i].seen.defined) outputs.emplace_back(UserOutput{{i}});
  }
  const GradientCuts none;
  JointTrace joint = JointReplay(recording, meta, none, outputs).run({{.of = tangents}});
  if (tangents.empty()) {
    std::erase_if(joint.graph.outputs, [](const GraphOutput& output) {
      return std::holds_alternative<Grad>(output.role);
    });
  }
  return joint;
}

JointTrace trace_joint(const Recording& recording, const ViewAndMutationMeta& meta,
                       const std::vector<Differentiable>& tangents,
                       const std::vector<c10::DimVector>& strides) {
  return trace_rounds(recording, meta, {{.of = tangents, .strides = strides}});
}

}  // namespace foregrad
