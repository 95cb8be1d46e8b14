"""Products by cygrad's own kernels: exact for integers of any shape and strides, and the same on two threads."""

import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad.kernels.linalg.blas import are_own

SIZES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 64, 70)


def operand(rng, rows, columns, transposed, gap, dtype):
    """A matrix of small integers, in memory as it is or transposed, with `gap` numbers between its rows."""
    shape = (columns, rows + gap) if transposed else (rows, columns + gap)
    whole = rng.integers(-4, 5, shape).astype(dtype)
    a = whole[:, :shape[1] - gap]
    t = cg.tensor(whole)[:, :shape[1] - gap]
    return (a.T, t.T) if transposed else (a, t)


def check(rng, m, n, k, ta, tb, gap, dtype):
    a, x = operand(rng, m, k, ta, gap, dtype)
    b, y = operand(rng, k, n, tb, gap, dtype)
    np.testing.assert_array_equal((x @ y).numpy(), a @ b, err_msg=str((m, n, k, ta, tb, gap, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
def test_every_small_shape(ta, tb, dtype):
    rng = np.random.default_rng(0)
    for m, n, k in itertools.product(SIZES, repeat=3): check(rng, m, n, k, ta, tb, (m + n + k) % 3, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_columns_have_the_bits_of_many(dtype):
    """Also where they are added to what is there: a gradient."""
    rng = np.random.default_rng(5)
    for m, n, k in itertools.product((16, 33, 70), (2, 3, 4), (9, 130, 700)):
        a, b, c = (rng.normal(size=shape).astype(dtype) for shape in ((k, m), (k, 64), (m, 64)))
        for columns in (n, 64):
            y, x = cg.tensor(b[:, :columns]), cg.tensor(a)
            w = cg.zeros((m, columns), dtype=dtype).requires_grad_()
            w.grad = cg.tensor(c[:, :columns])
            with cg.record(): z = cg.linear(y, w)
            z.backward(x)
            found = (x.T @ y).numpy()[:, :n], w.grad.numpy()[:, :n]
            if columns == n: few = [part.copy() for part in found]
        for one, other in zip(few, found, strict=True): np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_random_shapes():
    rng = np.random.default_rng(1)
    for _ in range(100_000):
        check(rng, *(int(x) for x in rng.integers(0, 71, 3)), *(bool(x) for x in rng.integers(0, 2, 2)),
              int(rng.integers(0, 5)), ("float32", "float64")[int(rng.integers(2))])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_larger_shapes(dtype):
    rng = np.random.default_rng(2)
    for m, n, k in [(1, 3000, 700), (3000, 1, 700), (700, 900, 1), (5, 1000, 300), (40, 500, 256), (60, 300, 640),
                    (600, 50, 300), (1100, 70, 130), (300, 300, 20),
                    (64, 300, 400), (65, 150, 1100), (700, 400, 300), (90, 1000, 129)]:     # with copies of B, of both
        for ta, tb in itertools.product([False, True], repeat=2): check(rng, m, n, k, ta, tb, 1, dtype)


def test_errors_are_those_of_rounding():
    rng = np.random.default_rng(3)
    for m, n, k in [(1, 50, 5000), (50, 1, 5000), (3, 50, 4096), (100, 100, 3000)]:
        a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
        bound = np.abs(a) @ np.abs(b)
        for dtype, epsilon in (("float32", 6e-8), ("float64", 1.2e-16)):
            x, y = a.astype(dtype), b.astype(dtype)
            found = (cg.tensor(x) @ cg.tensor(y)).numpy()
            assert (np.abs(found - x.astype("float64") @ y.astype("float64")) <= 40 * epsilon * bound).all()


def test_the_same_bits_on_two_threads(two_threads):
    rng = np.random.default_rng(4)
    for m, n, k in [(1, 4000, 600), (4000, 1, 600), (900, 900, 1), (6, 3000, 512), (20, 3001, 300), (3000, 21, 300),
                    (300, 500, 260), (1024, 512, 16), (200, 400, 1200), (100, 300, 70), (3000, 4, 512),
                    (900, 3, 1024)]:
        for ta, tb in itertools.product([False, True], repeat=2):
            x = cg.tensor(rng.normal(size=(k, m) if ta else (m, k)).astype("float32"))
            y = cg.tensor(rng.normal(size=(n, k) if tb else (k, n)).astype("float32"))
            x, y = x.T if ta else x, y.T if tb else y
            found = (x @ y).numpy().copy()
            cg.set_num_threads(1)
            np.testing.assert_array_equal(found, (x @ y).numpy())
            cg.set_num_threads(2)


@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (9, 21, 33), (70, 40, 300), (5, 40, 128), (1, 30, 20), (30, 1, 20),
                                     (4, 6, 1), (150, 160, 170)])
def test_batches(m, n, k, two_threads):
    """Threads share the products of a batch, or each product; some operands are broadcast or transposed."""
    rng = np.random.default_rng(9)
    for left, right in [((40,), (40,)), ((7, 1), (9,)), ((3, 1, 5), (2, 1)), ((), (33,)), ((3,), (3,)), ((0,), (0,))]:
        for ta, tb in itertools.product([False, True], repeat=2):
            a = rng.integers(-4, 5, (*left, k, m) if ta else (*left, m, k)).astype("float32")
            b = rng.integers(-4, 5, (*right, n, k) if tb else (*right, k, n)).astype("float32")
            x, y = cg.tensor(a), cg.tensor(b)
            if ta: a, x = np.swapaxes(a, -1, -2), x.swapaxes(-1, -2)
            if tb: b, y = np.swapaxes(b, -1, -2), y.swapaxes(-1, -2)
            np.testing.assert_array_equal((x @ y).numpy(), a @ b)
            x, y = x / 3.0, y / 7.0
            found = (x @ y).numpy().copy()
            cg.set_num_threads(1)
            np.testing.assert_array_equal((x @ y).numpy(), found)
            cg.set_num_threads(2)


def test_columns_that_are_far_apart(two_threads, tmp_path):
    """The steps of a block are 32-bit numbers, so fewer terms are summed at a time, with and without copies."""
    rng, far = np.random.default_rng(8), np.lib.stride_tricks.as_strided
    memory = np.memmap(tmp_path / "sparse", "float32", "w+", shape=129 * 9_000_000)     # (few of its pages exist)
    big = far(memory, (128, 530), (9_000_000 * 4, 4))
    big[:] = rng.normal(size=big.shape)
    a, b = cg.asarray(big).T, cg.tensor(rng.normal(size=(128, 400)).astype("float32"))
    whole = (a @ b).numpy().copy()
    cg.set_num_threads(1)
    np.testing.assert_array_equal((a @ b).numpy(), whole)
    np.testing.assert_array_equal((a[:40] @ b).numpy(), whole[:40])
    np.testing.assert_allclose(whole, big.T.astype("float64") @ b.numpy(), rtol=0, atol=1e-4)


def test_a_thread_with_a_small_stack_gets_the_same_bits():
    """Copies of A and B take 320 KB of a large stack, and less of this one."""
    rng, found = np.random.default_rng(7), []
    x, y = (cg.tensor(rng.normal(size=shape)) for shape in ((300, 500), (500, 400)))
    before = threading.stack_size(256 * 1024)
    thread = threading.Thread(target=lambda: found.append((x @ y).numpy().copy()))
    try: thread.start()
    finally: threading.stack_size(before)
    thread.join()
    np.testing.assert_array_equal(found[0], (x @ y).numpy())


def test_nan_and_infinity_are_those_of_numpy():
    rng = np.random.default_rng(5)
    for m, n, k in [(1, 20, 30), (20, 1, 30), (20, 30, 1), (5, 20, 64), (50, 70, 40)]:
        a, b = rng.normal(size=(m, k)).astype("float32"), rng.normal(size=(k, n)).astype("float32")
        for x in (a, b):
            for value in (np.nan, np.inf, -np.inf, 0): x.flat[rng.integers(x.size)] = value
        with np.errstate(all="ignore"): wanted = a @ b
        found = (cg.tensor(a) @ cg.tensor(b)).numpy()
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(np.isposinf(found), np.isposinf(wanted))


def test_a_gradient_is_added_to_grad():
    """The product's beta is 1, and integers are exact."""
    rng = np.random.default_rng(6)
    for rows, columns, batch in [(1, 5, 9), (20, 33, 70), (48, 64, 3), (7, 1, 40)]:
        w = cg.tensor(rng.integers(-4, 5, (rows, columns)).astype("float32")).attach_grad("add")
        x = rng.integers(-4, 5, (batch, columns)).astype("float32")
        g = rng.integers(-4, 5, (batch, rows)).astype("float32")
        for _ in range(3):
            with cg.record(): y = cg.linear(cg.tensor(x), w)
            y.backward(cg.tensor(g))
        np.testing.assert_array_equal(w.grad.numpy(), 3 * (g.T @ x))


def test_few_columns_are_added_to_grad():
    """They are dots of the rows of both operands, or of a copy of the second."""
    rng = np.random.default_rng(10)
    for rows, inner, columns in [(200, 4, 64), (70, 3, 256), (100, 8, 512)]:
        for y in (rng.integers(-4, 5, (inner, columns)), rng.integers(-4, 5, (columns, inner)).T):
            x = cg.tensor(rng.integers(-4, 5, (rows, inner)).astype("float32")).attach_grad("add")
            g = rng.integers(-4, 5, (rows, columns)).astype("float32")
            for _ in range(3):
                with cg.record(): z = x @ cg.asarray(y.astype("float32", order="K"))
                z.backward(cg.tensor(g))
            np.testing.assert_array_equal(x.grad.numpy(), 3 * (g @ y.T.astype("float32")))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bias_is_added_to_each_row(dtype, two_threads):
    """By dots, by blocks, by vectors and where there are no terms; integers are exact."""
    rng = np.random.default_rng(11)
    for m, n, k in [*itertools.product((0, 1, 2, 9, 50), (1, 3, 17, 48, 70), (0, 1, 5, 64, 300)), (700, 300, 130),
                    (70, 900, 520), (1000, 4, 512)]:
        x, w = (rng.integers(-4, 5, size).astype(dtype) for size in ((m, k), (n, k)))
        whole = rng.integers(-4, 5, 2 * n).astype(dtype)
        for b, t in ((whole[:n], cg.tensor(whole[:n])), (whole[::2], cg.tensor(whole)[::2])):
            found = cg.linear(cg.tensor(x), cg.tensor(w), t).numpy()
            np.testing.assert_array_equal(found, x @ w.T + b, err_msg=str((m, n, k)))


def test_a_bias_has_the_same_bits_on_two_threads(two_threads):
    rng = np.random.default_rng(12)
    for m, n, k in [(1024, 512, 300), (300, 700, 520), (20, 3001, 640), (3000, 4, 512), (1, 4000, 600)]:
        x, w, b = (cg.tensor(rng.normal(size=size).astype("float32")) for size in ((m, k), (n, k), n))
        found = cg.linear(x, w, b).numpy().copy()
        cg.set_num_threads(1)
        np.testing.assert_array_equal(found, cg.linear(x, w, b).numpy())
        cg.set_num_threads(2)


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True,
                          text=True)


def test_no_blas_is_loaded_without_need():
    code = "import sys, cygrad as cg; a = cg.ones((50, 50)); print(a.sum().item(), (a @ a)[0, 0].item(), "
    code += "'scipy.linalg' in sys.modules, cg.show_config('dicts')['Settings']['products by'])"
    assert run(code, CYGRAD_BLAS="").stdout.split() == ["2500.0", "50.0", "False", "cygrad"]
    assert run(code, CYGRAD_BLAS="scipy").stdout.split() == ["2500.0", "50.0", "True", "BLAS"]


def test_another_blas_is_refused():
    said = run("import cygrad", CYGRAD_BLAS="mkl").stderr
    assert "ValueError: CYGRAD_BLAS is 'mkl'; it must be own (the default) or scipy" in said
    assert are_own(None) and are_own("own") and not are_own("scipy")


def test_batches_without_products():
    for x, y in (((0, 2, 3), (0, 3, 4)), ((0, 2, 3), (3, 4)), ((2, 0, 1, 3), (1, 3, 4)), ((2, 2, 3), (2, 3, 0)),
                 ((2, 0, 3), (2, 3, 4)), ((5, 2, 0), (5, 0, 4))):
        x, y = (cg.tensor(np.ones(s)).attach_grad() for s in (x, y))
        with cg.record(): z = x @ y
        z.backward()
        assert z.shape == np.matmul(np.ones(x.shape), np.ones(y.shape)).shape
        assert not y.grad.numpy().any() and x.grad.shape == x.shape
