"""grad, value_and_grad, vjp, jvp, linearize and hvp: what the suites of HIPS autograd and torch.func ask of them."""

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, hvp, jacobian, jvp, linearize, value_and_grad, vjp, vmap


def near(x, y, tol=1e-9):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def f64(*shape, seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape))


def slope(f, x, h=1e-6):
    """The derivative of a function of a number by central differences."""
    return (float(f(x + h)) - float(f(x - h))) / (2 * h)


def sum_of_squares(x): return (x * x).sum()


# ---- arguments -------------------------------------------------------------------------------------------------------

def many(a, b, c, d, e, f=1.1, g=9.0):
    return a + cg.sin(b) + cg.cosh(c) + cg.cos(d) + cg.tan(e) + f + g


def test_some_of_many_arguments():
    args = [cg.tensor(np.float64(v)) for v in (0.5, -0.3, 0.2, -1.1, 0.7)]
    found = grad(many, (3, 1))(*args, f=0.6, g=-0.1)
    assert isinstance(found, tuple)
    near(found, [-np.sin(-1.1), np.cos(-0.3)])
    near(grad(many, -1)(*args), 1 / np.cos(0.7) ** 2)
    (only,) = grad(many, [2])(*args)
    near(only, np.sinh(0.2))


def test_keyword_arguments_are_passed_on_and_not_differentiated():
    x, y = f64(3), f64(3, seed=1)
    def f(x, y): return (x * y).sum()
    near(grad(f)(x, y=y), np.asarray(y))
    near(jacobian(lambda x, *, k: k * x)(x, k=2.0), 2 * np.eye(3))
    near(grad(partial(f, y=y))(x), np.asarray(y))


@pytest.mark.parametrize("argnums", [(), 0.0, (0.0,), ((0, 1), 1), True])
def test_positions_must_be_integers(argnums):
    with pytest.raises(TypeError, match="argnums must be the position"): grad(many, argnums)(1.0, 2.0)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_positions_must_exist(argnums):
    with pytest.raises(ValueError, match="called with 2 positional"): grad(lambda x, y: x * y, argnums)(1.0, 2.0)


@pytest.mark.parametrize("x", [3, np.int64(3), [np.array([1, 2])], np.arange(3), np.array([True])])
@pytest.mark.parametrize("f", [grad, value_and_grad, jacobian])
def test_integers_have_no_derivative(f, x):
    if isinstance(x, list): x = cg.tensor(x[0])
    with pytest.raises(TypeError, match="only floats have derivatives"): f(sum_of_squares)(x)
    with pytest.raises(TypeError, match="only floats have derivatives"): jvp(sum_of_squares, (x,), (x,))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_have_the_dtype_of_the_argument(dtype):
    x = cg.ones((3, 2), dtype=dtype)
    assert grad(sum_of_squares)(x).dtype == dtype and grad(sum_of_squares)(x.numpy()).dtype == dtype
    y, dy = jvp(cg.sin, (x,), (x,))
    assert y.dtype == dy.dtype == dtype and jacobian(cg.sin)(x).dtype == dtype
    assert grad(lambda x: x * x)(np.dtype(dtype).type(3)).dtype == dtype


def test_numbers_and_arrays_are_arguments():
    near(grad(lambda x: 3.0 * x ** 3.2)(1.7), 3 * 3.2 * 1.7 ** 2.2, 1e-6)
    near(grad(sum_of_squares)(np.array([1.0, 2.0])), [2, 4])
    near(grad(lambda xs: xs[0] * xs[1])([1.0, 2.0]), [2, 1])
    near(grad(lambda x: cg.tanh(x) * x)(np.float64(0.3)), slope(lambda x: cg.tanh(x) * x, np.float64(0.3)), 1e-8)


# ---- containers ------------------------------------------------------------------------------------------------------

@dataclass
class Line:
    slope: Any
    start: Any
    name: str = "line"


Pair = namedtuple("Pair", "a b")


def test_containers_of_every_kind():
    x, y = f64(3), f64(3, seed=1)
    given = {"a": (x,), "b": [x, (y,)], "n": None, "s": "text"}
    g = grad(lambda p: (p["a"][0] * p["b"][1][0] + p["b"][0]).sum())(given)
    assert g["n"] is None and g["s"] == "text" and isinstance(g["a"], tuple) and isinstance(g["b"], list)
    near(g["a"][0], np.asarray(y))
    near(g["b"][0], np.ones(3))
    near(g["b"][1][0], np.asarray(x))
    g = grad(lambda p: (p.a * p.b).sum())(Pair(x, y))
    assert type(g) is Pair
    near(g.b, np.asarray(x))
    g = grad(lambda p: (p.slope * x + p.start).sum())(Line(y, y))
    assert type(g) is Line and g.name == "line"
    near(g.slope, np.asarray(x))


