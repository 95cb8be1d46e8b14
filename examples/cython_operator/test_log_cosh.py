"""The tests that cygrad has for its own operators, for log_cosh."""

import numpy as np
import pytest
from cygrad_log_cosh import log_cosh

import cygrad as cg

POINTS = np.array([[-1000.0, -3.0, -1.0], [-1e-3, 0.0, 0.5], [1.0, 2.0, 50.0]])


@pytest.fixture(autouse=True)
def no_leak():
    with cg.testing.assert_no_leak():
        yield


def expected(x):
    """log cosh x and tanh x in extended precision."""
    x = x.astype(np.longdouble)
    small = np.log1p(2 * np.sinh(np.clip(x, -1, 1) / 2) ** 2)
    return np.where(np.abs(x) < 1, small, np.logaddexp(x, -x) - np.log(np.longdouble(2))), np.tanh(x)


@pytest.mark.parametrize("dtype, rtol", [("float32", 3e-7), ("float64", 2e-15)])
@pytest.mark.parametrize("see", [lambda x: x, lambda x: x.T, lambda x: x[::2, 1:], lambda x: x[:0]],
                         ids=["dense", "transposed", "strided", "empty"])
def test_value_and_gradient(dtype, rtol, see):
    x = cg.tensor(POINTS, dtype=dtype).attach_grad()
    with cg.record():
        y = log_cosh(see(x))
    y.backward()
    value, slope = expected(x.numpy())
    assert y.dtype == x.dtype
    np.testing.assert_allclose(y.detach().numpy(), see(value).astype(dtype), rtol=rtol)
    reached = see(np.arange(9).reshape(3, 3))
    wanted = np.zeros(9)
    wanted[reached] = slope.ravel()[reached]
    np.testing.assert_allclose(x.grad.numpy(), wanted.reshape(3, 3), rtol=rtol)


def test_special_values():
    y = log_cosh(cg.tensor([np.inf, -np.inf, np.nan, 0.0, -0.0]))
    np.testing.assert_array_equal(y.numpy(), np.array([np.inf, np.inf, np.nan, 0, 0], "f4"))
    assert log_cosh([0, 1]).dtype == cg.get_default_dtype()
    assert log_cosh(cg.arange(3)).dtype == cg.get_default_dtype()


def test_gradients_of_two_orders():
    assert cg.testing.gradcheck(log_cosh, cg.tensor([-2.0, -0.4, 0.0, 0.3, 1.5]), order=2)


def test_kernel_and_formula_agree():
    x = cg.tensor(np.linspace(-5, 5, 101)).attach_grad()
    with cg.record():
        (by_formula,) = cg.autograd.grad([log_cosh(x)], [x], create_graph=True)
    with cg.record():
        y = log_cosh(x)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), by_formula.detach().numpy(), rtol=1e-15)


def test_it_keeps_its_input_and_gives_it_back():
    x = cg.ones((10, 10)).attach_grad()
    with cg.record() as tape:
        h = x + 1
        y = log_cosh(h)
    assert (tape.nodes, tape.saved_bytes) == (2, 400)
    with cg.memory.events() as log:
        del h
        y.backward()
    assert tape.saved_bytes == 0
    assert sum(kind == "allocate" for kind, *_ in log) == 1         # the head gradient; the result is written over h


def test_paused_it_is_not_recorded():
    x = cg.ones(3).attach_grad()
    with cg.record() as tape, cg.pause():
        y = log_cosh(x)
    assert tape.nodes == 0 and y.grad_fn is None and log_cosh(x).grad_fn is None


def test_what_is_kept_must_not_be_overwritten():
    x = cg.ones(3).attach_grad()
    with cg.record():
        h = x + 1
        y = log_cosh(h)
    with cg.pause():
        h.detach()[0] = 5.0
    with pytest.raises(cg.InplaceError, match="log_cosh"):
        y.backward()


def test_many_threads_give_the_same(request):
    x = cg.tensor(np.random.default_rng(0).normal(size=200_001), dtype="float32")
    before = cg.get_num_threads()
    request.addfinalizer(lambda: cg.set_num_threads(before))
    cg.set_num_threads(1)
    one = log_cosh(x).numpy()
    cg.set_num_threads(2)
    np.testing.assert_array_equal(log_cosh(x).numpy(), one)
