// One compilation: from a call's arguments to a specialisation with its guards, and what the report
// says of it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foregrad/detail/callable.h"
#include "graph/recording.h"
#include "runtime/guards.h"
#include "runtime/specialisation.h"

namespace foregrad::detail {

/// A module's `training` flag as it was.
struct ModuleGuard {
  std::shared_ptr<torch::nn::Module> module;
  std::string name;
  bool training = false;
};

struct Compilation {
  std::shared_ptr<const Recording> first_recording;  // of the user's function
  std::shared_ptr<const Recording> recording;  // with the inputs as they lie; what is replayed
  std::vector<at::Tensor> lifted;              // what the guards hold on to
  std::vector<std::pair<std::size_t, at::Tensor>>
      fixed_arguments;  // argument number, and the captured tensor it must be
  std::vector<ModuleGuard> modules;
  c10::SmallVector<PlainLeaf, 8> plain;
  std::unique_ptr<Guards> guards;
  std::shared_ptr<const Backend> backend;            // null: none
  std::optional<AutocastState> backward_autocast{};  // if it is fixed
  std::shared_ptr<Specialisation> specialisation;
  std::shared_ptr<const void> prototype;
  std::string refusal;  // why calls like this one can't be compiled; empty if they are
  ViewAndMutationMeta meta;
  Graph joint;
  Graph forward;
  std::vector<Graph> backwards;  // of each autograd node, for all of its tangents
  std::vector<Report::Stage> stages;
  std::map<std::string, uint32_t> last_resort_shapes;
  std::atomic<std::size_t> calls = 0;

  bool is_valid_for(const Leaves& leaves) const;
  /// The reason why it isn't, in words.
  std::string why_invalid(const Leaves& leaves) const;
};

/// Called for a captured tensor that is not declared, with the first operator that used it; may
/// throw.
using OnUndeclared = std::function<void(const at::Tensor&, const std::string&)>;

/// Runs the function once on stand-ins and gives the recording, the prototype of its result, and
/// the shapes that took real kernels.
struct Recorded {
  Recording recording;
  std::shared_ptr<const void> prototype;
  std::map<std::string, uint32_t> last_resort_shapes;
};
Recorded record_call(const Leaves& leaves, BoundFunction& function, const CompileOptions& options,
                     const OnUndeclared& on_undeclared);

/// Records the function's operators again until the inputs lie as plainly as their writes allow.
/// Throws `Refusal` if they never do.
std::shared_ptr<const Recording> settle(std::shared_ptr<const Recording> recording,
                                        const Leaves& leaves);

/// Compiles: records, analyses, traces the joint graph, runs the passes, partitions. Throws
/// `Refusal` for what can't be compiled, and what the user's function throws.
std::shared_ptr<Compilation> compile_call(const Leaves& leaves, BoundFunction& function,
                                          const CompileOptions& options,
                                          const OnUndeclared& on_undeclared);

/// Remembers that calls like this one can't be compiled.
std::shared_ptr<Compilation> refuse_calls_like(const Leaves& leaves, const CompileOptions& options,
                                               std::string reason);

}  // namespace foregrad::detail
