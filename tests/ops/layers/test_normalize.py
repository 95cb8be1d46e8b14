"""Normalization beyond the samples of the table: axes, running statistics, modes, patterns of gradients."""

import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak, gradcheck

RNG = np.random.default_rng(0)


# ---- rows ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("axes", [0, 1, -1, (1, 2), (0, 2), (2, 0), (0, 1, 2)])
def test_layer_norm_over_any_axes(axes):
    x = RNG.normal(size=(3, 4, 5))
    given = tuple(sorted(a % 3 for a in (axes if isinstance(axes, tuple) else (axes,))))
    shape = tuple(x.shape[a] for a in given)
    w, b = RNG.normal(size=(2, *shape))
    z = x - x.mean(given, keepdims=True)
    z = z / np.sqrt((z ** 2).mean(given, keepdims=True) + 1e-5)
    wide = [n if d in given else 1 for d, n in enumerate(x.shape)]
    np.testing.assert_allclose(cg.layer_norm(x, axes=axes).numpy(), z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cg.layer_norm(x, w, b, axes=axes).numpy(), z * w.reshape(wide) + b.reshape(wide),
                               rtol=1e-12, atol=1e-12)
    assert gradcheck(lambda x, w, b: cg.layer_norm(x, w, b, axes=axes), cg.tensor(x), cg.tensor(w), cg.tensor(b))
    assert gradcheck(lambda x: cg.rms_norm(x, axes=axes), cg.tensor(x))


def test_a_bias_without_a_weight():
    x, b = RNG.normal(size=(2, 3, 4)), RNG.normal(size=4)
    ones = np.ones(4)
    assert np.array_equal(cg.layer_norm(x, bias=b).numpy(), cg.layer_norm(x, ones, b).numpy())
    b = RNG.normal(size=3)
    ones = np.ones(3)
    assert np.array_equal(cg.group_norm(x, 3, bias=b).numpy(), cg.group_norm(x, 3, ones, b).numpy())
    assert np.array_equal(cg.instance_norm(x, bias=b).numpy(), cg.instance_norm(x, ones, b).numpy())
    assert np.array_equal(cg.batch_norm(x, bias=b, training=True).numpy(),
                          cg.batch_norm(x, None, None, ones, b, training=True).numpy())
    x = x.astype("float32")                         # the dtype stays
    assert cg.group_norm(x, 1, bias=b.astype("float32")).dtype == np.float32


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 129, 4095, 4097, 4200])
@pytest.mark.parametrize("dtype, atol", [("float32", 5e-6), ("float64", 1e-13)])
def test_sizes_around_lanes_and_blocks(n, dtype, atol):
    """Rows without a weight, and channels, have gradients that do not depend on how their sums are cut."""
    x = RNG.normal(size=(3, 2, n)).astype(dtype)
    g = cg.tensor(RNG.normal(size=x.shape).astype(dtype))
    for f, axes in ((lambda x: cg.layer_norm(x, eps=0.1), (2,)), (lambda x: cg.group_norm(x, 2, eps=0.1), (2,)),
                    (lambda x: cg.batch_norm(x, training=True, eps=0.1), (0, 2))):
        v = cg.tensor(x).attach_grad()
        with cg.record():
            y = f(v)
        y.backward(g)
        wide, h = x.astype("float64"), g.numpy().astype("float64")
        z = wide - wide.mean(axes, keepdims=True)
        rate = 1 / np.sqrt((z ** 2).mean(axes, keepdims=True) + 0.1)
        z = z * rate
        np.testing.assert_allclose(y.numpy(), z, atol=atol)
        np.testing.assert_allclose(v.grad.numpy(), rate * (h - h.mean(axes, keepdims=True) - z * (h * z).mean(
            axes, keepdims=True)), atol=atol)


