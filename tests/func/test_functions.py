"""autograd.Function inside of transformations: the derivative is that of its backward, in every mode."""

import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import Function
from cygrad.core.errors import PerformanceWarning
from cygrad.func import functions, grad, hessian, hvp, jacobian, jvp, linearize, vjp, vmap


def near(x, y, tol=1e-9):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def f64(*shape, seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape))


class Cube(Function):
    """x^3, computed by NumPy."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return cg.tensor(x.detach().numpy() ** 3)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g


class Through(Function):
    """round(x), whose derivative is taken as 2."""

    @staticmethod
    def forward(ctx, x): return cg.round(x)

    @staticmethod
    def backward(ctx, g): return 2 * g


class Both(Function):
    """x y and x, and which is larger, of two tensors and a number."""

    @staticmethod
    def forward(x, y, scale): return x * y * scale, cg.sin(x), x > y, scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.scale = inputs[2]

    @staticmethod
    def backward(ctx, g, h, *_):
        x, y = ctx.saved_tensors
        return g * y * ctx.scale + h * cg.cos(x), g * x * ctx.scale, None


class Doubled(Function):
    """x := 2 x, in place."""

    @staticmethod
    def forward(ctx, x):
        x *= 2
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g): return 2 * g


class Largest(Function):
    """The largest element, as a number of Python."""

    @staticmethod
    def forward(ctx, x): return x * 1, float(x.max())

    @staticmethod
    def backward(ctx, g, _): return g


@pytest.fixture(autouse=True)
def slowly():
    """Lanes of a Function run one by one, which a warning says once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        yield


def test_gradients_of_each_slice():
    x = f64(4, 3)
    near(vmap(Cube.apply)(x), np.asarray(x) ** 3)
    near(vmap(grad(lambda x: Cube.apply(x).sum()))(x), 3 * np.asarray(x) ** 2)
    near(grad(lambda x: vmap(Cube.apply)(x).sum())(x), 3 * np.asarray(x) ** 2)
    near(vmap(hessian(lambda x: Cube.apply(x).sum()))(x)[1], np.diag(6 * np.asarray(x)[1]))
    near(vmap(vmap(grad(Cube.apply)))(x), 3 * np.asarray(x) ** 2)


def test_gradients_by_what_slices_share():
    w, x = f64(3), f64(4, 3, seed=1)
    def f(w, x): return (Cube.apply(w * 1) * x).sum()

    near(vmap(grad(f), (None, 0))(w, x), 3 * np.asarray(w) ** 2 * np.asarray(x))
    near(grad(lambda w: vmap(f, (None, 0))(w, x).sum())(w), 3 * np.asarray(w) ** 2 * np.asarray(x).sum(0))


def test_tangents_are_those_of_backward():
    x, t = f64(3), f64(3, seed=1)
    y, dy = jvp(Through.apply, (x,), (t,))
    near(y, np.round(np.asarray(x)))
    near(dy, 2 * np.asarray(t))
    near(jvp(Cube.apply, (x,), (t,))[1], 3 * np.asarray(x) ** 2 * np.asarray(t))
    for mode in ("forward", "reverse", None): near(jacobian(Through.apply, mode=mode)(x), 2 * np.eye(3))
    near(linearize(Cube.apply, x)[1](t), 3 * np.asarray(x) ** 2 * np.asarray(t))


def test_compositions():
    x, t = f64(3), f64(3, seed=1)
    def f(x): return Cube.apply(cg.sin(x)).sum()
    def plain(x): return (cg.sin(x) ** 3).sum()

    near(hvp(f, (x,), (t,))[0], hvp(plain, (x,), (t,))[0])
    near(hessian(f)(x), hessian(plain)(x))
    near(grad(lambda x: jvp(f, (x,), (t,))[1])(x), hvp(plain, (x,), (t,))[0])
    near(jvp(lambda x: jvp(f, (x,), (t,))[1], (x,), (t,))[1], (np.asarray(hvp(plain, (x,), (t,))[0]) * t.numpy()).sum())
    near(vmap(lambda t: jvp(f, (x,), (t,))[1])(cg.eye(3, dtype="float64")), grad(plain)(x))
    near(vmap(lambda x: jvp(f, (x,), (t,))[1])(cg.stack([x, t]))[1], jvp(plain, (t,), (t,))[1])


def test_several_inputs_and_outputs():
    x, y, t = f64(3), f64(3, seed=1), f64(3, seed=2)
    a, b = np.asarray(x), np.asarray(y)
    def f(x, y): return Both.apply(x, y, 2.0)[:2]

    (p, q), (dp, dq) = jvp(f, (x, y), (t, t))
    near(p, 2 * a * b)
    near(dp, 2 * (a + b) * np.asarray(t))
    near(dq, np.cos(a) * np.asarray(t))
    near(jvp(lambda y: f(x, y), (y,), (t,))[1][0], 2 * a * np.asarray(t))
    near(jvp(lambda y: f(x, y), (y,), (t,))[1][1], np.zeros(3))
    xs = cg.stack([x, y])
    p, q, larger, scale = vmap(lambda x: Both.apply(x, y, 2.0))(xs)
    near(p, 2 * np.asarray(xs) * b)
    assert larger.dtype == bool and larger.tolist() == (np.asarray(xs) > b).tolist() and scale.tolist() == [2.0, 2.0]
    g = vmap(grad(lambda x: sum(z.sum() for z in f(x, y))))(xs)
    near(g, 2 * b + np.cos(np.asarray(xs)))
    near(vjp(lambda x: vmap(lambda x: f(x, y)[0])(x), xs)[1](xs)[0], 2 * b * np.asarray(xs))


def test_writes_in_place_are_refused_in_forward_mode():
    x = f64(3)
    before = np.array(x)
    with pytest.raises(RuntimeError, match="Doubled.forward wrote in place to input 0 of shape .3,."):
        jvp(lambda x: Doubled.apply(x * 1), (x,), (x,))
    near(x, before)
    near(grad(lambda x: Doubled.apply(x * 1).sum())(x), [2, 2, 2])


def test_numbers_must_agree_between_slices():
    assert vmap(lambda x: Largest.apply(x)[1])(cg.ones((2, 3))).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="returned 1.0 for one slice and another"):
        vmap(lambda x: Largest.apply(x)[1])(cg.tensor([[1.0], [2.0]]))


def test_the_warning_comes_once():
    functions.warned.discard("Cube")
    with pytest.warns(PerformanceWarning, match="Cube, an autograd.Function, runs lane by lane") as caught:
        for _ in range(2): vmap(Cube.apply)(f64(2, 3))
    assert len(caught) == 1
