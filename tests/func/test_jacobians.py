"""jacobian and hessian of functions of several arguments and results, of any shapes."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, hessian, jacobian, jvp, vmap

MODES = pytest.mark.parametrize("mode", ["forward", "reverse", None])


def near(x, y, tol=1e-9):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def f64(*shape, seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape))


def differences(f, x, h=1e-6):
    """The Jacobian of a function of an array by central differences."""
    x = np.asarray(x)
    columns = []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = h
        e = e.reshape(x.shape)
        columns.append((np.asarray(f(cg.tensor(x + e))) - np.asarray(f(cg.tensor(x - e)))) / (2 * h))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


@MODES
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 2)])
def test_shapes_are_those_of_result_and_argument(shape, mode):
    w = f64(4, int(np.prod(shape)))
    def f(x): return cg.tanh(w @ x.reshape(-1)).reshape(2, 2)

    x = f64(*shape, seed=1)
    j = jacobian(f, mode=mode)(x)
    assert j.shape == (2, 2, *shape) and j.dtype == "float64"
    near(j, differences(f, x), 1e-7)


@MODES
def test_several_arguments_and_results(mode):
    x, y = f64(2), f64(3, seed=1)
    def f(x, y): return (x.sum() * y, {"x": x ** 2})

    j = jacobian(f, (0, 1), mode=mode)(x, y)
    assert isinstance(j, tuple) and isinstance(j[0], tuple)
    near(j[0][0], np.asarray(y)[:, None] * np.ones((1, 2)))
    near(j[0][1], np.asarray(x).sum() * np.eye(3))
    near(j[1]["x"][0], np.diag(2 * np.asarray(x)))
    near(j[1]["x"][1], np.zeros((2, 3)))
    only = jacobian(f, 1, mode=mode)(x, y)
    near(only[0], j[0][1])
    near(jacobian(f, (1, 0), mode=mode)(x, y)[0][1], j[0][0])


@MODES
def test_what_does_not_depend_has_zeros(mode):
    x = f64(3)
    near(jacobian(lambda x: cg.ones(2, dtype="float64"), mode=mode)(x), np.zeros((2, 3)))
    near(jacobian(lambda x, y: x * 2, 1, mode=mode)(x, x), np.zeros((3, 3)))


@MODES
def test_no_elements(mode):
    """The Jacobian of a result of size 0, or by an argument of size 0, has the shape of both."""
    x, none = f64(3), cg.zeros((0,), dtype="float64")
    assert jacobian(lambda x: x[:0], mode=mode)(x).shape == (0, 3)
    assert jacobian(lambda x: none.reshape(2, 0) * x.sum(), mode=mode)(x).shape == (2, 0, 3)
    assert jacobian(lambda n: cg.ones((2, 2), dtype="float64") * n.sum(), mode=mode)(none).shape == (2, 2, 0)
    assert jacobian(lambda n: n, mode=mode)(none).shape == (0, 0)
    j = jacobian(lambda x, n: {"a": x[:0], "b": 2 * x}, (0, 1), mode=mode)(x, none)
    assert j["a"][0].shape == (0, 3) and j["a"][1].shape == (0, 0) and j["b"][1].shape == (3, 0)
    near(j["b"][0], 2 * np.eye(3))
    assert jacobian(lambda n: (n, 3), has_aux=True, mode=mode)(none)[1] == 3
    assert vmap(jacobian(lambda x: x[:0], mode=mode))(f64(4, 3)).shape == (4, 0, 3)
    near(jacobian(lambda x: [], mode="reverse")(x), [])


def test_hessians_without_elements():
    assert hessian(lambda x: x.sum())(cg.zeros((0,))).shape == (0, 0)
    assert hessian(lambda x: (x ** 2).sum())(cg.zeros((2, 0))).shape == (2, 0, 2, 0)
    assert vmap(hessian(lambda x: x.sum()))(cg.zeros((3, 0))).shape == (3, 0, 0)


@MODES
def test_integer_results_have_no_jacobian(mode):
    with pytest.raises(TypeError, match="^jacobian: the result is int64"): jacobian(cg.argmax, mode=mode)(f64(3))


@MODES
def test_compositions_with_lanes(mode):
    x = f64(4, 3)
    each = vmap(jacobian(lambda x: x ** 3 * x.sum(), mode=mode))(x)
    for k in range(4): near(each[k], jacobian(lambda x: x ** 3 * x.sum())(x[k]))
    j = jacobian(vmap(lambda x: (x ** 3).sum()), mode=mode)(x)
    assert j.shape == (4, 4, 3)
    near(j[1, 1], 3 * np.asarray(x)[1] ** 2)
    near(j[1, 2], np.zeros(3))


@MODES
def test_compositions_with_tangents_and_gradients(mode):
    x, t = f64(3), f64(3, seed=1)
    def f(x): return cg.sin(x) * x.sum()

    def of_x(x): return jacobian(f, mode=mode)(x)
    near(jvp(of_x, (x,), (t,))[1], np.tensordot(differences(of_x, x), np.asarray(t), 1), 1e-7)
    near(grad(lambda x: (of_x(x) ** 2).sum())(x), differences(lambda x: (of_x(x) ** 2).sum(), x), 1e-6)


def test_the_hessian_of_a_quadratic_function():
    m = f64(5, 5)
    h = hessian(lambda x: x @ m @ x)(f64(5, seed=1))
    near(h, np.asarray(m) + np.asarray(m).T)
    a = f64(5, 4)
    near(hessian(lambda a: cg.sin(a).sum())(a).reshape(20, 20), np.diag(-np.sin(np.asarray(a)).ravel()))


def test_the_hessian_by_several_arguments():
    x, y = f64(2), f64(2, seed=1)
    h = hessian(lambda x, y: (x * x * y).sum(), (0, 1))(x, y)
    near(h[0][0], np.diag(2 * np.asarray(y)))
    near(h[0][1], np.diag(2 * np.asarray(x)))
    near(h[1][0], np.diag(2 * np.asarray(x)))
    near(h[1][1], np.zeros((2, 2)))
    h = hessian(lambda p: (p["x"] ** 2 * p["y"]).sum())({"x": x, "y": y})
    near(h["x"]["y"], np.diag(2 * np.asarray(x)))
    h, aux = hessian(lambda x: ((x ** 3).sum(), "aux"), has_aux=True)(x)
    near(h, np.diag(6 * np.asarray(x)))
    assert aux == "aux"


def test_errors_name_the_hessian():
    with pytest.raises(ValueError, match="^hessian: the function must return a number"): hessian(lambda x: x)(f64(2))


def test_third_derivatives():
    x = f64(2)
    found = jacobian(hessian(lambda x: (x ** 4).sum() + x[0] * x[1] ** 2))(x)
    want = np.zeros((2, 2, 2))
    for i in range(2): want[i, i, i] = 24 * np.asarray(x)[i]
    want[0, 1, 1] = want[1, 0, 1] = want[1, 1, 0] = 2
    near(want[1, 1, 1], 24 * np.asarray(x)[1])
    near(found, want)
