#include "analysis/history_stages.h"

#include <algorithm>
#include <map>
#include <utility>

namespace foregrad {

namespace {

class StageFinder {
 public:
  StageFinder(const ViewAndMutationMeta& meta,
              const std::vector<std::vector<Differentiable>>& leads_to)
      : meta_(meta), tangents_(meta.tangents()), leads_to_(leads_to), depths_(tangents_.size()) {}

  std::vector<HistoryStage> find() {
    const auto is_empty = [](const auto& list) { return list.empty(); };
    if (std::ranges::all_of(leads_to_, is_empty)) return {{tangents_, {}}};
    // New tensors get their history last, or when another history needs it; others where the
    // effects say so. What leads on has to wait until that is there.
    std::map<std::pair<int, size_t>, HistoryStage> stages;
    for (size_t i = 0; i < tangents_.size(); ++i) {
      const size_t group = is_new_tensor(tangents_[i]) ? tangents_.size()
                           : leads_to_[i].empty()      ? 0
                                                       : i;
      HistoryStage& stage = stages[{depth_of(i), group}];
      stage.tangents.push_back(tangents_[i]);
      for (const Differentiable& cut : leads_to_[i]) {
        if (std::ranges::find(stage.cuts, cut) == stage.cuts.end()) stage.cuts.push_back(cut);
      }
    }
    std::vector<HistoryStage> found;
    for (auto& [key, stage] : stages) found.push_back(std::move(stage));
    return found;
  }

 private:
  bool is_new_tensor(const Differentiable& tensor) const {
    const auto* output = std::get_if<UserOutput>(&tensor);
    return output && meta_.outputs[output->output.index].is_computed();
  }

  int depth_of(size_t tangent) {
    if (depths_[tangent]) return *depths_[tangent];
    depths_[tangent] = 0;
    int depth = 0;
    for (const Differentiable& cut : leads_to_[tangent]) depth = std::max(depth, 1 + depth_of(cut));
    depths_[tangent] = depth;
    return depth;
  }

  int depth_of(const Differentiable& visible) {
    const auto found = std::ranges::find(tangents_, history_of(visible));
    return found == tangents_.end() ? -1 : depth_of(static_cast<size_t>(found - tangents_.begin()));
  }

  /// What the history of a view that the effects take leads to.
  Differentiable history_of(const Differentiable& visible) const {
    if (const auto* mutated = std::get_if<MutatedInput>(&visible))
      return MutatedInput{meta_.inputs[mutated->of.index].view_of.value_or(mutated->of)};
    const auto* output = std::get_if<UserOutput>(&visible);
    if (!output) return visible;
    const OutputOrigin& origin = meta_.outputs[output->output.index].origin;
    if (const auto* based = std::get_if<ViewOfIntermediate>(&origin))
      return IntermediateBase{based->base};
    if (const auto* view = std::get_if<ViewOfInput>(&origin)) {
      const InputInfo& input = meta_.inputs[view->input.index];
      return MutatedInput{input.view_of.value_or(view->input)};
    }
    return visible;
  }

  const ViewAndMutationMeta& meta_;
  const std::vector<Differentiable> tangents_;
  const std::vector<std::vector<Differentiable>>& leads_to_;
  std::vector<std::optional<int>> depths_;  // by tangent
};

}  // namespace

std::vector<HistoryStage> find_history_stages(
    const ViewAndMutationMeta& meta, const std::vector<std::vector<Differentiable>>& leads_to) {
  return StageFinder(meta, leads_to).find();
}

}  // namespace foregrad
