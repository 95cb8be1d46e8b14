"""log cosh as a Function in Python whose loops are compiled."""

import numpy as np
import pytest
from cygrad_log_cosh_loop import log_cosh, log_cosh_grad

import cygrad as cg


class Looped(cg.autograd.Function):
    """y = log cosh x        dx = g tanh x"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = cg.empty(x.shape, x.dtype)
        log_cosh(x.numpy().reshape(-1), y.numpy().reshape(-1))
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = cg.empty(x.shape, x.dtype)
        log_cosh_grad(g.numpy().reshape(-1), x.numpy().reshape(-1), dx.numpy().reshape(-1))
        return dx


@pytest.fixture(autouse=True)
def no_leak():
    with cg.testing.assert_no_leak():
        yield


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("see", [lambda x: x, lambda x: x.T, lambda x: x[::2, 1:], lambda x: x[:0]],
                         ids=["dense", "transposed", "strided", "empty"])
def test_value_and_gradient(dtype, rtol, see):
    x = cg.tensor([[-1000.0, -3.0, -1.0], [0.5, 1.0, 50.0]], dtype=dtype).attach_grad()
    with cg.record():
        y = Looped.apply(see(x))
    y.backward()
    values, reached = x.detach().numpy().astype("float64"), np.zeros(6)
    reached[see(np.arange(6).reshape(2, 3)).ravel()] = 1
    np.testing.assert_allclose(y.detach().numpy(), see(np.logaddexp(values, -values) - np.log(2)), rtol=rtol)
    np.testing.assert_allclose(x.grad.numpy(), np.tanh(values) * reached.reshape(2, 3), rtol=rtol)


def test_it_allocates_one_result_and_one_gradient():
    x = cg.ones((10, 10)).attach_grad()
    with cg.record() as tape:
        h = x + 1
        with cg.memory.events() as log: y = Looped.apply(h)
    assert tape.saved_bytes == 400 and sum(kind == "allocate" for kind, *_ in log) == 1
    with cg.memory.events() as log:
        del h
        y.backward()
    assert sum(kind == "allocate" for kind, *_ in log) == 2         # the head gradient and dx


def test_arrays_of_two_dtypes_are_refused():
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        log_cosh(np.ones(2, "float32"), np.ones(2, "float64"))
