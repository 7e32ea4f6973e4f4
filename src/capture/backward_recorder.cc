#include "capture/backward_recorder.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "capture/outside_state.h"
#include "capture/stand_in.h"
#include "capture/trace_tensor.h"
#include "graph/alias.h"
#include "graph/refusal.h"

namespace foregrad {

namespace {

using torch::autograd::variable_list;

bool is_about_version(const std::exception& error) {
  return std::string_view(error.what()).find("modified by an inplace operation") !=
         std::string_view::npos;
}

/// What eager's backward throws too, if it comes to run.
bool is_eagers(const std::exception& error) {
  return is_about_version(error) ||
         std::string_view(error.what()).find("backward through the graph a second time") !=
             std::string_view::npos;
}

/// Numbers the values of a backward by themselves.
class OwnNumbers {
 public:
  explicit OwnNumbers(const std::vector<RecordedNode::SavedTensor>& saved) {
    for (const auto& entry : saved) own(entry.value);
  }
  ValueId own(ValueId value) {
    return ValueId{
        numbers_.try_emplace(value.index, static_cast<uint32_t>(numbers_.size())).first->second};
  }
  uint32_t count() const { return static_cast<uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<uint32_t, uint32_t> numbers_;
};

/// While it lives, operators are recorded as a backward's, and their writes are not the function's.
class OpsOfBackward {
 public:
  OpsOfBackward(std::vector<RecordedOp>& of_function, std::vector<RecordedOp>& of_backward,
                InputTable& inputs)
      : of_function_(of_function), of_backward_(of_backward), inputs_(inputs) {
    std::swap(of_function_, of_backward_);
    inputs_.note_writes(false);
  }
  OpsOfBackward(const OpsOfBackward&) = delete;
  OpsOfBackward& operator=(const OpsOfBackward&) = delete;
  ~OpsOfBackward() {
    std::swap(of_function_, of_backward_);
    inputs_.note_writes(true);
  }

