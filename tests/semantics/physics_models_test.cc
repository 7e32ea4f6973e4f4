// Models whose losses hold derivatives: forces of an energy, and a differential equation. Gradients
// of gradients, inside of the compiled function and outside, against eager and finite differences.
#include "semantics/eager_twin.h"

namespace foregrad::testing {
namespace {

using torch::autograd::grad;

/// A message-passing energy of a cloud of atoms, of a width and depth that tell errors apart.
struct EnergyModel {
  at::Tensor embed, message, update, readout;

  explicit EnergyModel(at::ScalarType dtype) {
    const auto weight = [&](int64_t rows, int64_t columns) {
      return (at::randn({rows, columns}, dtype) / std::sqrt(static_cast<double>(rows)))
          .requires_grad_();
    };
    embed = weight(6, 8);
    message = weight(8, 8);
    update = weight(8, 8);
    readout = weight(8, 1);
  }
  Tensors parameters() const { return {embed, message, update, readout}; }

  /// Positions [atoms, 3] to the energy, a scalar.
  at::Tensor operator()(const at::Tensor& positions) const {
    const int64_t atoms = positions.size(0);
    const at::Tensor between = positions.unsqueeze(0) - positions.unsqueeze(1);
    const at::Tensor apart = at::eye(atoms, positions.options()).neg() + 1;
    const at::Tensor distance = ((between * between).sum(-1) + 1 - apart).sqrt();
    const at::Tensor centres = at::arange(6, positions.options()) * 0.5;
    const at::Tensor radial =
        (-(distance.unsqueeze(-1) - centres).pow(2)).exp() * apart.unsqueeze(-1);
    const at::Tensor edges = at::silu(radial.matmul(embed));
    at::Tensor state = edges.sum(1);
    for (int step = 0; step < 2; ++step) {
      const at::Tensor messages = (edges * state.matmul(message).unsqueeze(0)).sum(1);
      state = state + at::tanh(messages.matmul(update));
    }
    return state.matmul(readout).sum();
  }
};

/// Squared error of energy and forces, with the forces taken inside.
template <class Energy>
at::Tensor force_matching_loss(const Energy& energy, const at::Tensor& positions) {
  const at::Tensor e = energy(positions);
  const at::Tensor forces = -grad({e}, {positions}, {}, true, /*create_graph=*/true)[0];
  return (e - 1).pow(2) + (forces - 0.1).pow(2).mean();
}

at::Tensor cloud(int64_t atoms, at::ScalarType dtype) {
  return (at::randn({atoms, 3}, dtype) * 1.5).requires_grad_();
}

void expect_close(const Tensors& got, const Tensors& eager) {
  ASSERT_EQ(got.size(), eager.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), eager[i].defined()) << i;
    if (!eager[i].defined()) continue;
    const double scale = std::max(eager[i].abs().max().item<double>(), 1e-3);
    const double error = (got[i] - eager[i]).abs().max().item<double>();
    EXPECT_LE(error, 1e-6 * scale) << i;
  }
}

