"""Parts of a tensor, and tensors joined: the gradient of a part is added to the one gradient of the whole."""

import numpy as np
import pytest

import cygrad as cg

N, ROW = 256, (4, 8)
BYTES = N * 4 * 8 * 8                               # of the whole tensor, in float64
SHARE = BYTES // 64                                 # the most that waiting parts have together, see Pass.runs_early()


def variable(shape=(N, *ROW), seed=0):
    return cg.tensor(np.random.default_rng(seed).normal(size=shape)).attach_grad()


def peak_of_backward(loss):
    """The bytes that a backward pass needs in addition to those before."""
    before = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    loss.backward()
    return cg.memory.stats()["peak_bytes"] - before


def rows_when_used(x): return (x[i] for i in range(N))
def rows_first(x): return [x[i] for i in range(N)]
def slices_first(x): return [x[i:i + 1] for i in range(N)]
def split_first(x): return cg.split(x, N)


PARTS = pytest.mark.parametrize("parts", [rows_when_used, rows_first, slices_first, split_first])


@PARTS
@pytest.mark.parametrize("leaf", [True, False], ids=["of a variable", "of a result"])
def test_parts_need_one_gradient_of_the_whole(parts, leaf):
    x = variable()
    with cg.record():
        loss = sum((part * (k + 1.0)).sum() for k, part in enumerate(parts(x if leaf else x * 2.0)))
    row = BYTES // N
    assert BYTES <= peak_of_backward(loss) <= BYTES + SHARE + 2 * row
    factors = np.arange(1, N + 1).reshape(N, 1, 1) * (1 if leaf else 2)
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(factors, x.shape))


@PARTS
def test_parts_of_a_captured_or_hooked_variable_are_added_in_place(parts):
    """autograd.grad and hooks wait for the whole sum, which is allocated once and not for each part."""
    for hooked in (False, True):
        x = variable()
        if hooked: x.register_hook(lambda g: None)
        with cg.record():
            loss = sum((part * (k + 1.0)).sum() for k, part in enumerate(parts(x)))
        with cg.memory.events() as log:
            grad = (loss.backward() or x.grad) if hooked else cg.autograd.grad(loss, x)
        assert len([n for kind, _, n, _ in log if kind == "allocate" and n == BYTES]) == 1
        np.testing.assert_array_equal(grad.numpy()[:, 0, 0], np.arange(1.0, N + 1))


def test_a_small_part_does_not_make_the_gradient_of_the_whole_early():
    """Its gradient is complete first, but an array for the whole would then be live during the rest of the pass."""
    table, x = variable((4096,)), variable((4096,))
    with cg.record():
        few = (table * 1.0)[:8]                     # recorded first, used last
        h = x
        for _ in range(4): h = cg.tanh(h * 2.0)
        y = cg.concat([h, few])
        loss = (y * y).sum()
    order = []
    few.register_hook(lambda g: order.append("few"))
    peaks = peak_of_backward(loss)
    with cg.record():
        h = x
        for _ in range(4): h = cg.tanh(h * 2.0)
        y = cg.concat([h, (table * 1.0)[:8]])       # recorded last, so it runs first anyway
        other = (y * y).sum()
    assert order == ["few"] and peaks <= peak_of_backward(other)


@PARTS
def test_second_derivatives_of_parts(parts):
    x = variable()
    with cg.record():
        loss = sum((part * part * part).sum() for part in parts(x))
        grad = cg.autograd.grad(loss, x, create_graph=True)
        again = (grad * grad).sum()
    again.backward()
    a = x.numpy()
    np.testing.assert_allclose(grad.numpy(), 3 * a * a, rtol=1e-13)
    np.testing.assert_allclose(x.grad.numpy(), 36 * a * a * a, rtol=1e-13)


@pytest.mark.parametrize("join", [cg.stack, cg.concat])
def test_joined_variables_get_views_of_one_gradient(join):
    """Only the gradient of the whole and the .grad of each variable are allocated."""
    xs = [variable(ROW, k) for k in range(N)]
    with cg.record(): loss = (join(xs) * 3.0).sum()
    assert peak_of_backward(loss) == 2 * BYTES
    for x in xs: np.testing.assert_array_equal(x.grad.numpy(), np.full(ROW, 3.0))


@pytest.mark.parametrize("join", [cg.stack, cg.concat])
def test_one_result_joined_many_times_is_summed_in_place(join):
    x = variable(ROW)
    with cg.record():
        h = x * 2.0
        loss = (join([h] * N) * 3.0).sum()
    assert peak_of_backward(loss) == BYTES + BYTES // N     # the gradient of the whole, and the sum
    np.testing.assert_array_equal(x.grad.numpy(), np.full(ROW, 6.0 * N))


@pytest.mark.parametrize("join", [cg.stack, cg.concat])
def test_second_derivatives_of_joined_tensors(join):
    xs = [variable(ROW, k) for k in range(9)]
    with cg.record():
        y = join(xs)
        grads = cg.autograd.grad((y * y * y).sum(), xs, create_graph=True)
        again = sum((g * g).sum() for g in grads)
    again.backward()
    for x in xs: np.testing.assert_allclose(x.grad.numpy(), 36 * x.numpy() ** 3, rtol=1e-13)


class Weighted(cg.autograd.Function):
    """The sum of (i + 1) times input i."""

    @staticmethod
    def forward(ctx, *xs):
        return sum(x * (i + 1.0) for i, x in enumerate(xs))

    @staticmethod
    def backward(ctx, g):
        return tuple(g * (i + 1.0) if needed else None for i, needed in enumerate(ctx.needs_input_grad))


@pytest.mark.parametrize("n", [5, 19, 39, 40, 41, 64, 65, 300])
def test_operations_of_many_inputs(n):
    """Variables, results, constants and a repeated variable, so neighbouring edges are of different kinds."""
    shared = variable((3,), n)
    given = [variable((3,), i) if i % 4 == 0 else shared if i % 4 == 1 else cg.ones(3, dtype="float64") * i
             for i in range(n)]
    inner = [i for i in range(n) if i % 4 == 2]
    below = variable((3,), n + 1)
    factor = np.arange(1.0, n + 1)
    for name in ("function", "concat")[n > 100:]:   # (at most 100 inputs for the Function)
        for x in (shared, below, *given):
            if x.grad is not None: x.zero_grad()
        with cg.record():
            xs = [below * 2.0 if i in inner else x for i, x in enumerate(given)]
            if name == "function": y = Weighted.apply(*xs).sum()
            else: y = (cg.concat(xs) * cg.tensor(np.repeat(factor, 3))).sum()
        y.backward()
        for i, x in enumerate(given):
            if i % 4 == 0: assert x.grad.tolist() == [factor[i]] * 3, (name, i)
            elif i % 4 > 1: assert x.grad is None
        assert shared.grad.tolist() == [factor[1::4].sum()] * 3
        assert below.grad.tolist() == [2 * factor[2::4].sum()] * 3


@pytest.mark.parametrize("n", [5, 40, 300])
def test_the_bytes_of_many_inputs(n):
    """Inputs whose gradients are not wanted take no memory."""
    xs = [variable((1000,), i) if i % 2 else cg.ones(1000, dtype="float64") for i in range(n)]
    for x in xs[1::2]: x.grad.fill_(0)              # (so that .grad has memory)
    with cg.record(): loss = cg.concat(xs).sum()
    assert peak_of_backward(loss) == 8              # all are views of one number
    assert all(x.grad.tolist() == [1.0] * 1000 for x in xs[1::2])
