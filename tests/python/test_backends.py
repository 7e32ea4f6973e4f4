import copy

import pytest
import torch

import foregrad


def fn(x, w):
    h = (x @ w).relu()
    parts = torch.split(h, 2, dim=1)
    values, places = parts[0].max(dim=1)
    return (values * 2.0).sum() + parts[1].pow(2).sum(), places


def arguments():
    torch.manual_seed(0)
    return torch.randn(3, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)


class Recording:
    def __init__(self):
        self.graphs, self.examples, self.calls = [], [], 0

    def __call__(self, graph, examples):
        self.graphs.append(graph)
        self.examples.append(examples)

        def run(*inputs):
            self.calls += 1
            assert len(inputs) == len(examples)
            for mine, example in zip(inputs, examples):
                assert mine.shape == example.shape and mine.dtype == example.dtype
                assert mine.stride() == example.stride()
            return graph(*inputs)

        return run


def test_compilers_in_python_get_graph_modules():
    forward, backward, inference = Recording(), Recording(), Recording()
    compiled = foregrad.aot_function(fn, forward, backward, inference, policy="refuse")
    for _ in range(3):
        x, w = arguments()
        loss, places = compiled(x, w)
        expected, expected_places = fn(*arguments())
        assert torch.equal(loss, expected) and torch.equal(places, expected_places)
        other = arguments()
        gradients = torch.autograd.grad(loss, [x, w])
        wanted = torch.autograd.grad(fn(*other)[0], other)
        assert all(torch.equal(a, b) for a, b in zip(gradients, wanted))
    assert (forward.calls, backward.calls, inference.calls) == (3, 3, 0)
    with torch.no_grad():
        assert torch.equal(compiled(*arguments())[0], fn(*arguments())[0])
    assert inference.calls == 1
    (graph,) = forward.graphs
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert torch.ops.aten.mm.default in targets and torch.ops.aten.relu.default in targets
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    assert [node.meta["role"] for node in placeholders] == ["user(0)", "user(1)"]
    roles = next(node for node in graph.graph.nodes if node.op == "output").meta["roles"]
    assert roles[0] == "output(0)" and any(role.startswith("saved") for role in roles)
    graph.graph.lint()


def test_one_compiler_is_enough():
    compiler = Recording()
    compiled = foregrad.aot_function(lambda x: x.sin() * 2, compiler, policy="refuse")
    x = torch.ones(3, requires_grad=True)
    compiled(x).sum().backward()
    assert torch.equal(x.grad, 2 * torch.cos(torch.ones(3)))
    assert compiler.calls == 2


def test_the_partition_may_be_chosen():
    def save_inputs(joint):
        return [n for n in joint.graph.nodes if n.op == "placeholder" and not n.meta["role"].startswith("tangent")]

    plain = foregrad.aot_function(lambda x: x.exp().sin(), Recording(), policy="refuse")
    thrifty = foregrad.aot_function(lambda x: x.exp().sin(), Recording(), partition_fn=save_inputs, policy="refuse")
    x = torch.randn(4, requires_grad=True)
    gradients = [torch.autograd.grad(call(x).sum(), x)[0] for call in (plain, thrifty)]
    assert torch.equal(*gradients)
    assert "aten::exp" not in plain.report().specialisations[0].backward_graph
    assert "aten::exp" in thrifty.report().specialisations[0].backward_graph
    by_name = foregrad.aot_function(lambda x: x.exp(), Recording(), partition_fn=lambda joint: ["v0"], policy="refuse")
    assert torch.equal(torch.autograd.grad(by_name(x).sum(), x)[0], x.exp())
    wrong = foregrad.aot_function(lambda x: x.exp(), Recording(), partition_fn=lambda joint: [99], policy="refuse")
    with pytest.raises(RuntimeError, match="partitioner saves"):
        wrong(x)


def test_errors_of_compilers_and_of_what_they_make_are_theirs():
    class Mine(Exception):
        pass

    def refuses(graph, examples):
        raise Mine("compiler")

    def breaks(graph, examples):
        def run(*inputs):
            raise Mine("executable")

        return run

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(Mine, match="compiler"):
        foregrad.aot_function(lambda x: x * 2, refuses, policy="refuse")(x)
    with pytest.raises(Mine, match="executable"):
        foregrad.aot_function(lambda x: x * 2, breaks, policy="refuse")(x)
    in_backward = foregrad.aot_function(lambda x: x * 2, Recording(), breaks, policy="refuse")
    with pytest.raises(Mine, match="executable"):
        in_backward(x).sum().backward()
    wrong = foregrad.aot_function(lambda x: x * 2, lambda graph, examples: lambda *inputs: (), policy="refuse")
    with pytest.raises(RuntimeError, match="gives 0 tensors"):
        wrong(x)


def test_constants_lists_and_dtypes_survive():
    def many(x):
        threes = torch.full_like(x, 3, dtype=torch.int32) * 1
        return torch.cat([x, x * 2.5]).to(torch.float64), threes, x.index_select(0, torch.arange(2))

    compiled = foregrad.aot_function(many, Recording(), policy="refuse")
    x = torch.randn(3, 2)
    for mine, expected in zip(compiled(x), many(x)):
        assert mine.dtype == expected.dtype and torch.equal(mine, expected)


def test_boxed_callables_get_a_list():
    def compiler(graph, examples):
        def run(inputs):
            assert isinstance(inputs, list)
            outputs = graph(*inputs)
            inputs.clear()
            return outputs

        run._boxed_call = True
        return run

    assert torch.equal(foregrad.aot_function(lambda x: x * 2, compiler)(torch.ones(2)), torch.full((2,), 2.0))


def test_torch_compile_knows_the_backend():
    assert "foregrad" in torch.compiler.list_backends()
    eager = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    net = copy.deepcopy(eager)
    compiled = torch.compile(net, backend="foregrad", options={"policy": "refuse"})
    for size in (5, 6, 7):
        x = torch.randn(size, 3)
        compiled(x).sum().backward()
        eager(x).sum().backward()
        assert torch.equal(compiled(x), eager(x))
    for mine, expected in zip(net.parameters(), eager.parameters()):
        assert torch.equal(mine.grad, expected.grad)