def test_dicts_keep_their_class():
    x = f64(3)
    ordered = grad(lambda p: (p["b"] * p["a"]).sum())(OrderedDict(b=x, a=2 * x))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]
    given = defaultdict(list, a=x)
    found = grad(lambda p: sum_of_squares(p["a"]))(given)
    assert type(found) is defaultdict and found.default_factory is list and list(found) == list(given) == ["a"]
    near(found["a"], 2 * np.asarray(x))
    near(given["a"], np.asarray(x))


def test_containers_that_are_empty():
    assert grad(lambda p: cg.tensor(1.0))({}) == {}
    assert grad(lambda p, x: x * x, (0, 1))([], 3.0) == ([], 6.0)


def test_a_container_inside_the_function():
    """A gradient flows through tensors that the function puts into containers, in any order and more than once."""
    def f(x):
        parts = {"a": x * 2, "b": [cg.sin(x), x]}
        parts["c"] = parts["a"] + parts["b"][0]
        return sum((v if isinstance(v, cg.Tensor) else v[1]).sum() for v in parts.values())

    x = f64(4)
    near(grad(f)(x), 2 + 1 + 2 + np.cos(np.asarray(x)))


# ---- what functions may do -------------------------------------------------------------------------------------------

def test_what_does_not_depend_on_the_argument_has_zeros():
    x = f64(3)
    near(grad(lambda x: cg.tensor(1.0))(x), np.zeros(3))
    near(grad(lambda x, y: sum_of_squares(y), (0, 1))(x, x)[0], np.zeros(3))
    near(jvp(lambda x: cg.ones(2), (x,), (x,))[1], np.zeros(2))
    near(jvp(lambda x: 1.0, (x,), (x,))[1], 0)
    near(vjp(lambda x: cg.ones(2), x)[1](cg.ones(2))[0], np.zeros(3))
    near(linearize(lambda x: cg.ones(2), x)[1](x), np.zeros(2))
    near(grad(grad(lambda x: 3 * x))(2.0), 0)


def test_python_decides_by_values():
    """Branches and loops run as Python, and the derivative is that of what ran."""
    def f(x):
        y = x
        while float(y.detach()) < 10: y = y * x
        return y if float(y.detach()) > 11 else 100 * y

    near(grad(f)(2.0), 4 * 2.0 ** 3)
    near(grad(f)(3.2), 100 * 2 * 3.2, 1e-6)
    near(jvp(f, (cg.tensor(2.0),), (cg.tensor(1.0),))[1], 32)


def test_writes_in_place():
    def doubled(x):
        y = x * 1
        y[0] = y[0] * 2
        y += x
        return y

    x = f64(3)
    near(grad(lambda x: doubled(x).sum())(x), [3, 2, 2])
    near(jacobian(doubled)(x), np.diag([3, 2, 2]))

    def over_views(x):
        y = x.copy()
        part = y[:2]
        part *= 3
        return (y * y).sum()

    near(grad(over_views)(x), [18, 18, 2] * np.asarray(x))


def test_an_argument_is_not_written():
    def f(x):
        x += 1
        return x.sum()

    x = f64(3)
    before = np.array(x)
    with pytest.raises(cg.InplaceError, match="leaf variable"): grad(f)(x)
    near(x, before)


def test_stopped_gradients_stop_tangents_too():
    x = f64(3)
    def f(x): return (cg.stop_gradient(x) * x).sum()

    near(grad(f)(x), np.asarray(x))
    near(jvp(f, (x,), (cg.ones_like(x),))[1], np.asarray(x).sum())
    near(jvp(grad(f), (x,), (cg.ones_like(x),))[1], np.zeros(3))
    near(vmap(grad(f))(cg.stack([x, 2 * x]))[1], 2 * np.asarray(x))


