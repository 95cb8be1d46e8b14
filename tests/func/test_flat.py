"""cg.func.scipy: functions of containers as functions of a flat vector, as scipy.optimize calls them."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn

optimize = pytest.importorskip("scipy.optimize")


def rosenbrock(p):
    return ((1 - p["a"]) ** 2).sum() + (100 * (p["b"][0] - p["a"] ** 2) ** 2).sum()


@pytest.fixture
def flat():
    return cg.func.scipy(rosenbrock, {"a": np.zeros(2), "b": [np.full(2, 0.5)]})


def test_vectors_and_containers(flat):
    assert flat.size == 4 and flat.x0.dtype == np.float64 and flat.x0.tolist() == [0, 0, 0.5, 0.5]
    p = flat.unflatten([1, 2, 3, 4])
    assert p["a"].tolist() == [1, 2] and p["b"][0].tolist() == [3, 4] and p["a"].dtype == "float64"
    assert repr(flat).startswith("Flat(") and repr(flat).endswith("4 elements)")
    for wrong in (np.zeros(3), np.zeros((2, 2)), 1.0):
        with pytest.raises(ValueError, match="the parameters have 4 elements"): flat.unflatten(wrong)


def test_value_gradient_and_products(flat):
    x, v = np.array([0.3, -0.2, 0.1, 0.7]), np.array([1.0, 2.0, -1.0, 0.5])
    value, gradient = flat.value_and_grad(x)
    a, b = x[:2], x[2:]
    assert type(value) is float and value == pytest.approx(((1 - a) ** 2 + 100 * (b - a * a) ** 2).sum())
    np.testing.assert_allclose(gradient, [*(2 * (a - 1) - 400 * a * (b - a * a)), *(200 * (b - a * a))])
    assert flat.value(x) == value
    h = 1e-6
    slopes = (flat.value_and_grad(x + h * v)[1] - flat.value_and_grad(x - h * v)[1]) / (2 * h)
    np.testing.assert_allclose(flat.hvp(x, v), slopes, 1e-6)
    np.testing.assert_allclose(flat.jacobian(x)[0], gradient)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "trust-ncg", "Newton-CG", "SLSQP"])
def test_minimize(flat, method):
    more = {"hessp": flat.hvp} if method in ("trust-ncg", "Newton-CG") else {}
    found = optimize.minimize(flat.value_and_grad, flat.x0, jac=True, method=method, tol=1e-8, **more)
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-3)


def test_least_squares_and_root():
    t = np.linspace(0, 3, 20)
    measured = 2 * np.exp(-0.7 * t)
    flat = cg.func.scipy(lambda p: p["a"] * cg.exp(-p["k"] * t) - measured, {"a": np.float64(1), "k": np.float64(1)})
    j = flat.jacobian(flat.x0)
    assert j.shape == (20, 2) and flat.value(flat.x0).shape == (20,)
    np.testing.assert_allclose(j[:, 1], -t * np.exp(-t))
    found = optimize.least_squares(flat.value, flat.x0, jac=flat.jacobian)
    np.testing.assert_allclose(found.x, [2, 0.7])
    equations = cg.func.scipy(lambda x: cg.stack([x[0] + x[1] - 3, x[0] * x[1] - 2]), np.array([3.0, 0.0]))
    found = optimize.root(equations.value, equations.x0, jac=equations.jacobian)
    np.testing.assert_allclose(np.sort(found.x), [1, 2])


def test_results_with_dimensions_are_vectors():
    flat = cg.func.scipy(lambda p: cg.outer(p["x"], p["y"]), {"x": np.ones(2), "y": np.ones(3)})
    assert flat.value(flat.x0).shape == (6,) and flat.jacobian(flat.x0).shape == (6, 5)
    np.testing.assert_allclose(flat.jacobian(flat.x0).sum(0), [3, 3, 2, 2, 2])


def test_parameters_without_elements():
    flat = cg.func.scipy(lambda p: (p["x"] ** 2).sum() + p["none"].sum(), {"x": np.ones(2), "none": np.zeros((0, 3))})
    assert flat.size == 2 and flat.unflatten(flat.x0)["none"].shape == (0, 3)
    np.testing.assert_allclose(flat.value_and_grad(flat.x0)[1], [2, 2])
    np.testing.assert_allclose(flat.jacobian(flat.x0), [[2, 2]])
    np.testing.assert_allclose(flat.hvp(flat.x0, [1, 2]), [2, 4])


def test_integers_are_refused():
    with pytest.raises(TypeError, match="the example.'n'. is int64, and only floats"):
        cg.func.scipy(rosenbrock, {"n": np.arange(3)})


def test_a_module_fitted_by_a_quasi_newton_method():
    """The container may be a module, in float32: SciPy's vector is float64, the computation is not."""
    cg.random.seed(0)
    model = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
    x = cg.asarray(np.linspace(-2, 2, 40, dtype="float32")[:, None])
    y = cg.sin(2 * x)
    flat = cg.func.scipy(lambda m: ((m(x) - y) ** 2).mean(), model)
    before = [p.numpy().copy() for p in model.parameters()]
    assert flat.size == 31 and flat.x0.dtype == np.float64
    assert {p.dtype.name for p in flat.unflatten(flat.x0).parameters()} == {"float32"}
    found = optimize.minimize(flat.value_and_grad, flat.x0, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    fitted = flat.unflatten(found.x)
    assert found.fun < 1e-3 and float(((fitted(x) - y) ** 2).mean()) == pytest.approx(found.fun)
    for p, q in zip(model.parameters(), before, strict=True): np.testing.assert_array_equal(p.numpy(), q)


def test_python_floats_are_float64_and_the_hessian_is_that_of_func():
    flat = cg.func.scipy(lambda p: (p["a"] - 1) ** 2 * 3 + (p["a"] - p["b"]) ** 2, {"a": 2.4, "b": 0.1})
    assert flat.x0.tolist() == [2.4, 0.1]
    assert np.allclose(flat.hessian(flat.x0), [[8, -2], [-2, 2]], rtol=1e-14)
    found = optimize.minimize(flat.value_and_grad, flat.x0, jac=True, hess=flat.hessian, method="trust-exact")
    assert found.success and np.allclose(found.x, 1)
