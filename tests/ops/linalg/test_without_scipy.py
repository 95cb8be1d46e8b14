"""cygrad without SciPy, which is an extra: in processes where `import scipy` fails, cygrad trains, and cg.linalg
computes by its own routines and numpy.linalg."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent
START = """
import sys
sys.modules["scipy"] = None     # `import scipy` raises ModuleNotFoundError
import numpy as np
import cygrad as cg
from cygrad.testing import gradcheck
r = np.random.default_rng(0)
def refused(f, kind, words):
    try: f()
    except kind as e:
        assert type(e) is kind and words in str(e), repr(e)
        return
    raise AssertionError(f"{kind.__name__} was expected")
"""


def run(code, **environment):
    found = subprocess.run([sys.executable, "-W", "error", "-c", START + code], capture_output=True, text=True,
                           env={**os.environ, **environment})
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_step_of_training():
    assert run("""
x = cg.tensor(r.normal(size=(32, 3)).astype("f4"))
w = cg.zeros((1, 3)).attach_grad()
solver = cg.optim.Adam(alpha=0.1)
solver.set_parameters({"w": w})
losses = []
for _ in range(20):
    with cg.record(): loss = ((cg.linear(x, w) - x.sum(1, keepdims=True)) ** 2).mean()
    loss.backward()
    solver.update()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 4
assert not [name for name in sys.modules if name.startswith("scipy.")]
print("trained")
""") == "trained\n"


def test_the_tests_of_decompositions_pass():
    """All but the bounds of workspace, because numpy.linalg takes memory of its own."""
    code = f"""
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", {str(TESTS / "test_decompose.py")!r}, "-k", "not workspace"]))
"""
    found = subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True,
                           cwd=TESTS.parents[2])
    assert found.returncode == 0, found.stdout


def test_gradients_of_every_function():
    """First and second ones, of batches."""
    run("""
x, tall, wide = r.normal(size=(2, 3, 3)), r.normal(size=(2, 4, 2)), r.normal(size=(2, 2, 4))
s = x @ np.swapaxes(x, 1, 2) + 3 * np.eye(3)
def mirrored(f): return lambda a: f((a + cg.matrix_transpose(a)) * 0.5)
cases = [(mirrored(cg.cholesky), [s]), (cg.inv, [x]), (cg.det, [x]), (lambda a: cg.slogdet(a).logabsdet, [x]),
         (cg.solve, [x, r.normal(size=(2, 3, 2))]), (lambda a: cg.solve(a, np.ones(3)), [x[0]]),
         (lambda a, b: cg.solve_triangular(a, b, upper=True), [x, r.normal(size=(2, 3, 2))]),
         (mirrored(cg.eigvalsh), [s]), (mirrored(lambda a: cg.eigh(a).eigenvectors ** 2), [s]),
         (cg.svdvals, [x]), (cg.svdvals, [tall]), (cg.svdvals, [wide]),
         (lambda a: cg.svd(a).U ** 2, [x]), (lambda a: cg.svd(a, False).Vh ** 2, [tall]),
         (lambda a: cg.svd(a, False).U ** 2, [wide]), (lambda a: cg.pinv(a), [tall]), (lambda a: cg.pinv(a), [wide]),
         (lambda a, b: cg.lstsq(a, b).x, [tall, r.normal(size=(2, 4, 1))]),
         (lambda a: cg.qr(a).Q, [tall]), (lambda a: cg.qr(a).R, [wide]), (lambda a: cg.qr(a, "complete").Q, [x])]
for f, operands in cases: assert gradcheck(f, [cg.tensor(a) for a in operands], order=2)
""")


def test_values_are_numpys():
    """In both dtypes, with strides, and without elements. A float32 result is rounded from float64."""
    run("""
for dtype in ("float32", "float64"):
    x = cg.tensor(r.normal(size=(2, 7, 5)).astype(dtype))
    for a in (x, cg.matrix_transpose(x), x[:, ::2], x[:, :0], x[..., :0]):
        b = a.numpy()
        for full in (False, True):
            found, wanted = cg.svd(a, full), np.linalg.svd(b, full)
            assert all(y.dtype == dtype and np.array_equal(y.numpy(), z) for y, z in zip(found, wanted)), (a, full)
        if b.size: assert np.array_equal(cg.svdvals(a).numpy(), np.linalg.svd(b, compute_uv=False))
        square = cg.matmul(a, cg.matrix_transpose(a)) if b.shape[1] < 6 else cg.matmul(cg.matrix_transpose(a), a)
        for uplo in "LU":
            for y, z in zip(cg.eigh(square, uplo), np.linalg.eigh(square.numpy(), uplo)):
                assert y.dtype == dtype and np.array_equal(y.numpy(), z)
            assert np.array_equal(cg.eigvalsh(square, uplo).numpy(), np.linalg.eigvalsh(square.numpy(), uplo))
