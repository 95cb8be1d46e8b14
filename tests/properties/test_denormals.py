"""Results that underflow: a multiplication with such a result takes an Intel CPU 150 cycles. It sets the CPU's
underflow flag, also on CPUs where it costs nothing. The tests check that the flag stays clear."""

import ctypes
import ctypes.util
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from tests.kernels import test_cpu as test_levels

import cygrad as cg

if platform.machine() != "x86_64" or sys.platform != "linux":
    pytest.skip("the flags are read as Linux has them on x86-64", allow_module_level=True)

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
ENVIRONMENT = ctypes.c_uint32 * 8                   # fenv_t: the last word is MXCSR
UNDERFLOW = 0x10
N = 4099                                            # runs, vectors and a remainder
SHAPES = {"rows": ((64, 64), 1), "columns": ((64, 64), 0), "few columns": ((256, 14), 0), "long rows": ((8, 512), 1)}


def underflows(f):
    """Whether a product or a quotient in f() underflows."""
    environment = ENVIRONMENT()
    f()                                             # imports and allocations
    LIBM.fegetenv(environment)
    environment[7] &= ~0x3f
    LIBM.fesetenv(environment)
    f()
    LIBM.fegetenv(environment)
    return bool(environment[7] & UNDERFLOW)


def scores(kind, n):
    a = np.random.default_rng(0).normal(size=n)
    a[::3] = {"masked": -1e9, "infinite": -np.inf, "small": -20.0}[kind]
    return a


@pytest.fixture
def one_thread():
    threads = cg.get_num_threads()
    cg.set_num_threads(1)                           # each thread has its own flags
    yield
    cg.set_num_threads(threads)


def functions(kind, dtype):
    """Calls by name, with their arguments made before."""
    x = cg.tensor(scores(kind, N).astype(dtype), requires_grad=True)
    for name in ("exp", "sigmoid", "silu", "gelu", "softplus"):
        f = getattr(cg, name)
        yield name, lambda f=f: f(x)
        if kind != "infinite" and name != "exp":
            with cg.record():
                y = f(x)
            g = cg.ones(N, dtype=dtype)
            yield f"gradient of {name}", lambda y=y, g=g: cg.autograd.grad(y, x, g, retain_graph=True)
    for name, (shape, axis) in SHAPES.items():
        a = cg.tensor(scores(kind, shape[0] * shape[1]).reshape(shape).astype(dtype), requires_grad=True)
        for f in (cg.softmax, cg.log_softmax, cg.logsumexp):
            with cg.record():
                y = f(a, axis)
            g = cg.ones(y.shape, dtype=dtype)
            yield f"{f.__name__} of {name}", lambda f=f, a=a, axis=axis: f(a, axis)
            yield f"gradient of {f.__name__} of {name}", lambda y=y, a=a, g=g: cg.autograd.grad(
                y, a, g, retain_graph=True)
    labels = np.ones(64, int)
    a = cg.tensor(scores(kind, 4096).reshape(64, 64).astype(dtype), requires_grad=True)
    with cg.record():
        y = cg.cross_entropy(a, labels)
    yield "cross_entropy", lambda: cg.cross_entropy(a, labels)
    yield "gradient of cross_entropy", lambda: cg.autograd.grad(y, a, retain_graph=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["masked", "infinite", "small"])
def test_nothing_underflows(kind, dtype, one_thread):
    wrong = [name for name, f in functions(kind, dtype) if underflows(f)]
    assert not wrong


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormal_results_are_made_by_sums(dtype, one_thread):
    low = (-103.9, -87.5) if dtype == "float32" else (-745.1, -708.5)
    x = cg.tensor(np.random.default_rng(0).uniform(*low, N).astype(dtype))
    assert (cg.exp(x).numpy() < np.finfo(dtype).tiny).all() and (cg.exp(x).numpy() > 0).all()
    assert not underflows(lambda: cg.exp(x)) and not underflows(lambda: cg.sigmoid(x))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(cg.exp(x).numpy(), np.exp(x.numpy().astype("longdouble")).astype(dtype), rtol=0,
                                   atol=np.finfo(dtype).smallest_subnormal)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masked_scores_are_exact_zeros(dtype):
    """Their gradients are exact zeros too, for any incoming gradient."""
    for shape, axis in SHAPES.values():
        a = scores("masked", shape[0] * shape[1]).reshape(shape).astype(dtype)
        x = cg.tensor(a, requires_grad=True)
        with cg.record():
            y = cg.softmax(x, axis)
        head = np.random.default_rng(1).normal(size=shape).astype(dtype)
        dx = cg.autograd.grad(y, x, cg.tensor(head))
        masked = (a == -1e9) & (a != a.max(axis, keepdims=True))
        assert masked.any() and not y.detach().numpy()[masked].any() and not dx.numpy()[masked].any()


def test_the_flag_is_seen(one_thread):
    x = cg.full(N, 1e-30, dtype="float32")
    assert underflows(lambda: x * x) and not underflows(lambda: x + x)


@pytest.mark.slow
@pytest.mark.parametrize("level", [level for level in test_levels.BUILT if level != "baseline"])
def test_levels_below(level):
    found = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", __file__, "-p", "no:cacheprovider"],
                           env=os.environ | {"CYGRAD_LEVEL": level}, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
