// Fits a sine. The loss is compiled at its first call, forward and backward.
#include <foregrad/compile.h>
#include <torch/torch.h>

#include <cstdio>

int main() {
  torch::nn::Sequential net(torch::nn::Linear(1, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  auto loss_of = [&](const torch::Tensor& x, const torch::Tensor& y) {
    return torch::mse_loss(net->forward(x), y);
  };
  auto step = foregrad::compile(loss_of, {.modules = {net}});  // called as `loss_of` is

  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));
  for (int i = 0; i <= 500; ++i) {
    auto x = torch::rand({256, 1}) * 6 - 3;
    auto loss = step(x, torch::sin(x));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (i % 100 == 0) std::printf("step %3d: loss %.6f\n", i, loss.item<double>());
  }
  std::printf("calls that ran eagerly: %zu\n", step.report().eager_calls);
}