many = r.normal(size=(3000, 3, 4))                  # in several calls
assert all(np.array_equal(y.numpy(), z) for y, z in zip(cg.svd(many), np.linalg.svd(many)))
assert all(np.array_equal(y.numpy(), z) for y, z in zip(cg.eigh(many[..., :3]), np.linalg.eigh(many[..., :3])))
large = cg.tensor(np.full((2, 2), 3e38, "float32"))
assert cg.svdvals(large).numpy()[0] == np.inf      # (and no warning)
""")


def test_errors():
    """A matrix that cannot be decomposed is named. What else numpy.linalg raises reaches the caller as itself."""
    run("""
x = np.stack([np.eye(3)] * 4).reshape(2, 2, 3, 3).copy()
x[1, 0, 2] = np.nan
E = np.linalg.LinAlgError
for f in (cg.svd, cg.svdvals, cg.pinv):
    refused(lambda: f(x), E, "x[1, 0]: the iteration did not converge; nan and inf are a usual cause")
many = np.stack([np.eye(3)] * 3000)
many[2900] = np.nan
refused(lambda: cg.svd(many), E, "svd: x[2900]: the iteration did not converge")
refused(lambda: cg.inv(np.zeros((2, 2))), E, "inv: x is singular: pivot 0 is zero")
refused(lambda: cg.cholesky(x), E, "cholesky: x[1, 0] is not positive definite: its leading minor of order 3")
def full(*arguments, **options): raise MemoryError("no memory for the work")
def stopped(*arguments, **options): raise KeyboardInterrupt
svd, eigh, before = np.linalg.svd, np.linalg.eigh, cg.memory.stats()["live_bytes"]
np.linalg.svd, np.linalg.eigh = full, stopped
refused(lambda: cg.svd(x[0]), MemoryError, "no memory for the work")
refused(lambda: cg.eigh(x[0]), KeyboardInterrupt, "")
assert cg.memory.stats()["live_bytes"] == before
np.linalg.svd, np.linalg.eigh = svd, eigh
assert cg.svdvals(x[0]).shape == (2, 3)
""")


def test_the_memory_of_numpy_is_counted():
    """The workspace has room for numpy.linalg's copies and for the work of LAPACK, so limits bound them."""
    run("""
x = cg.tensor(r.normal(size=(200, 200)))
for f, least in ((lambda: cg.eigh(x), 5), (lambda: cg.svd(x), 8), (lambda: cg.svdvals(x), 2)):
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as track: f()
    assert track.peak_bytes - before >= least * x.nbytes
    cg.memory.empty_cache()
    now = cg.memory.stats()
    with cg.memory.limit(now["live_bytes"] + now["cached_bytes"] + least * x.nbytes // 2):
        refused(f, cg.MemoryLimitError, "requested")
def step():
    u, s, vh = cg.svd(x)
    return (s * s).sum() + cg.eigvalsh(x).sum()
plan = cg.memory.plan(step)
before = cg.memory.stats()["live_bytes"]
with cg.memory.track() as track: step()
assert track.peak_bytes == plan.peak_bytes, (track.peak_bytes, before, plan.peak_bytes)
""")


def test_threads_agree_and_may_decompose_at_once():
    """NumPy computes with the GIL, and its BLAS gets the number of threads back that it had."""
    run("""
import threading
x = cg.tensor(r.normal(size=(6, 40, 40)))
wanted = [y.numpy().tobytes() for y in (*cg.svd(x), *cg.qr(x), cg.inv(x))]
def work(): found.append([y.numpy().tobytes() for y in (*cg.svd(x), *cg.qr(x), cg.inv(x))])
for n in (1, 2):
    cg.set_num_threads(n)
    found, threads = [], [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert found == [wanted] * 3
""")


def test_what_is_missing_is_named():
    config = run("found = cg.show_config('dicts')['BLAS']; print(found['through'], found['name'])")
    assert config == f"numpy.linalg {np.show_config('dicts')['Build Dependencies']['blas']['name']}\n"
    run("""
a = cg.ones((50, 50))
refused(lambda: a @ a, ImportError, "CYGRAD_BLAS is 'scipy', but SciPy cannot be imported; install it with pip install "
        "'cygrad[linalg]', or unset CYGRAD_BLAS")
""", CYGRAD_BLAS="scipy")
