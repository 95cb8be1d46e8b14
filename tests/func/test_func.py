"""cg.func: derivatives as functions, alone and nested, beside finite differences and closed forms."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, hessian, hvp, jacobian, jvp, lanes, linearize, value_and_grad, vjp, vmap


def near(x, y, tol=1e-9):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def f64(*shape, seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape))


def cubes(x):
    return (x * x * x).sum()


def test_grad_of_a_scalar_function():
    x = f64(4)
    near(grad(cubes)(x), 3 * np.asarray(x) ** 2)


def test_value_and_grad_with_aux():
    x = f64(3)
    (y, aux), g = value_and_grad(lambda x: (cubes(x), {"twice": 2 * x}), has_aux=True)(x)
    near(y, (np.asarray(x) ** 3).sum())
    near(aux["twice"], 2 * np.asarray(x))
    near(g, 3 * np.asarray(x) ** 2)


def test_higher_orders():
    def f(x): return x ** 5

    for n, c in ((1, 5), (2, 20), (3, 60), (4, 120)):
        f = grad(f)
        near(f(1.5), c * 1.5 ** (5 - n), 1e-5)


def test_jvp_and_its_nestings():
    x, t = f64(3), f64(3, seed=1)
    y, dy = jvp(lambda x: cg.exp(x) * cg.sin(x), (x,), (t,))
    a = np.asarray(x)
    near(dy, np.exp(a) * (np.sin(a) + np.cos(a)) * np.asarray(t))
    def first(f): return lambda x: jvp(f, (x,), (cg.ones_like(x),))[1]

    near(first(first(first(lambda x: x ** 4)))(x), 24 * a)
    near(first(lambda x: grad(lambda z: (z ** 4).sum())(x))(x), 12 * a ** 2)
    near(grad(lambda x: first(lambda z: z ** 4)(x).sum())(x), 12 * a ** 2)


def test_perturbations_are_not_confused():
    def inner(x): return grad(lambda y: x * y)(2.0)
    def d(f, x): return jvp(f, (x,), (cg.ones_like(x),))[1]

    near(grad(lambda x: x * inner(x))(3.0), 6, 1e-6)
    near(d(lambda x: x * d(lambda y: x + y, cg.tensor(1.0)), cg.tensor(3.0)), 1, 1e-6)


def test_vjp_may_be_called_again():
    x = f64(3)
    y, pull = vjp(cg.sin, x)
    near(y, np.sin(np.asarray(x)))
    for k in range(2): near(pull(cg.full_like(x, k + 1.0))[0], (k + 1) * np.cos(np.asarray(x)))


def test_linearize():
    x = f64(3)
    y, push = linearize(lambda x: cg.sin(x) * x, x)
    a = np.asarray(x)
    for k in (1.0, 2.0): near(push(cg.full_like(x, k)), k * (np.cos(a) * a + np.sin(a)))


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_jacobian(mode):
    w = f64(5, 3)
    x = f64(3, seed=2)
    j = jacobian(lambda x: cg.tanh(w @ x), mode=mode)(x)
    a = np.asarray(w) @ np.asarray(x)
    near(j, (1 - np.tanh(a) ** 2)[:, None] * np.asarray(w))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_containers(mode):
    p = {"a": f64(2), "b": f64(3, seed=1)}
    j = jacobian(lambda p: {"s": p["a"].sum() * p["b"], "t": p["a"]}, mode=mode)(p)
    near(j["s"]["a"], np.asarray(p["b"])[:, None] * np.ones((1, 2)))
    near(j["s"]["b"], np.asarray(p["a"]).sum() * np.eye(3))
    near(j["t"]["a"], np.eye(2))
    near(j["t"]["b"], np.zeros((2, 3)))


def test_hessian_and_hvp():
    m = f64(4, 4)
    def f(x): return cg.exp(x @ (m @ x) * 0.1)

    x, v = f64(4, seed=3), f64(4, seed=4)
    h = hessian(f)(x)
    near(h, jacobian(jacobian(f, mode="reverse"), mode="reverse")(x))
    near(h, np.asarray(h).T)
    near(hvp(f, (x,), (v,))[0], np.asarray(h) @ np.asarray(v))


def test_vmap_of_products():
    x, w = f64(6, 3), f64(3, 2, seed=1)
    near(vmap(lambda x: cg.tanh(x @ w))(x), np.tanh(np.asarray(x) @ np.asarray(w)))
    near(vmap(lambda x, y: (x * y).sum(), in_axes=(0, 1))(x, f64(3, 6)),
         (np.asarray(x) * np.asarray(f64(3, 6)).T).sum(1))


def test_gradients_for_each_sample():
    x, w = f64(6, 3), f64(3, seed=1)
    g = vmap(grad(lambda w, x: cg.tanh(x @ w)), in_axes=(None, 0))(w, x)
    a = np.tanh(np.asarray(x) @ np.asarray(w))
    near(g, (1 - a ** 2)[:, None] * np.asarray(x))
    total = grad(lambda w: vmap(lambda x: cg.tanh(x @ w))(x).sum())(w)
    near(total, np.asarray(g).sum(0))


def test_vmap_of_vmap():
    x = f64(3, 4)
    y = f64(5, 4, seed=1)
    outer = vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x)
    near(outer, np.asarray(x) @ np.asarray(y).T)


def test_state_and_gradients_are_left_alone():
    x = f64(3)
    x.attach_grad()
    before = np.asarray(x.grad).copy()
    grad(cubes)(x)
    assert not cg.is_recording()
    near(x.grad, before)
    with cg.record():
        y = grad(cubes)(x).sum()
    y.backward()
    near(x.grad, 6 * np.asarray(x.detach()))


# ---- indices that have lanes -----------------------------------------------------------------------------------------

ROWS_ = np.random.default_rng(0).normal(size=(3, 4, 5))
PICKED = np.array([2, 0, 3])


@pytest.mark.parametrize("f", [
    lambda x, i: x[i], lambda x, i: x[i, 1:], lambda x, i: x[:, i], lambda x, i: x[i, ..., i - 1],
    lambda x, i: x[None, i],
    lambda x, i: x[cg.stack([i, i - 1])], lambda x, i: x[i, cg.stack([i, 0 * i])], lambda x, i: cg.take(x, i, axis=1),
    lambda x, i: written(x, i, (i, slice(1, 3)), 7.0), lambda x, i: written(x, i, i, x[0] * 2),
    lambda x, i: written(x, i, (slice(None), i), x[:, 0]),
    lambda x, i: written(x, i, (i, slice(None), None), x[1][:, None]),
    lambda x, i: written(x, i, (cg.stack([i, i - 1]), slice(None), ), x[:2] + 1),
    lambda x, i: written(x, i, (i, slice(0, 4), cg.stack([i, 0 * i])), 2.0) if x.ndim == 3 else x,
    lambda x, i: written(x, i, x > 0.3, 7.0), lambda x, i: written(x, i, x[..., 0] > 0, x[0, 0]),
    lambda x, i: cg.index_add(x, 1, cg.stack([i, 0 * i]), x[:, :2] * 3), lambda x, i: cg.one_hot(i, 5) * x[0],
], ids=range(18))
@pytest.mark.parametrize("mapped", [(0, 0), (None, 0), (0, None)])
def test_indices_with_lanes(f, mapped):
    """x[i] and x[i] = v, where i is a number or an array of which each lane has its own."""
    x, i = ROWS_ if mapped[0] == 0 else ROWS_[0], PICKED if mapped[1] == 0 else PICKED[1]
    lanes.warned.clear()
    got = vmap(f, mapped)(cg.tensor(x), cg.tensor(i))
    for k in range(3):
        one = f(cg.tensor(x[k] if mapped[0] == 0 else x), cg.tensor(i[k] if mapped[1] == 0 else i))
        np.testing.assert_array_equal(got[k].numpy(), one.numpy())
    assert not lanes.warned
    if mapped[0] == 0:
        pull = vmap(lambda x, i: grad(lambda x: (f(x, i) ** 2).sum())(x), mapped)
        for k in range(3):
            with cg.record():
                one = cg.tensor(x[k]).attach_grad()
                (f(one, cg.tensor(i[k] if mapped[1] == 0 else i)) ** 2).sum().backward()
            np.testing.assert_allclose(pull(cg.tensor(x), cg.tensor(i))[k].numpy(), one.grad.numpy(), 1e-12)


def written(x, i, index, v):
    """A copy of x, of which each lane has its own, with v at an index."""
    y = x * (0 * i.astype("float64") + 1)
    y[index] = v
    return y


# ---- values that leave a transformation ------------------------------------------------------------------------------

@pytest.mark.parametrize("value", [
    lambda f, x: value_and_grad(f)(x)[0], lambda f, x: vjp(f, x)[0], lambda f, x: linearize(f, x)[0],
    lambda f, x: value_and_grad(lambda x: (f(x), f(x)), has_aux=True)(x)[0][1],
    lambda f, x: jvp(f, (x,), (x,))[0], lambda f, x: jacobian(lambda x: (x * 2, f(x)), has_aux=True)(x)[1],
    lambda f, x: value_and_grad(lambda x: vjp(f, x)[0])(x)[0],
], ids=["value_and_grad", "vjp", "linearize", "aux", "jvp", "jacobian aux", "nested"])
def test_values_keep_their_derivatives_at_the_levels_outside(value):
    def f(x): return (cg.sin(x) ** 2).sum()

    x, t = f64(3), f64(3, seed=1)
    y, dy = jvp(lambda x: value(f, x), (x,), (t,))
    near(y, f(x))
    near(dy, (cg.sin(2 * x) * t).sum())
    near(grad(lambda x: value(f, x))(x), cg.sin(2 * x))
    near(vmap(lambda x: value(f, x))(cg.stack([x, t])), [f(x).item(), f(t).item()])
    near(jvp(vmap(lambda x: value(f, x)), (cg.stack([x, t]),), (cg.ones((2, 3), dtype="float64"),))[1],
         [cg.sin(2 * x).sum().item(), cg.sin(2 * t).sum().item()])
    assert y.grad_fn is dy.grad_fn is value(f, x).grad_fn is None


@pytest.mark.parametrize("f", [
    lambda x: cg.concat([x, cg.arange(3)]), lambda x: cg.stack([x, cg.arange(1, 4)]),
    lambda x: cg.r_[x, 5:8], lambda x: cg.concat([x, cg.tensor([True])]),
])
def test_integers_beside_tangents_have_none(f):
    x, t = f64(3), f64(3, seed=1)
    y, dy = jvp(f, (x,), (t,))
    near(y, f(x))
    wanted = np.zeros(y.shape)
    wanted.reshape(-1)[:3] = t
    near(dy, wanted)