@pytest.mark.parametrize("read", [np.asarray, lambda x: x.numpy(), np.from_dlpack, memoryview])
def test_what_other_libraries_read_loses_no_tangent(read):
    """Arrays on the memory of a tensor that has a tangent, or that gradients flow through, raise."""
    x = f64(3)
    def f(x): return (x * cg.tensor(np.asarray(read(x * 2)))).sum()

    with pytest.raises(RuntimeError, match="has a tangent, inside of func.jvp"): jvp(f, (x,), (x,))
    with pytest.raises(RuntimeError, match="gradients flow through"): grad(f)(x)
    def constant(x): return (x * cg.tensor(np.asarray(read((x * 2).detach())))).sum()

    near(jvp(constant, (x,), (cg.ones_like(x),))[1], 2 * np.asarray(x).sum())
    near(grad(constant)(x), 2 * np.asarray(x))
    assert jvp(lambda x: x * float(x.sum()) if repr(x) and x.tolist() else x, (x,), (x,))[1].shape == (3,)


def test_scopes_without_recording_hold_inside_of_grad():
    def f(x):
        with cg.no_grad(): y = x * x
        return (x * y).sum()

    x = f64(3)
    near(grad(f)(x), np.asarray(x) ** 2)
    near(grad(lambda x: grad(f)(x).sum())(x), np.zeros(3))


def test_a_surrounding_scope_changes_nothing():
    x = f64(3)
    with cg.no_grad(): near(grad(sum_of_squares)(x), 2 * np.asarray(x))
    with cg.pause(): near(jvp(sum_of_squares, (x,), (x,))[1], 2 * (np.asarray(x) ** 2).sum())


def test_an_error_leaves_the_thread_as_it_was():
    def broken(x): raise KeyError("broken")

    for call in (lambda: grad(broken)(1.0), lambda: vmap(broken)(cg.ones(2)), lambda: jvp(broken, (1.0,), (1.0,)),
                 lambda: vmap(lambda x: jvp(broken, (x,), (x,)))(cg.ones(2)), lambda: jacobian(broken)(1.0)):
        with pytest.raises(KeyError, match="broken"): call()
        assert not cg.is_recording()
    near(grad(sum_of_squares)(f64(2)), 2 * np.asarray(f64(2)))
    assert vmap(lambda x: x.sum())(cg.ones((2, 3))).tolist() == [3, 3]


def test_tensors_that_escape_can_be_used():
    kept = []

    def f(x):
        kept.append(cg.sin(x))
        return kept[-1].sum()

    x = f64(3)
    grad(f)(x)
    near(kept[0] * 2, 2 * np.sin(np.asarray(x)))
    jvp(f, (x,), (x,))
    near(kept[1] * 2, 2 * np.sin(np.asarray(x)))
    vmap(f)(cg.stack([x, x]))
    with pytest.raises(RuntimeError, match="has no values"): kept[2].numpy()
    kept.clear()


def test_generators_inside_of_functions():
    """The numbers drawn are those of the function alone, and constants."""
    def f(x): return (x * cg.random.Generator(3).normal((4,), dtype="float64")).sum()

    x = f64(4)
    near(grad(f)(x), cg.random.Generator(3).normal((4,), dtype="float64"))
    near(jvp(f, (x,), (x,))[1], f(x))


# ---- results ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("f", [grad, value_and_grad])
def test_results_must_be_one_number(f):
    x = f64(3)
    for wrong, error in ((lambda x: x, ValueError), (lambda x: x.sum().reshape(1), ValueError),
                         (lambda x: cg.argmax(x), ValueError), (lambda x: 1.0, TypeError), (lambda x: None, TypeError),
                         (lambda x: (x.sum(), 1), TypeError)):
        with pytest.raises(error, match=rf"^{f.__name__}: the function must return a"): f(wrong)(x)


def test_auxiliary_data():
    x = f64(3)
    def f(x): return sum_of_squares(x), {"x": 2 * x, "index": cg.argmax(x), "text": "kept"}

    g, aux = grad(f, has_aux=True)(x)
    near(g, 2 * np.asarray(x))
    near(aux["x"], 2 * np.asarray(x))
    assert aux["text"] == "kept" and aux["index"] == np.asarray(x).argmax() and not aux["x"].requires_grad
    (value, aux), g = value_and_grad(f, has_aux=True)(x)
    near(value, (np.asarray(x) ** 2).sum())
    assert aux["text"] == "kept" and not value.requires_grad
    value, pull, aux = vjp(lambda x: (x * x, x), x, has_aux=True)
    near(pull(x)[0], 2 * np.asarray(x) ** 2)
    assert not aux.requires_grad
    value, tangent, aux = jvp(lambda x: (x * x, "text"), (x,), (x,), has_aux=True)
    near(tangent, 2 * np.asarray(x) ** 2)
    assert aux == "text"
    j, aux = jacobian(lambda x: ({"y": x * x}, x), has_aux=True)(x)
    near(j["y"], np.diag(2 * np.asarray(x)))
    near(aux, np.asarray(x))


