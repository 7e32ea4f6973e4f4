import collections
import threading

import pytest
import torch

import foregrad
from eager import assert_as_eager, outcome_of, same

Pair = collections.namedtuple("Pair", "left right")


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def test_arguments_and_results_are_trees():
    def fn(pair, options, *more, scale=2):
        y = pair.left * options["weights"][0] + pair.right * scale
        return {"y": y, "rest": (Pair(y.sum(), None), [more[0].cos(), "text", 3, 2.5]), "shape": y.shape}

    args = lambda: (Pair(leaf(3), leaf(3)), {"weights": [leaf(3)]}, leaf(2))  # noqa: E731
    assert_as_eager(fn, args)
    compiled = foregrad.compile(fn, policy="refuse")
    x = leaf(3)
    assert same(compiled(Pair(x, x), {"weights": [x]}, x, scale=4), fn(Pair(x, x), {"weights": [x]}, x, scale=4))


def test_what_is_no_tensor_is_guarded_by_equality_and_kind():
    compiled = foregrad.compile(lambda x, k: x * k, policy="refuse")
    x = torch.ones(2, dtype=torch.int64)
    for k in (1, 1.0, True, 0.0, -0.0, 2, 1j, 1):
        expected, found = x * k, compiled(x, k)
        assert found.dtype == expected.dtype
        assert torch.equal(torch.view_as_real(found + 0j), torch.view_as_real(expected + 0j))
    inverse = foregrad.compile(lambda x, k: x / k, policy="refuse")
    assert inverse(x, -0.0)[0] == -float("inf")
    assert inverse(x, 0.0)[0] == float("inf")
    # Seven kinds of k: one compilation for each.
    assert len(compiled.report().specialisations) == 7
    assert len(compiled.report().recompiles) == 6


def test_an_argument_that_is_not_hashable_is_an_error():
    class Strange:
        __hash__ = None

    with pytest.raises(TypeError, match="neither a tensor nor hashable"):
        foregrad.compile(lambda x, k: x)(torch.ones(2), Strange())


def test_slices_are_guarded():
    compiled = foregrad.compile(lambda x, at: x[at], policy="refuse")
    x = torch.arange(6.0)
    assert torch.equal(compiled(x, slice(1, 3)), x[1:3])
    assert torch.equal(compiled(x, slice(1, 4)), x[1:4])


def test_structures_are_dropped_when_there_are_too_many():
    compiled = foregrad.compile(lambda x, k: x + k, policy="refuse", max_specialisations=2)
    x = torch.ones(2)
    for k in range(5):
        assert torch.equal(compiled(x, k), x + k)
    assert len(compiled.report().specialisations) == 2


def test_the_same_tensors_come_back():
    compiled = foregrad.compile(lambda x, y: (x, y.view(-1), x.add_(1)), policy="refuse")
    x, y = torch.ones(2), torch.ones(2, 2)
    for _ in range(2):
        same_x, view, written = compiled(x, y)
        assert same_x is x and written is x
        assert view._base is y


def test_an_exception_of_the_function_reaches_the_caller_as_it_is():
    class Mine(Exception):
        pass

    error = Mine("it")

    def fn(x):
        raise error

    for policy in ("eager", "refuse"):
        with pytest.raises(Mine) as caught:
            foregrad.compile(fn, policy=policy)(torch.ones(2))
        assert caught.value is error


def test_an_error_of_an_operator_is_of_torchs_own_type():
    with pytest.raises(RuntimeError, match="must match the size"):
        foregrad.compile(lambda x: x + torch.ones_like(x)[:2])(torch.ones(3))
    with pytest.raises(IndexError):
        foregrad.compile(lambda x: x.sum(7), policy="refuse")(torch.ones(3))
    with pytest.raises(ValueError, match="`policy`"):
        foregrad.compile(lambda x: x, policy="maybe")


def test_what_cannot_be_compiled_runs_eagerly_or_is_refused():
    def fn(x):
        return x * x.sum().item()

    compiled = assert_as_eager(fn, lambda: (leaf(3),), is_compiled=False)
    assert compiled.report().eager_calls == 3
    (reason,) = compiled.report().fallback_reasons
    assert "depends on the data" in reason and "\n" not in reason
    with pytest.raises(RuntimeError, match="depends on the data"):
        foregrad.compile(fn, policy="refuse")(leaf(3))
    assert not foregrad.compile(fn).warm_up(leaf(3))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + torch.tensor([1.0, 2.0, 3.0]),
        lambda x: x * torch.tensor(2.0),
        lambda x: x[[0, 2]],
        lambda x: x * float(x.detach().numpy().sum()),
        lambda x: x * sum(x.tolist()),
        lambda x: x * len(str(x)),
        lambda x: x + torch.from_numpy(__import__("numpy").ones(3, "f")),
    ],
)
def test_data_is_never_read_where_there_is_none(fn):
    assert_as_eager(fn, lambda: (leaf(3),), is_compiled=False)
    with pytest.raises(RuntimeError):
        foregrad.compile(fn, policy="refuse")(leaf(3))
    # What a trace leaves on the thread would be seen here.
    assert torch.empty(2).shape == (2,) and str(torch.ones(1)) == "tensor([1.])"


