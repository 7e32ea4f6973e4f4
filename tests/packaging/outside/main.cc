// A program outside Foregrad's tree: the gradients of a compiled loss equal eager's.
#include <foregrad/aot.h>
#include <foregrad/compile.h>
#include <torch/torch.h>

#include <cstdio>

int main() {
  torch::manual_seed(0);
  torch::nn::Linear net(4, 3);
  const auto loss_of = [&](const torch::Tensor& x, const torch::Tensor& y) {
    return torch::mse_loss(torch::tanh(net->forward(x)), y);
  };
  const auto x = torch::randn({8, 4});
  const auto y = torch::randn({8, 3});

  loss_of(x, y).backward();
  const auto expected = net->weight.grad().clone();
  net->zero_grad();

  auto step = foregrad::compile(loss_of, {.modules = {net}});
  auto loss = step(x, y);
  loss.backward();

  const auto graph = foregrad::make_graph([](const torch::Tensor& x) { return x.sin(); }, x);
  if (graph.nodes.size() != 1) return 1;

  const bool equal = net->weight.grad().equal(expected);
  std::printf("loss %.6f, gradients %s\n", loss.item<double>(), equal ? "equal" : "differ");
  return equal ? 0 : 1;
}