@pytest.mark.parametrize("wrong", [lambda x: x.sum(), lambda x: (x.sum(), 1, 2), lambda x: [x.sum(), 1]])
def test_auxiliary_data_comes_in_pairs(wrong):
    for call in (lambda: grad(wrong, has_aux=True)(f64(2)), lambda: vjp(wrong, f64(2), has_aux=True),
                 lambda: jvp(wrong, (f64(2),), (f64(2),), has_aux=True)):
        with pytest.raises(TypeError, match="must return a pair"): call()


def test_auxiliary_data_of_nested_gradients():
    def f(x): return x ** 3, x
    def slopes(x):
        g, aux = grad(f, has_aux=True)(x)
        return g, (g, aux)

    (value, (g, aux)), second = value_and_grad(slopes, has_aux=True)(2.0)
    near([value, g, aux, second], [12, 12, 2, 12])


def test_containers_of_results():
    x, y = f64(3), f64(3, seed=1)
    value, tangent = jvp(lambda x, y: {"s": x * y, "t": [x]}, (x, y), (y, x))
    near(tangent["s"], np.asarray(x) ** 2 + np.asarray(y) ** 2)
    near(tangent["t"][0], np.asarray(y))
    value, pull = vjp(lambda x, y: {"s": x * y, "t": [x]}, x, y)
    dx, dy = pull({"s": y, "t": [x]})
    near(dx, np.asarray(y) ** 2 + np.asarray(x))
    near(dy, np.asarray(x) * np.asarray(y))
    with pytest.raises(ValueError, match="of the same form"): pull({"s": y, "u": [x]})


def test_a_result_that_is_an_argument():
    x = f64(3)
    value, pull = vjp(lambda x: (x, x), x)
    near(pull((x, 2 * x))[0], 3 * np.asarray(x))
    near(jvp(lambda x: x, (x,), (2 * x,))[1], 2 * np.asarray(x))
    near(grad(lambda x: x)(2.0), 1)


def test_functions_without_derivative_have_zeros():
    x = cg.tensor([0.4, 1.6])
    for f in (cg.sign, cg.floor, cg.ceil, cg.round, cg.heaviside if hasattr(cg, "heaviside") else cg.sign):
        near(jvp(f, (x,), (cg.ones(2),))[1], [0, 0])
        near(vjp(f, x)[1](cg.ones(2))[0], [0, 0])
    y, dy = jvp(lambda x: (cg.argmax(x), x > 1), (x,), (x,))
    assert dy[0] == 0 and dy[1].tolist() == [False, False]


# ---- forward mode and pullbacks --------------------------------------------------------------------------------------

@pytest.mark.parametrize("primals, tangents, error", [
    (1.0, 1.0, TypeError), ((1.0,), (1.0, 2.0), ValueError), ((np.ones(2),), (np.ones(3),), ValueError),
    ((np.ones(2),), (np.ones(2, "float32"),), ValueError), (({"a": 1.0},), ({"b": 1.0},), ValueError),
    (([1.0, 2.0],), ([1.0, [2.0]],), ValueError), ((np.ones((2, 1)),), (np.ones(2),), ValueError)])
def test_tangents_must_be_like_primals(primals, tangents, error):
    with pytest.raises(error, match="^jvp: "): jvp(lambda x: x, primals, tangents)


def test_a_pullback_may_be_nested_and_vectorized():
    x = f64(3)
    y, pull = vjp(cg.sin, x)
    rows = vmap(pull)(cg.eye(3, dtype="float64"))[0]
    near(rows, np.diag(np.cos(np.asarray(x))))
    near(grad(lambda v: sum_of_squares(vjp(cg.sin, x)[1](v)[0]))(x), 2 * np.asarray(x) * np.cos(np.asarray(x)) ** 2)