def test_a_generator_that_the_function_seeds_is_seeded_at_each_call():
    def fn(x):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            return x + torch.rand(3)

    assert_as_eager(fn, lambda: (leaf(3),), is_compiled=False)


def test_a_changed_container_is_refused():
    def fn(xs):
        xs.append(xs[0] * 2)
        return xs[1].sum()

    assert_as_eager(fn, lambda: ([leaf(3)],), is_compiled=False)


def test_a_result_that_is_no_tree_is_refused():
    class Box:
        def __init__(self, x):
            self.x = x

    compiled = foregrad.compile(lambda x: Box(x * 2))
    x = torch.ones(2)
    for _ in range(2):
        assert torch.equal(compiled(x).x, x * 2)
    assert compiled.report().eager_calls == 2


def test_subclasses_and_modes_run_eagerly():
    class Mine(torch.Tensor):
        pass

    compiled = foregrad.compile(lambda x: x * 2)
    assert type(compiled(torch.ones(2).as_subclass(Mine))) is Mine
    with torch.device("meta"):
        assert compiled(torch.ones(2)).is_meta
    assert torch.equal(torch.vmap(compiled)(torch.ones(2)), torch.full((2,), 2.0))
    assert compiled.report().eager_calls == 3
    with pytest.raises(RuntimeError, match="subclass"):
        foregrad.compile(lambda x: x, policy="refuse")(torch.ones(2).as_subclass(Mine))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * grad  # not what autograd would give


@pytest.mark.parametrize(
    "fn",
    [
        Square.apply,
        lambda x: torch.vmap(lambda y: y * 2 + 1)(x),
        lambda x: torch.func.grad(lambda y: (y**3).sum())(x),
        lambda x: torch.utils.checkpoint.checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False),
        lambda x: torch.autograd.grad((x**3).sum(), x, create_graph=True)[0],
        lambda x: torch.nn.functional.dropout(x, 0.5),
        lambda x: x * torch.no_grad()(lambda: x * 2)(),
        lambda x: sum(row * i for i, row in enumerate(x)),
    ],
)
def test_what_python_code_of_torchs_does_is_compiled(fn):
    assert_as_eager(fn, lambda: (leaf(3),))


def test_options_are_checked():
    with pytest.raises(ValueError, match="backward_autocast"):
        foregrad.compile(lambda x: x, backward_autocast="sometimes")
    compiled = foregrad.compile(lambda x: x @ x, policy="refuse", backward_autocast=torch.bfloat16)
    x = leaf(4, 4)
    gradient = torch.autograd.grad(compiled(x).sum(), x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = torch.autograd.grad((x @ x).float().sum(), x)[0]
    assert gradient.dtype == expected.dtype == torch.float32


def test_invalidate_drops_what_was_compiled():
    factor = 2
    compiled = foregrad.compile(lambda x: x * factor)
    x = torch.ones(2)
    assert compiled(x)[0] == 2
    factor = 3
    compiled.invalidate()
    assert not compiled.report().specialisations
    assert compiled(x)[0] == 3


def test_the_signature_is_the_functions():
    import inspect

    def fn(x, *, scale: float = 2.0):
        """Scales."""
        return x * scale

    compiled = foregrad.compile(fn)
    assert inspect.signature(compiled) == inspect.signature(fn)
    assert compiled.__doc__ == "Scales." and compiled.__name__ == "fn"


def test_threads_share_what_is_compiled():
    compiled = foregrad.compile(lambda x, k: (x * k).sin().sum(), policy="refuse")
    failures = []

    def work(seed):
        for k in range(20):
            x = torch.full((50,), float(seed + 1), requires_grad=True)
            compiled(x, k % 3).backward()
            y = x.detach().clone().requires_grad_()
            (y * (k % 3)).sin().sum().backward()
            if not torch.equal(x.grad, y.grad):
                failures.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    # Two threads may compile the same at once.
    assert 3 <= len(compiled.report().specialisations) <= 12


def test_the_lock_of_the_interpreter_is_free_while_a_graph_runs():
    compiled = foregrad.compile(lambda x: x @ x @ x @ x, policy="refuse")
    x = torch.randn(1500, 1500)
    compiled(x)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        compiled(x)
        during = counted[0] - before
    finally:
        stop.set()
        thread.join()
    # A thread that waits for the lock is let in every 5 ms by Python code, never by C++ that holds it.
    assert during > 1000


def test_outcomes_can_fail():
    assert not same(outcome_of(lambda x: x * 2, lambda: (leaf(3),)), outcome_of(lambda x: x * 3, lambda: (leaf(3),)))
