"""Functions of general matrices: what defines them, their derivatives, matrices that have none that are real."""

import numpy as np
import pytest
import scipy.linalg

import cygrad as cg
from cygrad.graph import Net, Workspace
from cygrad.testing import gradcheck

both_dtypes = pytest.mark.parametrize("dtype", ("float32", "float64"))
NAMES = ("expm", "logm", "sqrtm", "eigvals")


def matrices(*shape, dtype="float64"):
    """Matrices with real and positive eigenvalues, which are apart."""
    n = shape[-1]
    return (0.3 * np.random.default_rng(n).normal(size=shape) / n + np.diag(np.arange(1.0, n + 1))).astype(dtype)


def near(a, b, tolerance):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and np.abs(a - b).max(initial=0) <= tolerance * (1 + np.abs(b).max(initial=0))


@both_dtypes
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3, 3), (0, 0), (0, 2, 2)])
def test_definitions(shape, dtype):
    x = cg.tensor(matrices(*shape, dtype=dtype))
    tolerance = 100 * np.finfo(dtype).eps
    root = cg.linalg.sqrtm(x)
    assert root.dtype == dtype
    near((root @ root).numpy(), x.numpy(), tolerance)
    near(cg.linalg.expm(cg.linalg.logm(x)).numpy(), x.numpy(), 10 * tolerance)
    w, v = cg.linalg.eig(x)
    near((x @ v).numpy(), (v * w[..., None, :]).numpy(), tolerance)
    near((v * v).sum(-2).numpy(), np.ones(shape[:-1]), tolerance)
    near(np.sort(cg.linalg.eigvals(x).numpy()), np.sort(w.numpy()), tolerance)


def test_the_exponential_of_a_rotation():
    angle = cg.tensor(0.7, dtype="float64").attach_grad()
    with cg.record():
        turn = cg.expm(angle * cg.tensor([[0.0, -1.0], [1.0, 0.0]], dtype="float64"))
        turn[1, 0].backward()
    near(turn.numpy(), [[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]], 1e-15)
    near(angle.grad.numpy(), np.cos(0.7), 1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_every_order(name):
    assert gradcheck(getattr(cg.linalg, name), [cg.tensor(matrices(3, 3))], order=2)
    assert gradcheck(getattr(cg.linalg, name), [cg.tensor(matrices(2, 2, 2))])


def test_gradients_of_eigenvectors():
    """Of both results together. The vectors have length 1, so their gradient has no part along them."""
    assert gradcheck(lambda x: cg.eig(x).eigenvectors, [cg.tensor(matrices(3, 3))], order=2)
    assert gradcheck(lambda x: cg.eig(x).eigenvectors * cg.eig(x).eigenvalues[:, None], [cg.tensor(matrices(2, 3, 3))])


def test_equal_eigenvalues():
    """Their vectors have no derivative; the values have one, if there are as many vectors."""
    x = cg.tensor(np.diag([1.0, 1.0, 2.0])).attach_grad()
    with cg.record():
        cg.eigvals(x).sum().backward()
    near(x.grad.numpy(), np.eye(3), 1e-15)
    with cg.record():
        y = cg.eig(x).eigenvectors.sum()
    with pytest.raises(np.linalg.LinAlgError, match="eig: eigenvalues of x are equal"): y.backward()


def test_tangents_and_lanes():
    x, t = cg.tensor(matrices(4, 3, 3)), cg.tensor(matrices(4, 3, 3) - 1)
    for name in NAMES:
        f = getattr(cg.linalg, name)
        y, dy = cg.func.jvp(f, (x,), (t,))
        step = 1e-6
        near(dy.numpy(), ((f(x + step * t) - f(x - step * t)) / (2 * step)).numpy(), 1e-8)
        near(cg.func.vmap(f)(x).numpy(), y.numpy(), 1e-15)


@both_dtypes
@pytest.mark.parametrize("f", [scipy.linalg.expm, scipy.linalg.logm, scipy.linalg.sqrtm])
def test_a_large_matrix(f, dtype):
    a = matrices(20, 20, dtype=dtype)
    near(getattr(cg.linalg, f.__name__)(a).numpy(), f(a.astype("float64")).astype(dtype), 1e-14)


def test_a_net_runs_them():
    x = cg.tensor(matrices(3, 3))
    net, workspace = Net.capture(lambda x: cg.eigvals(cg.expm(x)), x), Workspace()
    workspace.feed(net.inputs[0], x + 1)
    workspace.run(net)
    near(workspace.fetch(net.outputs[0]).numpy(), cg.eigvals(cg.expm(x + 1)).numpy(), 0)
