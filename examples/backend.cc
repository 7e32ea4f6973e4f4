// A compiler backend: it runs graphs node by node and measures what each operator costs. Forward,
// backward and their split are Foregrad's; the backend gets functional graphs.
#include <foregrad/aot.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

#include "graph/call.h"

/// What the operators of all graphs cost.
class Profile {
 public:
  void add(const std::string& op, double us) {
    const std::lock_guard lock(mutex_);
    auto& [calls, total] = by_operator_[op];
    ++calls;
    total += us;
  }
  void print() const {
    std::printf("%-40s %6s %10s\n", "operator", "calls", "us a call");
    for (const auto& [op, cost] : by_operator_)
      std::printf("%-40s %6d %10.2f\n", op.c_str(), cost.first, cost.second / cost.first);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<int, double>> by_operator_;
};

/// Runs the graph's nodes in order.
std::vector<at::Tensor> run(const foregrad::Graph& graph, const std::vector<at::Tensor>& inputs,
                            Profile& profile) {
  using Clock = std::chrono::steady_clock;
  std::vector<at::Tensor> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i].value.index] = inputs[i];
  for (const foregrad::Node& node : graph.nodes) {
    torch::jit::Stack stack;
    foregrad::push_arguments(stack, node.op, node.args,
                             [&](foregrad::ValueId value) { return values[value.index]; });
    const auto start = Clock::now();
    node.op.callBoxed(&stack);
    const std::chrono::duration<double, std::micro> us = Clock::now() - start;
    profile.add(foregrad::operator_text(node.op), us.count());
    foregrad::take_results(stack, node.results, [&](foregrad::ValueId value, at::Tensor&& result) {
      values[value.index] = std::move(result);
    });
  }
  std::vector<at::Tensor> results;
  for (const foregrad::GraphOutput& output : graph.outputs)
    results.push_back(output.value ? values[output.value->index] : at::Tensor());
  return results;
}

int main() {
  Profile profile;
  const foregrad::GraphCompiler compiler = [&](const foregrad::Graph& graph) {
    return [&profile, graph](const std::vector<at::Tensor>& inputs) {
      return run(graph, inputs, profile);
    };
  };
  const foregrad::Backend backend{.forward = compiler, .backward = compiler, .inference = compiler};

  torch::nn::Sequential net(torch::nn::Linear(64, 128), torch::nn::SiLU(),
                            torch::nn::Linear(128, 8));
  const auto compiled = foregrad::aot_module(net, backend);
  const auto x = torch::randn({32, 64});
  for (int i = 0; i < 10; ++i) compiled(x).square().mean().backward();

  profile.print();
  const auto difference = (compiled(x) - net->forward(x)).abs().max().item<double>();
  std::printf("largest difference from eager: %g\n", difference);
  std::printf("calls that ran eagerly: %zu\n", compiled.report().eager_calls);
}