@pytest.mark.parametrize("n", [63, 64, 65, 100, 127, 128])
def test_gradients_of_narrow_rows_are_pytorchs(n):
    """Rows from 64 elements on are added in 64 lanes. With a weight and a bias, and a NaN in one row."""
    torch = pytest.importorskip("torch")
    arrays = [RNG.normal(size=s) for s in ((40, n), (n,), (n,))]
    arrays[0][3, n // 2] = np.nan
    g = RNG.normal(size=(40, n))
    theirs = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    wanted = torch.nn.functional.layer_norm(theirs[0], (n,), *theirs[1:])
    wanted.backward(torch.from_numpy(g))
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-13)):
        ours = [cg.tensor(a.astype(dtype)).attach_grad() for a in arrays]
        with cg.record(): y = cg.layer_norm(*ours)
        y.backward(cg.tensor(g.astype(dtype)))
        np.testing.assert_allclose(y.detach().numpy(), wanted.detach().numpy(), tolerance, 10 * tolerance)
        for v, t in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(v.grad.numpy(), t.grad.numpy(), tolerance, 10 * tolerance)


# ---- channels --------------------------------------------------------------------------------------------------------

def calls():
    def stats():
        return cg.tensor([0.1, -0.3, 0.2, 0.5]), cg.tensor([1.0, 0.5, 2.0, 1.5])

    yield "group_norm", lambda x, w, b: cg.group_norm(x, 2, w, b)
    yield "instance_norm", cg.instance_norm
    yield "batch_norm", lambda x, w, b: cg.batch_norm(x, None, None, w, b, training=True)
    yield "batch_norm in predict mode", lambda x, w, b: cg.batch_norm(x, *stats(), w, b, training=False)


@pytest.mark.parametrize("name, f, shape", [         # (instance_norm takes more than one element for each channel)
    (name, f, shape) for name, f in calls() for shape in [(3, 4, 5), (6, 4), (2, 4, 2, 3)]
    if (name, shape) != ("instance_norm", (6, 4))])
def test_each_gradient_is_the_same_alone(name, f, shape):
    """Kernels skip what no wanted gradient needs."""
    arrays = RNG.normal(size=shape), RNG.normal(size=4), RNG.normal(size=4)
    head = cg.tensor(RNG.normal(size=shape))
    found = {}
    for pattern in itertools.product([False, True], repeat=3):
        xs = [cg.tensor(a, requires_grad=wanted) for a, wanted in zip(arrays, pattern, strict=True)]
        if not any(pattern): continue
        with cg.record() as tape:
            y = f(*xs)
        if pattern == (False, False, True): assert tape.saved_bytes == 0
        y.backward(head)
        for i, x in enumerate(xs):
            if pattern[i]: found.setdefault(i, []).append(x.grad.numpy())
    for same in found.values():
        assert len(same) == 4
        for g in same: np.testing.assert_allclose(g, same[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(8, 3, 5), (9, 3), (4, 3, 2, 2)], ids=str)
def test_running_statistics_move_towards_those_of_the_batch(shape, dtype):
    torch = pytest.importorskip("torch")
    mean, var = cg.zeros(3), cg.ones(3, dtype="float64")
    their_mean, their_var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    before = cg.memory.stats()["live_bytes"]
    for momentum in (0.1, 0.5, 1.0, 0.0):
        x = (RNG.normal(size=shape) * 2 + 1).astype(dtype)
        with cg.train_mode():
            cg.batch_norm(x, mean, var, momentum=momentum)
        torch.nn.functional.batch_norm(torch.tensor(x, dtype=torch.float64), their_mean, their_var, training=True,
                                       momentum=momentum)
    assert (mean.version, var.version) == (4, 4)
    assert cg.memory.stats()["live_bytes"] == before
    np.testing.assert_allclose(mean.numpy(), their_mean.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var.numpy(), their_var.numpy(), rtol=1e-5, atol=1e-6)