def test_a_linear_map_may_be_vectorized():
    x = f64(3)
    y, push = linearize(lambda x: cg.sin(x) * x.sum(), x)
    columns = vmap(push)(cg.eye(3, dtype="float64"))
    near(columns.T, jacobian(lambda x: cg.sin(x) * x.sum())(x))
    p = {"a": x, "b": [x]}
    y, push = linearize(lambda p: p["a"] * p["b"][0], p)
    near(push(p), 2 * np.asarray(x) ** 2)
    with pytest.raises(ValueError, match="linearize: tangent 1 is at"): push({"a": x, "c": [x]})


def test_vjp_is_the_transpose_of_jvp():
    rng = np.random.default_rng(0)
    w = f64(4, 3)
    def f(x): return {"a": cg.tanh(w @ x), "b": x.sum() * x}

    x, t = f64(3, seed=1), f64(3, seed=2)
    y, pull = vjp(f, x)
    heads = {k: cg.tensor(rng.standard_normal(v.shape)) for k, v in y.items()}
    _, dy = jvp(f, (x,), (t,))
    left = sum(float((heads[k] * dy[k]).sum()) for k in y)
    near(left, float((pull(heads)[0] * t).sum()))


def test_products_with_hessians_of_any_shape():
    for shape in ((5,), (5, 4), (2, 3, 4)):
        x, v = f64(*shape), f64(*shape, seed=1)
        near(hvp(lambda x: cg.sin(x).sum(), (x,), (v,))[0], -np.sin(np.asarray(x)) * np.asarray(v))
    a, b = f64(3), f64(3, seed=1)
    da, db = hvp(lambda a, b: (a * a * b).sum(), (a, b), (b, a))
    near(da, 2 * np.asarray(b) ** 2 + 2 * np.asarray(a) ** 2)
    near(db, 2 * np.asarray(a) * np.asarray(b))


def test_the_gauss_newton_product_is_a_composition():
    """J' H J v for loss(f(x)), as HIPS's make_ggnvp: jvp, the product with the loss's Hessian, vjp."""
    w = f64(6, 4)
    def f(x): return cg.tanh(w @ x)
    def loss(y): return (y ** 4).sum()

    def product(x, v):
        y, pull = vjp(f, x)
        return pull(hvp(loss, (y,), (jvp(f, (x,), (v,))[1],))[0])[0]

    x, v = f64(4, seed=1), f64(4, seed=2)
    j, y = np.asarray(jacobian(f)(x)), np.asarray(f(x))
    near(product(x, v), j.T @ (12 * y ** 2 * (j @ np.asarray(v))))
    near(vmap(lambda v: product(x, v))(cg.eye(4, dtype="float64")), j.T @ np.diag(12 * y ** 2) @ j)


def test_elementwise_derivatives():
    """HIPS's elementwise_grad, in three ways."""
    def f(x): return x + cg.sin(x) + cg.cosh(x)

    x = f64(10)
    want = 1 + np.cos(np.asarray(x)) + np.sinh(np.asarray(x))
    near(jvp(f, (x,), (cg.ones_like(x),))[1], want)
    near(vmap(grad(f))(x), want)
    near(grad(lambda x: f(x).sum())(x), want)


def test_orders_of_derivatives_of_a_tanh():
    """Eight derivatives of tanh at 0.3, in forward and in reverse mode, and by turns."""
    want = np.polynomial.Polynomial([0, 1])             # tanh^(n) = p_n(tanh), p_{n+1} = p_n' (1 - y^2)
    forward = reverse = turns = cg.tanh
    def pushed(f): return lambda x: jvp(f, (x,), (cg.ones_like(x),))[1]

    x = cg.tensor(np.float64(0.3))
    for n in range(6):
        want = want.deriv() * np.polynomial.Polynomial([1, 0, -1])
        forward, reverse, turns = pushed(forward), grad(reverse), (pushed, grad)[n % 2](turns)
        for f in (forward, reverse, turns): near(f(x), want(np.tanh(0.3)), 1e-8)


def test_derivatives_by_hyperparameters():
    """The gradient of a training run by its rate, through three steps of gradient descent."""
    x0 = f64(4)
    def trained(rate):
        x = x0
        for _ in range(3): x = x - rate * grad(lambda x: (x ** 4).sum())(x)
        return (x ** 4).sum()

    rate = cg.tensor(np.float64(0.05))
    near(grad(trained)(rate), slope(trained, np.float64(0.05)), 1e-6)
    near(jvp(trained, (rate,), (cg.ones_like(rate),))[1], slope(trained, np.float64(0.05)), 1e-6)