/// Loss, its gradients, and the gradients of the norm of these: third derivatives of the energy.
template <class Loss>
Tensors to_third_order(const Loss& loss, const at::Tensor& positions, const Tensors& parameters) {
  Tensors wanted = parameters;
  wanted.push_back(positions);
  const at::Tensor value = loss(positions);
  const Tensors first = grad({value}, wanted, {}, true, /*create_graph=*/true);
  at::Tensor norm = at::zeros({}, value.options());
  for (const at::Tensor& g : first) norm = norm + g.pow(2).sum();
  Tensors all = {value};
  all.insert(all.end(), first.begin(), first.end());
  const Tensors second = grad({norm}, wanted, {}, std::nullopt, false, true);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

TEST(PhysicsModels, ForcesOutsideOfACompiledEnergy) {
  torch::manual_seed(1);
  const EnergyModel model(at::kFloat);
  auto compiled = compile(model, {.tensors = model.parameters(), .policy = Policy::Refuse});
  for (const int64_t atoms : {4, 7, 4, 5}) {
    SCOPED_TRACE(atoms);
    const at::Tensor positions = cloud(atoms, at::kFloat);
    const auto loss_of = [&](const auto& energy) {
      return [&](const at::Tensor& x) { return force_matching_loss(energy, x); };
    };
    expect_close(to_third_order(loss_of(compiled), positions, model.parameters()),
                 to_third_order(loss_of(model), positions, model.parameters()));
  }
  EXPECT_EQ(compiled.report().eager_calls, 0U);
}

TEST(PhysicsModels, ForcesInsideOfACompiledLoss) {
  torch::manual_seed(2);
  const EnergyModel model(at::kFloat);
  const auto loss = [&](const at::Tensor& x) { return force_matching_loss(model, x); };
  auto compiled = compile(loss, {.tensors = model.parameters(), .policy = Policy::Refuse});
  for (const int64_t atoms : {4, 7, 4, 5}) {
    SCOPED_TRACE(atoms);
    const at::Tensor positions = cloud(atoms, at::kFloat);
    expect_close(to_third_order(compiled, positions, model.parameters()),
                 to_third_order(loss, positions, model.parameters()));
  }
  EXPECT_EQ(compiled.report().eager_calls, 0U);
}

/// Central differences of a scalar function along a direction.
template <class Fn>
double slope(const Fn& fn, const at::Tensor& x, const at::Tensor& direction) {
  constexpr double kStep = 1e-5;
  const auto at_offset = [&](double offset) {
    return fn((x.detach() + offset * direction).requires_grad_());
  };
  return (at_offset(kStep) - at_offset(-kStep)) / (2 * kStep);
}

TEST(PhysicsModels, FiniteDifferencesOfTheLossAndItsGradient) {
  torch::manual_seed(3);
  const EnergyModel model(at::kDouble);
  auto energy = compile(model, {.tensors = model.parameters(), .policy = Policy::Refuse});
  const at::Tensor positions = cloud(5, at::kDouble);
  const at::Tensor direction = at::randn_like(positions);
  const auto loss = [&](const at::Tensor& x) { return force_matching_loss(energy, x); };
  const auto gradient_norm = [&](const at::Tensor& x) {
    return grad({loss(x)}, {x}, {}, true, true)[0].pow(2).sum();
  };
  const auto check = [&](const auto& fn) {
    const at::Tensor gradient = grad({fn(positions)}, {positions})[0];
    const double expected = slope(
        [&](const at::Tensor& x) { return fn(x).template item<double>(); }, positions, direction);
    EXPECT_NEAR((gradient * direction).sum().template item<double>(), expected,
                1e-5 * std::max(1.0, std::abs(expected)));
  };
  check(energy);
  check(loss);
  check(gradient_norm);
}

/// u(t, x) of a small network, and the residual of u_t = u_xx at some points.
struct HeatNetwork {
  at::Tensor in, bias, out;

  explicit HeatNetwork(at::ScalarType dtype) {
    in = at::randn({2, 16}, dtype).requires_grad_();
    bias = at::randn({16}, dtype).requires_grad_();
    out = (at::randn({16, 1}, dtype) / 4).requires_grad_();
  }
  Tensors parameters() const { return {in, bias, out}; }

  at::Tensor operator()(const at::Tensor& t, const at::Tensor& x) const {
    return at::tanh(at::cat({t, x}, 1).matmul(in) + bias).matmul(out);
  }
};

template <class Network>
at::Tensor heat_loss(const Network& u, const at::Tensor& t, const at::Tensor& x) {
  const at::Tensor value = u(t, x);
  const auto derivative = [](const at::Tensor& of, const at::Tensor& by) {
    return grad({of.sum()}, {by}, {}, true, /*create_graph=*/true)[0];
  };
  const at::Tensor residual = derivative(value, t) - derivative(derivative(value, x), x);
  return residual.pow(2).mean() + (value - (x * 3).sin()).pow(2).mean();
}

TEST(PhysicsModels, AHeatEquationNetwork) {
  torch::manual_seed(4);
  const HeatNetwork network(at::kFloat);
  auto compiled_network =
      compile(network, {.tensors = network.parameters(), .policy = Policy::Refuse});
  const auto loss = [&](const at::Tensor& t, const at::Tensor& x) {
    return heat_loss(network, t, x);
  };
  auto compiled_loss = compile(loss, {.tensors = network.parameters(), .policy = Policy::Refuse});
  for (const int64_t points : {8, 5}) {
    SCOPED_TRACE(points);
    const at::Tensor t = at::rand({points, 1}).requires_grad_();
    const at::Tensor x = at::rand({points, 1}).requires_grad_();
    const auto gradients = [&](const at::Tensor& value) {
      Tensors all = grad({value}, network.parameters());
      all.push_back(value);
      return all;
    };
    const Tensors eager = gradients(loss(t, x));
    expect_close(gradients(compiled_loss(t, x)), eager);
    expect_close(gradients(heat_loss(compiled_network, t, x)), eager);
  }
  EXPECT_EQ(compiled_loss.report().eager_calls, 0U);
  EXPECT_EQ(compiled_network.report().eager_calls, 0U);
}

}  // namespace
}  // namespace foregrad::testing