def test_the_mode_of_the_thread_decides():
    x = cg.tensor(RNG.normal(size=(6, 2)))
    mean, var = cg.tensor([3.0, 4.0], dtype="float64"), cg.tensor([4.0, 9.0], dtype="float64")
    y = cg.batch_norm(x, mean, var, eps=0.0)        # predict mode
    np.testing.assert_allclose(y.numpy(), (x.numpy() - [3, 4]) / [2, 3], rtol=1e-13)
    assert mean.version == var.version == 0
    with cg.train_mode():
        y = cg.batch_norm(x, mean, var, eps=0.0)
    np.testing.assert_allclose(y.numpy(), (x.numpy() - x.numpy().mean(0)) / x.numpy().std(0), rtol=1e-12)
    assert mean.version == var.version == 1
    with cg.train_mode():
        cg.batch_norm(x, mean, var, training=False)
    assert mean.version == 1
    with cg.record(train_mode=True):
        y = cg.batch_norm(x.requires_grad_(), mean, var)
    with pytest.raises(RuntimeError, match="recorded in train mode"):
        y.backward(cg.ones(y.shape, dtype="float64"), train_mode=False)


def test_strided_and_shared_statistics_are_written():
    both = cg.zeros((3, 2), dtype="float64")
    x = RNG.normal(size=(8, 3))
    cg.batch_norm(x, both[:, 0], both[:, 1], training=True, momentum=1.0)
    np.testing.assert_allclose(both.numpy(), np.stack([x.mean(0), x.var(0, ddof=1)], 1), rtol=1e-12)
    assert both.version == 2


def test_a_later_train_step_does_not_disturb_a_recorded_prediction():
    """Backward keeps copies of the statistics."""
    x = cg.tensor(RNG.normal(size=(6, 2))).attach_grad()
    mean, var = cg.tensor([3.0, 4.0], dtype="float64"), cg.tensor([4.0, 16.0], dtype="float64")
    with cg.record():
        y = cg.batch_norm(x, mean, var, training=False, eps=0.0)
    cg.batch_norm(x.detach(), mean, var, training=True)
    y.backward(cg.ones(y.shape, dtype="float64"))
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to([0.5, 0.25], (6, 2)), rtol=1e-13)


@pytest.mark.parametrize("how", ["memory", "weight", "dtype", "readonly", "variable"])
def test_nothing_changes_if_batch_norm_fails(how):
    x, mean, var = cg.tensor(RNG.normal(size=(64, 64, 8))), cg.zeros(64), cg.ones(64)
    weight = cg.ones(63 if how == "weight" else 64)
    if how == "dtype": var = cg.ones(64, dtype="int64")
    if how == "readonly":
        fixed = np.ones(64)
        fixed.flags.writeable = False
        var = cg.asarray(fixed)
    if how == "variable": var = cg.ones(64).attach_grad()
    with assert_no_leak(), pytest.raises((MemoryError, ValueError, TypeError)):
        if how == "memory":
            with cg.memory.limit(cg.memory.stats()["live_bytes"] + 65536):
                cg.batch_norm(x, mean, var, weight, training=True)
        else:
            with cg.record(train_mode=True):
                cg.batch_norm(x, mean, var, weight)
    assert mean.version == 0 and not mean.numpy().any()
    assert (var.numpy() == 1).all()


def test_second_order_through_the_batch():
    x, w, b = (cg.tensor(RNG.normal(size=s)) for s in ((4, 3, 2), 3, 3))
    for f in (lambda x, w, b: cg.batch_norm(x, None, None, w, b, training=True),
              lambda x, w, b: cg.group_norm(x, 3, w, b)):
        assert gradcheck(f, x, w, b, order=2, rtol=1e-4)


@pytest.mark.parametrize("f", [lambda x: cg.batch_norm(x, training=True), lambda x: cg.group_norm(x, 8),
                               lambda x: cg.layer_norm(x)], ids=["batch_norm", "group_norm", "layer_norm"])
def test_the_bits_do_not_depend_on_the_number_of_threads(f):
    threads = cg.get_num_threads()
    found = []
    for shape in ((16, 32, 400), (512, 640)):
        a, g = (np.random.default_rng(1).normal(size=(2, *shape))).astype("float32")
        found.append([])
        for n in (1, 2, 3):
            cg.set_num_threads(n)
            try:
                x = cg.tensor(a).attach_grad()
                with cg.record():
                    y = f(x)
                y.backward(cg.tensor(g))
            finally:
                cg.set_num_threads(threads)
            found[-1].append(y.numpy().tobytes() + x.grad.numpy().tobytes())
    assert all(len({*results}) == 1 for results in found)


