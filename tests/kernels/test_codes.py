"""Packed codes of one or two bits per element, which abs, maximum, minimum, clip, where and relu_gradient save.
Gradients are compared with NumPy's at sizes around a word, a strip and a block, with one thread and two."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 63, 64, 65, 511, 512, 513, 2047, 2048, 2049, 8191, 8192, 8193, 70_003)
DTYPES = ("float32", "float64")
NUMBERS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e-300, -1e-300, -0.5, 0.5])


def numbers(n, dtype, seed):
    """Numbers of which many are equal, zero, infinite or NaN."""
    return np.random.default_rng(seed).choice(NUMBERS, n).astype(dtype)


def abs_like(x, g):
    return [np.where(x > 0, g, np.where(x < 0, -g, 0))]


def maximum_like(x, y, g):
    return [np.where(a < b, 0, np.where(a == b, g / 2, g)) for a, b in ((x, y), (y, x))]


def minimum_like(x, y, g):
    return [np.where(a > b, 0, np.where(a == b, g / 2, g)) for a, b in ((x, y), (y, x))]


def clip_like(x, y, z, g):
    return [np.where(chosen, g, 0) for chosen in ((x >= y) & (x <= z), (x < y) & (y < z), (x > z) | (z < y))]


# By operator: the number of inputs, its gradients in NumPy, and the bits saved per element if all gradients are wanted.
OPERATORS = {"abs": (1, abs_like, 2), "maximum": (2, maximum_like, 2), "minimum": (2, minimum_like, 2),
             "clip": (3, clip_like, 2)}

every_operator = pytest.mark.parametrize("name", OPERATORS)
both_dtypes = pytest.mark.parametrize("dtype", DTYPES)


def bytes_of(n, bits):
    return (n * bits + 7) // 8


def same(found, wanted):
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted, equal_nan=True)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = cg.get_num_threads()
    cg.set_num_threads(request.param)
    yield
    cg.set_num_threads(before)


def pattern(n):
    return [[i for i in range(n) if (mask >> i) & 1] for mask in range(1, 1 << n)]


@every_operator
@both_dtypes
def test_gradients_and_bytes_at_every_size(name, dtype):
    count, like, bits = OPERATORS[name]
    for n in SIZES:
        arrays = [numbers(n, dtype, i) for i in range(count)]
        g = numbers(n, dtype, 9)
        wanted = like(*arrays, g)
        for chosen in pattern(count):
            leaves = [cg.tensor(a) for a in arrays]
            for i in chosen:
                leaves[i].attach_grad()
            with cg.record():
                xs = [x * 1.0 if i in chosen else x for i, x in enumerate(leaves)]
                with cg.record() as tape:
                    y = getattr(cg, name)(*xs)
                del xs
            assert tape.saved_bytes == bytes_of(n, 1 if name == "clip" and len(chosen) == 1 else bits)
            y.backward(cg.tensor(g))
            for i in chosen:
                same(leaves[i].grad.numpy(), wanted[i].astype(dtype))


@every_operator
@both_dtypes
def test_threads_strides_and_broadcasting(name, dtype, threads):
    count, like, _ = OPERATORS[name]
    shapes = [(3, 30_001), (30_001,), (3, 1)][:count]
    arrays = [numbers(np.prod(shape), dtype, i).reshape(shape) for i, shape in enumerate(shapes)]
    g = numbers(3 * 30_001, dtype, 9).reshape(3, 30_001)
    g[~np.isfinite(g)] = 3.0                        # sums over broadcast axes are compared below
    whole = like(*[np.broadcast_to(a, g.shape) for a in arrays], g)
    for strided in (False, True):
        leaves = [cg.asarray(a.T.copy().T if strided and a.ndim > 1 else a).attach_grad() for a in arrays]
        with cg.record():
            y = getattr(cg, name)(*leaves)
        y.backward(cg.asarray(np.repeat(g, 2, 1)[:, ::2]) if strided else cg.tensor(g))
        for leaf, dx in zip(leaves, whole, strict=True):
            axes = tuple(d for d in range(2) if d < 2 - leaf.ndim or leaf.shape[d - 2 + leaf.ndim] == 1)
            np.testing.assert_allclose(leaf.grad.numpy(), dx.sum(axes).reshape(leaf.shape), rtol=1e-5)


def test_results_larger_than_the_cache(threads):
    n = (1 << 22) + 777                             # beyond 16 MiB of float32, which are streamed
    a = np.tile(numbers(65_521, "float32", 0), n // 65_521 + 1)[:n]
    x = cg.tensor(a).attach_grad()
    with cg.record() as tape:
        y = cg.abs(x)
    assert tape.saved_bytes == bytes_of(n, 2)
    np.testing.assert_array_equal(y.detach().numpy(), np.abs(a))
    y.backward()
    same(x.grad.numpy(), np.where(a > 0, np.float32(1), np.where(a < 0, np.float32(-1), np.float32(0))))


@both_dtypes
def test_where_keeps_a_bit_of_each_condition(dtype):
    for n in SIZES:
        c, a, b, g = numbers(n, dtype, 0) > 0, *[numbers(n, dtype, i) for i in (1, 2, 3)]
        x, y = cg.tensor(a).attach_grad(), cg.tensor(b).attach_grad()
        condition = cg.tensor(c)
        with cg.record() as tape:
            z = cg.where(condition, x, y)
        assert tape.saved_bytes == bytes_of(n, 1)
        condition[...] = False                      # has no effect: the operation has saved its own bits
        z.backward(cg.tensor(g))
        same(x.grad.numpy(), np.where(c, g, 0).astype(dtype))
        same(y.grad.numpy(), np.where(c, 0, g).astype(dtype))


def test_where_keeps_a_condition_that_is_broadcast():
    """One mask for many calls is saved once."""
    mask = cg.tensor(np.tri(8, dtype=bool))
    x = cg.tensor(np.arange(128.0).reshape(2, 8, 8)).attach_grad()
    with cg.record() as tape:
        y = cg.where(mask, x, 0.0)
        for _ in range(20):
            y = cg.where(mask, y, 0.0)
    assert tape.saved_bytes == 64
    (dx,) = cg.autograd.grad(y, [x], retain_graph=True, create_graph=True)
    assert np.array_equal(dx.detach().numpy(), np.broadcast_to(np.tri(8), x.shape))
    y.backward(retain_graph=True)
    assert np.array_equal(x.grad.numpy(), dx.detach().numpy())
    mask[0, 0] = False
    with pytest.raises(cg.InplaceError, match="where saved a tensor of shape .8, 8. for backward at version 0"):
        y.backward()


def test_what_is_kept_is_its_own():
    """A write to an input after forward changes no gradient and raises no error."""
    a = np.array([-2.0, 0.0, 3.0])
    leaf = cg.tensor(a).attach_grad()
    with cg.record():
        x = leaf * 1.0
        y = cg.abs(x) + cg.maximum(x, 0.0) + cg.clip(x, -1, 5)
        x += 10.0
    y.backward()
    assert leaf.grad.tolist() == [-1 + 0 + 0, 0 + 0.5 + 1, 1 + 1 + 1]


def test_the_inputs_die():
    """Between forward and backward, the result and its bits are live, but no input."""
    leaves = [cg.tensor(numbers(10_000, "float32", i)).attach_grad() for i in range(2)]
    before = cg.memory.stats()["live_bytes"]
    with cg.record():
        y = cg.maximum(cg.abs(leaves[0] * 1.0), leaves[1] * 1.0)
    assert cg.memory.stats()["live_bytes"] - before == y.nbytes + 2 * 2500
    y.backward()


def test_only_some_gradients_are_asked_for():
    """The recording decides what is saved, whichever gradients a pass requests."""
    arrays = [numbers(100, "float64", i) for i in range(3)]
    leaves = [cg.tensor(a).attach_grad() for a in arrays]
    with cg.record():
        y = cg.clip(*leaves)
    for i, dx in enumerate(clip_like(*arrays, np.ones(100))):
        same(cg.autograd.grad(y, [leaves[i]], retain_graph=True)[0].numpy(), dx)
        same(cg.autograd.grad(y, [leaves[i]], retain_graph=True, create_graph=True)[0].detach().numpy(), dx)


def test_relu_gradient_keeps_bits_for_one_input_alone():
    f = cg.ops.ROWS["relu_gradient"].function
    g, y = cg.ones(100), cg.tensor(numbers(100, "float32", 0)).attach_grad()
    with cg.record() as tape:
        z = f(g, y)
    assert tape.saved_bytes == 0
    z.backward()
    assert not y.grad.numpy().any()


@every_operator
def test_every_order(name):
    """Higher derivatives are zeros that depend on the inputs."""
    count, like, _ = OPERATORS[name]
    arrays = [numbers(50, "float64", i) for i in range(count)]
    leaves = [cg.tensor(a).attach_grad() for a in arrays]
    w = cg.tensor(np.linspace(1, 2, 50)).attach_grad()
    with cg.record():
        y = (getattr(cg, name)(*[x * 1.0 for x in leaves]) * w).sum()
    first = cg.autograd.grad(y, leaves, create_graph=True)
    for dx, wanted in zip(first, like(*arrays, np.linspace(1, 2, 50)), strict=True):
        same(dx.detach().numpy(), wanted)
    with cg.record():
        total = sum(((dx * dx).sum() for dx in first), cg.tensor(0.0, "float64"))
    *second, dw = cg.autograd.grad(total, [*leaves, w], create_graph=True)
    slopes = like(*arrays, np.ones(50))
    np.testing.assert_allclose(dw.detach().numpy(), sum(2 * s * s for s in slopes) * np.linspace(1, 2, 50))
    for d2 in second:
        assert not d2.detach().numpy().any()
    with cg.record():
        again = dw.sum() + sum((d2.sum() for d2 in second), cg.tensor(0.0, "float64"))
    *third, _ = cg.autograd.grad(again, [*leaves, w])
    for d3 in third:
        assert not d3.numpy().any()


@every_operator
@pytest.mark.parametrize("unpack", [
    lambda kept: cg.tensor(kept),
    lambda kept: cg.asarray(np.repeat(kept, 3)[::3]),
    lambda kept: cg.asarray(kept[::-1].copy()[::-1]),
])
@pytest.mark.parametrize("graph", [False, True])
def test_saved_tensors_hooks(name, unpack, graph):
    """What unpack returns may have strides of its own."""
    count, like, _ = OPERATORS[name]
    arrays = [numbers(77, "float32", i) for i in range(count)]
    leaves = [cg.tensor(a).attach_grad() for a in arrays]
    with cg.autograd.saved_tensors_hooks(lambda t: t.numpy().copy(), unpack), cg.record():
        y = getattr(cg, name)(*leaves)
    found = cg.autograd.grad(y, leaves, create_graph=graph)
    for dx, wanted in zip(found, like(*arrays, np.ones(77, "float32")), strict=True):
        same(dx.detach().numpy(), wanted.astype("float32"))


@pytest.mark.parametrize("graph", [False, True])
def test_hooks_of_max_may_give_strides_too(graph):
    x = cg.tensor(np.arange(40.0).reshape(2, 20)).attach_grad()
    with cg.autograd.saved_tensors_hooks(lambda t: t.numpy().copy(),
                                         lambda kept: cg.asarray(np.repeat(kept, 2)[::2])), cg.record():
        y = x.max(1)
    (dx,) = cg.autograd.grad(y, [x], create_graph=graph)
    assert np.flatnonzero(dx.detach().numpy()).tolist() == [19, 39]


def test_nothing_is_made_without_recording():
    x = cg.tensor(numbers(10_000, "float32", 0)).attach_grad()
    for f in (cg.abs, lambda x: cg.maximum(x, 0.0), lambda x: cg.clip(x, -1, 1), lambda x: cg.where(x > 0, x, 0.0)):
        cg.memory.reset_peak()
        before = cg.memory.stats()["live_bytes"]
        y = f(x)
        assert cg.memory.stats()["peak_bytes"] - before <= y.nbytes + 10_000
        del y
        program = Program(f, x)
        program.run(x)                              # (which takes the arena)
        with cg.memory.events() as log:
            program.run(x)
        assert log == []


def test_memory_fails_at_each_allocation():
    """Without memory for the codes the call fails before anything has changed."""
    x = cg.tensor(numbers(1000, "float32", 0)).attach_grad()
    before = cg.memory.stats()["live_bytes"]
    for n in (1, 2):
        with cg.record(), cg.testing.fail_allocation(n), pytest.raises(MemoryError):
            cg.abs(x)
        assert cg.memory.stats()["live_bytes"] == before
