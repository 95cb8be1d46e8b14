"""linear with an activation: the same numbers as two operations, in one node, with less memory."""

import numpy as np
import pytest

import cygrad as cg

ACTIVATIONS = ["relu", "tanh", "sigmoid"]
ROWS, N_IN, N_OUT = 40, 12, 8


def operands(dtype="float32", shape=(ROWS,)):
    rng = np.random.default_rng(3)
    arrays = rng.normal(size=(*shape, N_IN)), rng.normal(size=(N_OUT, N_IN)), rng.normal(size=N_OUT)
    return [cg.tensor(a.astype(dtype)).attach_grad() for a in arrays]


def fused(x, w, b, activation):
    return cg.linear(x, w, b, activation=activation)


def apart(x, w, b, activation):
    return getattr(cg, activation)(cg.linear(x, w, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(ROWS,), (5, 4, 2)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_same_bits_as_in_two(activation, shape, dtype):
    """Value and gradients, for gradients of the output that may be overwritten (square), that may not (the caller's),
    and that are one repeated number (sum)."""
    found = []
    for f in (fused, apart):
        xs = operands(dtype, shape)
        with cg.record():
            y = f(*xs, activation)
            loss = cg.square(y).sum()
        loss.backward()
        found.append([y.numpy(), *(x.grad.numpy().copy() for x in xs)])
        head = cg.full(y.shape, 0.25, dtype=dtype)
        with cg.record():
            y = f(*xs, activation)
        y.backward(head, retain_graph=True)
        found[-1] += [x.grad.numpy().copy() for x in xs]
        y.backward(head)
        found[-1] += [head.numpy().copy(), *(x.grad.numpy().copy() for x in xs)]
        with cg.record():
            y = f(*xs, activation).sum()
        y.backward()
        found[-1] += [x.grad.numpy().copy() for x in xs]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_relu_comes_down_to_bits():
    """If nothing else holds the output, one bit per element of it is saved, also under create_graph."""
    x, w, b = operands()
    with cg.record() as tape:
        loss = (fused(x, w, b, "relu") * cg.ones(N_OUT)).sum()
    assert tape.saved_bytes == ROWS * N_OUT // 8 + N_OUT * 4
    dx, dw = cg.autograd.grad(loss, [x, w], create_graph=True)
    with cg.record():
        z = (apart(x, w, b, "relu") * cg.ones(N_OUT)).sum()
    wanted = cg.autograd.grad(z, [x, w])
    np.testing.assert_array_equal(dx.numpy(), wanted[0].numpy())
    np.testing.assert_array_equal(dw.numpy(), wanted[1].numpy())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_one_node_and_one_array_less(activation):
    x, w, b = operands()
    sizes = []
    for f in (fused, apart):
        with cg.record() as tape:
            y = f(x, w, b, activation)
        sizes.append(tape.nodes)
        del y
    assert sizes == [1, 2]
    peaks = []
    for f in (fused, apart):
        with cg.memory.track() as tracked:
            f(x, w, b, activation)
        peaks.append(tracked.peak_bytes)
    assert peaks[1] - peaks[0] == ROWS * N_OUT * 4


@pytest.mark.parametrize("dtype, strip", [("float32", 1024 * 4 * 4), ("float64", 512 * 4 * 8)])
@pytest.mark.parametrize("bias", [False, True])
def test_rows_that_do_not_lie_side_by_side_are_packed_in_strips(dtype, strip, bias):
    """16 KiB at a time, not all of x and of its gradient. The numbers equal those for a copy of x."""
    rng = np.random.default_rng(0)
    a, m = rng.normal(size=(9, 22, 24, 4)).astype(dtype), rng.normal(size=(16, 4)).astype(dtype)
    h, b = rng.normal(size=(20, 9, 20, 16)).astype(dtype), rng.normal(size=16).astype(dtype)
    found, workspace = [], []

    def look(event):
        if event[0] == "allocate" and event[3] == "workspace": workspace.append(event[2])

    for make in (lambda x: x[:, 1:-1, 2:-2], lambda x: x[:, 1:-1, 2:-2].copy()):
        x, w, c = (cg.tensor(v).attach_grad() for v in (a, m, b))
        with cg.memory.events(look):
            with cg.record(): y = cg.linear(make(x), w, c if bias else None)
            g = cg.permute(cg.tensor(h), (1, 0, 2, 3))      # whose rows are not contiguous either
            y.backward(g)
        found.append([t.numpy().copy() for t in (y.detach(), x.grad, w.grad, *([c.grad] if bias else []))])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-4)
    rows = 9 * 20 * 20
    want = np.concatenate([a[:, 1:-1, 2:-2].reshape(rows, 4) @ m.T + (b if bias else 0)]).reshape(y.shape)
    np.testing.assert_allclose(found[0][0], want, rtol=1e-4, atol=1e-4)
    strip_of_g = 256 * 16 * np.dtype(dtype).itemsize
    assert set(workspace) == {strip, strip + strip_of_g, strip_of_g}      # for y, for dw, for dx


def test_strips_of_no_rows():
    w = cg.ones((3, 2)).attach_grad()
    x = cg.ones((2, 0, 6, 4)).attach_grad()
    with cg.record(): y = cg.linear(x[:, :, ::2, ::2], w)
    assert y.shape == (2, 0, 3, 3)
    y.backward()
    assert w.grad.tolist() == [[0.0, 0.0]] * 3