@pytest.mark.parametrize("shape", [(5, 3, 7), (500, 3)], ids=str)
def test_equal_numbers_far_from_zero_have_their_bias(shape):
    x = cg.full(shape, 1e8)
    for y in (cg.batch_norm(x, training=True, bias=cg.full(3, 2.0)), cg.group_norm(x, 1, bias=cg.full(3, 2.0))):
        assert (y.numpy() == 2).all()


def aliased(how):
    """x, running_mean, running_var, weight and bias, of which two share memory."""
    x, mean, var = cg.tensor(RNG.normal(size=(2, 3, 4))), cg.zeros(3, dtype="float64"), cg.ones(3, dtype="float64")
    weight, bias, b = cg.ones(3, dtype="float64"), cg.zeros(3, dtype="float64"), cg.ones(5, dtype="float64")
    if how == "statistics": return x, mean, mean, weight, bias
    if how == "slices": return x, b[:3], b[2:], weight, bias
    if how == "reversed": return x, b[:3], b[4:1:-1], weight, bias
    if how == "x": return x, x[0, :, 0], var, weight, bias
    if how == "weight": return x, mean, weight, weight, bias
    if how == "bias": return x, bias, var, weight, bias
    a = np.ones(5)
    return x, mean, cg.asarray(a[:3]), a[2:], bias          # "array": through NumPy


@pytest.mark.parametrize("how, other", [
    ("statistics", "running_var shares memory with running_mean"), ("slices", "running_var shares memory with running"),
    ("reversed", "running_var shares memory with running_mean"), ("x", "running_mean shares memory with x"),
    ("weight", "running_var shares memory with weight"), ("bias", "running_mean shares memory with bias"),
    ("array", "running_var shares memory with weight")])
def test_statistics_that_share_memory_are_refused(how, other):
    args = aliased(how)
    before = [np.array(a) for a in args]
    with assert_no_leak(), pytest.raises(ValueError, match=f"batch_norm: {other}"):
        cg.batch_norm(*args, training=True)
    for a, b in zip(args, before, strict=True): assert np.array_equal(np.array(a), b)
    assert cg.batch_norm(*args, training=False).shape == (2, 3, 4)         # nothing is written


def test_disjoint_parts_of_one_array_are_statistics():
    a = np.ones((5, 3))
    parts = [cg.asarray(part) for part in a]
    x = cg.tensor(RNG.normal(size=(8, 3)))
    y = cg.batch_norm(x, parts[0], parts[1], parts[2], parts[3], training=True, momentum=1)
    np.testing.assert_allclose(a[:2], [x.numpy().mean(0), x.numpy().var(0, ddof=1)], rtol=1e-12)
    assert y.shape == (8, 3) and (a[2:] == 1).all()


@pytest.mark.parametrize("f", [lambda x, eps: cg.layer_norm(x, eps=eps), lambda x, eps: cg.rms_norm(x, eps=eps),
                               lambda x, eps: cg.layer_norm(x, cg.ones(3), cg.ones(3), eps),
                               lambda x, eps: cg.group_norm(x, 2, eps=eps), lambda x, eps: cg.instance_norm(x, eps=eps),
                               lambda x, eps: cg.batch_norm(x, training=True, eps=eps),
                               lambda x, eps: cg.batch_norm(x, cg.zeros(4), cg.ones(4), eps=eps)])
@pytest.mark.parametrize("eps", [float("nan"), float("-inf"), 10**400], ids=repr)
def test_eps_is_finite(f, eps):
    x = cg.tensor(RNG.normal(size=(2, 4, 3)), dtype="float32")
    with pytest.raises(ValueError, match=r"_norm: eps is .*; wanted a finite number"): f(x, eps)
    assert np.isfinite(f(x, 0).numpy()).all()
