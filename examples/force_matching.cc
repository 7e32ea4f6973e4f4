// Learns the potential of a pendulum from forces alone. The force is minus the gradient of the
// network's energy, taken inside the compiled function; training differentiates it once more. At
// the end the eager loss is computed too: the two are equal, bit for bit.
#include <foregrad/compile.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <numbers>

namespace {

class PotentialImpl : public torch::nn::Module {
 public:
  torch::Tensor forward(const torch::Tensor& angle) {
    return last_(torch::tanh(second_(torch::tanh(first_(angle)))));
  }

  torch::Tensor force(const torch::Tensor& angle) {
    return -torch::autograd::grad({forward(angle).sum()}, {angle}, {}, /*retain_graph=*/true,
                                  /*create_graph=*/true)[0];
  }

 private:
  torch::nn::Linear first_ = register_module("first", torch::nn::Linear(1, 32));
  torch::nn::Linear second_ = register_module("second", torch::nn::Linear(32, 32));
  torch::nn::Linear last_ = register_module("last", torch::nn::Linear(32, 1));
};
TORCH_MODULE(Potential);

}  // namespace

int main() {
  torch::manual_seed(0);
  Potential potential;
  const auto loss_of = [&](const torch::Tensor& angle, const torch::Tensor& force) {
    return torch::mse_loss(potential->force(angle), force);
  };
  // Refuse: an operator that could not be compiled would be an error here, not a slow call.
  const auto step =
      foregrad::compile(loss_of, {.modules = {potential}, .policy = foregrad::Policy::Refuse});

  torch::optim::Adam optimizer(potential->parameters(), torch::optim::AdamOptions(0.005));
  for (int i = 0; i <= 1000; ++i) {
    const auto angle = ((torch::rand({128, 1}) - 0.5) * 2 * std::numbers::pi).requires_grad_();
    const auto loss = step(angle, -torch::sin(angle.detach()));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (i % 200 == 0) std::printf("step %4d: loss %.6f\n", i, loss.item<double>());
  }

  const auto angle = torch::linspace(-3, 3, 7).unsqueeze(1).requires_grad_();
  const auto force = -torch::sin(angle.detach());
  const bool equal = step(angle, force).equal(loss_of(angle, force));
  std::printf("compiled and eager loss %s\n", equal ? "are equal" : "differ");
  const auto learned = potential->forward(angle) - potential->forward(torch::zeros({1, 1}));
  for (int i = 0; i < 7; ++i) {
    const double at = angle[i].item<double>();
    std::printf("angle %4.1f: energy %6.3f, exactly %6.3f\n", at, learned[i].item<double>(),
                1 - std::cos(at));
  }
  return equal ? 0 : 1;
}