 private:
  std::vector<RecordedOp>& of_function_;
  std::vector<RecordedOp>& of_backward_;
  InputTable& inputs_;
};

/// Visits the values of a backward that it did not make itself.
template <class Visit>
void for_each_saved(const RecordedBackward& backward, const std::vector<ValueId>& tangents,
                    Visit&& visit) {
  std::unordered_set<uint32_t> own;
  for (const ValueId tangent : tangents) own.insert(tangent.index);
  const auto look_at = [&](ValueId value) {
    if (!own.contains(value.index)) visit(value);
  };
  for (const RecordedOp& op : backward.ops) {
    for (const Operand& arg : op.args) for_each_value(arg, look_at);
    for (const Operand& result : op.results)
      for_each_value(result, [&](ValueId value) { own.insert(value.index); });
  }
  for (const auto& gradient : backward.gradients) {
    if (gradient) look_at(*gradient);
  }
}

}  // namespace

void BackwardRecorder::record(const UsersBackward& users, Saved kept) {
  std::vector<std::pair<uint32_t, Run>> runs;
  RecordedNode& node = *users.recorded;
  const uint32_t all = users.may_be_defined;
  for (uint32_t defined = 0; defined <= all; ++defined) {
    if ((defined & all) == defined) runs.emplace_back(defined, run(users, defined));
  }
  std::unordered_set<uint32_t> saved;
  for (const auto& [defined, run] : runs) {
    for_each_saved(run.backward, run.tangents, [&](ValueId value) {
      if (!saved.insert(value.index).second) return;
      const auto result = users.values.find(value.index);
      node.saved.push_back(
          {.value = value,
           .result = result == users.values.end() ? std::nullopt : std::optional(result->second)});
    });
  }
  if (kept == Saved::Checked) find_checked(users);
  for (auto& [defined, run] : runs) {
    OwnNumbers numbers(node.saved);
    const auto renumber = [&](ValueId& value) { value = numbers.own(value); };
    for (ValueId& tangent : run.tangents) renumber(tangent);
    for (RecordedOp& op : run.backward.ops) {
      for (Operand& arg : op.args) for_each_value(arg, renumber);
      for (Operand& result : op.results) for_each_value(result, renumber);
      op.writes.clear();
    }
    for (auto& gradient : run.backward.gradients) {
      if (gradient) renumber(*gradient);
    }
    run.backward.value_count = numbers.count();
    node.backwards.emplace(defined, std::move(run.backward));
  }
}

variable_list BackwardRecorder::make_tangents(const UsersBackward& users, uint32_t defined) {
  variable_list tangents;
  const auto& results = users.recorded->results;
  for (uint32_t i = 0; i < results.size(); ++i) {
    at::Tensor& tangent = tangents.emplace_back();
    if ((defined >> i & 1U) == 0) continue;
    tangent = make_tangent(tracer_,
                           {.dtype = results[i]->dtype,
                            .sizes = results[i]->sizes,
                            .strides = contiguous_strides(results[i]->sizes)},
                           UserOutput{{i}});
    values_.number(tangent);
  }
  return tangents;
}

BackwardRecorder::Run BackwardRecorder::run(const UsersBackward& users, uint32_t defined_tangents) {
  Run run;
  variable_list tangents = make_tangents(users, defined_tangents);
  for (const at::Tensor& tangent : tangents) {
    if (tangent.defined()) run.tangents.push_back(values_.number(tangent));
  }
  run.first_own_value = recording_.value_count;
  // Its operators cast as the state tells that backward will run under.
  const AutocastScope no_autocast({});
  try {
    const OpsOfBackward ops(recording_.ops, run.backward.ops, inputs_);
    run.backward.gradients = take_gradients(users, std::move(tangents));
  } catch (const std::exception& error) {
    run.backward.error = std::current_exception();
    undo_writes(users, run);
    run.backward.ops.clear();
    if (defined_tangents == users.may_be_defined && !is_eagers(error)) throw;
    return run;
  }
  undo_writes(users, run);
  return run;
}

/// The recorder has counted them as the function's own. Throws `Refusal` for those that can't be
/// done later, unless the backward throws anyway.
void BackwardRecorder::undo_writes(const UsersBackward& users, Run& run) {
  for (const RecordedOp& op : run.backward.ops) {
    for (const RecordedWrite& write : op.writes) {
      const at::Tensor tensor = values_.tensors()[write.value.index];
      const bool is_tangent = std::ranges::find(run.tangents, write.value) != run.tangents.end();
      if (!is_tangent && is_own(run, tensor)) continue;
      const bool is_possible = !write.rewritten && !write.storage && write.data &&
                               (is_tangent || inputs_.is_whole_input(write.value));
      if (!is_possible && !run.backward.error) {
        throw Refusal(fmt::format(
            "{} does more to a tensor that it did not make than write the elements of a tangent "
            "or of an argument, by `{}`. Expected it to give new tensors.",
            users.what, to_text(op)));
      }
      run.backward.writes = true;
      c10::VariableVersion counter = torch::autograd::impl::version_counter(tensor);  // shared
      counter.set_version(counter.current_version() - write.version_advance);
      values_.note_version(write.value);
    }
  }
}

/// Whether the backward made the memory that the tensor lies in.
bool BackwardRecorder::is_own(const Run& run, const at::Tensor& tensor) const {
  const auto& tensors = values_.tensors();
  const auto* storage = tensor.storage().unsafeGetStorageImpl();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const bool is_others = i < run.first_own_value || inputs_.is_whole_input(ValueId{i}) ||
                           std::ranges::find(run.tangents, ValueId{i}) != run.tangents.end();
    if (is_others && tensors[i].storage().unsafeGetStorageImpl() == storage) return false;
  }
  return true;
}

std::vector<std::optional<ValueId>> BackwardRecorder::take_gradients(const UsersBackward& users,
                                                                     variable_list tangents) {
  // As with `create_graph`: what the backward itself does without grad mode is told from what
  // autograd does so.
  const at::AutoGradMode with_history(true);
  std::vector<std::optional<ValueId>> gradients;
  for (const at::Tensor& gradient : users.apply(std::move(tangents))) {
    auto& value = gradients.emplace_back();
    if (!gradient.defined()) continue;
    const at::Tensor own = is_wrapper(gradient) ? gradient : inputs_.capture(gradient);
    value = values_.find_again(own);
    if (!value) throw Refusal(users.what + " gives a tensor that was made out of tracing's sight");
  }
  return gradients;
}

/// Tries what it does if they are written once more.
void BackwardRecorder::find_checked(const UsersBackward& users) {
  for (auto& saved : users.recorded->saved) {
    const at::Tensor tensor = values_.tensors()[saved.value.index];
    c10::VariableVersion counter = torch::autograd::impl::version_counter(tensor);  // shared
    const auto version = counter.current_version();
    torch::autograd::impl::bump_version(tensor);
    values_.note_version(saved.value);  // it is no doing of the backward's
    try {
      const Run unused = run(users, users.may_be_defined);
      saved.is_checked = unused.backward.error != nullptr;
    } catch (const std::exception&) {
      saved.is_checked = true;  // it throws of a view that it is no longer what it was
    }
    counter.set_version(version);
    values_.note_version(saved.value);
  }
}

}  // namespace foregrad
