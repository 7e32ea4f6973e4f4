import copy

import pytest
import torch

import foregrad
from eager import assert_as_eager, same


def small_net():
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))


def train(net, call, steps=5):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(steps):
        x = torch.randn(8, 3)
        loss = (call(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_is_that_of_eager():
    eager = small_net()
    net = copy.deepcopy(eager)
    compiled = foregrad.compile(net, policy="refuse")
    torch.manual_seed(1)
    expected = train(eager, eager)
    torch.manual_seed(1)
    assert train(net, compiled) == expected
    assert same(dict(net.state_dict()), dict(eager.state_dict()))
    net.eval()
    eager.eval()
    x = torch.randn(8, 3)
    assert torch.equal(compiled(x), eager(x))
    assert len(compiled.report().specialisations) == 2


def test_a_method_declares_its_module_and_others_are_named():
    net = small_net()
    assert foregrad.compile(net.forward, policy="refuse")(torch.randn(2, 3)).shape == (2, 1)
    fn = lambda x: net(x) * 2  # noqa: E731
    with pytest.raises(RuntimeError, match="was not declared"):
        foregrad.compile(fn, policy="refuse")(torch.randn(2, 3))
    assert foregrad.compile(fn, policy="refuse", modules=[net])(torch.randn(2, 3)).shape == (2, 1)
    assert foregrad.compile(fn, policy="refuse", tensors=net.state_dict(keep_vars=True).values()).warm_up(
        torch.randn(2, 3)
    )


def test_a_replaced_parameter_or_submodule_is_seen():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    compiled = foregrad.compile(net, policy="refuse")
    x = torch.randn(3, 2)
    assert torch.equal(compiled(x), net(x))
    net[0].weight = torch.nn.Parameter(torch.ones(2, 2))
    assert torch.equal(compiled(x), net(x))
    net[1] = torch.nn.Sigmoid()
    assert torch.equal(compiled(x), net(x))
    net[0].weight.data = torch.zeros(2, 2)
    assert torch.equal(compiled(x), net(x))
    net.double()
    assert torch.equal(compiled(x.double()), net(x.double()))
    net[0].weight.requires_grad_(False)
    compiled(x.double()).sum().backward()
    assert net[0].weight.grad is None and net[0].bias.grad is not None


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps += 1
        return x * self.steps


class Replacing(Counting):
    def forward(self, x):
        self.steps = self.steps + 1
        return x * self.steps


class Switching(torch.nn.Module):
    def forward(self, x):
        self.eval()
        return x * 2


def test_buffers_are_written():
    assert_as_eager(Counting(), lambda: (torch.randn(2, requires_grad=True),))


class Remembering(torch.nn.Module):
    def forward(self, x):
        self.last = x * 2
        return self.last + 1


class Stepping(torch.nn.Module):
    step = 0

    def forward(self, x):
        self.step += 1
        return x * self.step


@pytest.mark.parametrize("kind", [Replacing, Switching, Remembering, Stepping])
def test_a_module_that_is_changed_is_refused_and_left_as_it_was(kind):
    assert_as_eager(kind(), lambda: (torch.randn(2, requires_grad=True),), is_compiled=False)
    net = kind()
    before = dict(net.named_buffers())
    with pytest.raises(RuntimeError, match="another value"):
        foregrad.compile(net, policy="refuse")(torch.ones(2))
    assert net.training and all(b is before[name] for name, b in net.named_buffers())
    assert not hasattr(net, "last") and "step" not in vars(net)


def test_a_lazy_module_runs_eagerly_until_it_has_its_parameters():
    net = torch.nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="its first call makes"):
        foregrad.compile(net, policy="refuse")(torch.ones(1, 3))
    compiled = foregrad.compile(net)
    x = torch.randn(1, 3)
    first = compiled(x)
    assert torch.equal(compiled(x), first) and torch.equal(net(x), first)
    assert compiled.report().eager_calls == 1 and len(compiled.report().specialisations) == 1


def test_a_module_that_keeps_something_of_its_first_call_is_compiled_then():
    class Keeping(torch.nn.Module):
        table = None

        def forward(self, x):
            if self.table is None:
                self.table = torch.arange(3.0) * 2
            return x * self.table

    net = Keeping()
    compiled = foregrad.compile(net)
    x = torch.ones(3)
    for _ in range(4):
        assert torch.equal(compiled(x), x * torch.arange(3.0) * 2)
    assert compiled.report().eager_calls == 1
    assert compiled.report().specialisations[0].calls == 3


def test_value_and_grad():
    net = small_net()
    step = foregrad.value_and_grad(lambda x, y: ((net(x) - y).square().mean(), net[0].weight * 1), modules=[net])
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(4, 1)
    before = copy.deepcopy(net.state_dict())
    (loss, other), gradients = step(x, y)
    net.load_state_dict(before)
    expected = (net(x) - y).square().mean()
    assert torch.equal(loss, expected) and not loss.requires_grad and not other.requires_grad
    wanted = torch.autograd.grad(expected, [x, *net.parameters()])
    assert len(gradients) == len(wanted) and all(torch.equal(a, b) for a, b in zip(gradients, wanted))
    assert all(p.grad is None for p in net.parameters())
    assert step.report().eager_calls == 0
    with pytest.raises(RuntimeError, match="returns no tensor"):
        foregrad.value_and_grad(lambda x: None)(x)
    with pytest.raises(RuntimeError, match="one number"):
        foregrad.value_and_grad(lambda x: x * 2)(x)


def test_explain_calls_nothing():
    net = Counting()
    text = foregrad.explain(net, torch.ones(2, requires_grad=True))
    for part in ("forward graph", "backward graph", "aten::mul.Tensor", "saved for backward", "guards"):
        assert part in text
    assert net.steps.item() == 0
    with pytest.raises(RuntimeError, match="depends on the data"):
        foregrad.explain(lambda x: x.item(), torch.ones(()))
