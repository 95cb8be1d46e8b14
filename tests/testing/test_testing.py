"""gradcheck, fail_allocation, assert_no_leak: the errors that they find, and their messages."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak, fail_allocation, gradcheck


def test_gradcheck_accepts():
    assert gradcheck(lambda x, y: x * y + cg.exp(x), [np.ones((2, 3)), np.full(3, 0.5)], order=3)
    assert gradcheck(lambda x: (x * x, cg.tanh(x)), np.array([0.5, -1.5]), order=2)
    assert gradcheck(lambda x, n, k: x * x * n + k, [cg.tensor([1.0, 2.0]), 3, np.array([1, 2])])
    assert gradcheck(lambda x, y: x * 2 + y.detach(), [np.ones(2), np.ones(2)][:1] + [cg.tensor([1.0], dtype="int32")])
    assert gradcheck(lambda x: (x + 1, cg.zeros(2)), np.ones(2), order=2)


def test_gradcheck_takes_inputs_one_by_one():
    a, b = np.array([0.5, 2.0]), np.array([1.5, 3.0])
    assert gradcheck(cg.mul, a, b) and gradcheck(cg.mul, a, b, order=2) and gradcheck(cg.power, a, b, order=3)
    assert gradcheck(lambda x, n: x * x * n, a, 3, order=2)
    assert gradcheck(lambda x: x * 3, a, order=2)               # a derivative that does not depend on x
    with pytest.raises(TypeError, match="gradcheck: no input is a floating tensor"):
        gradcheck(cg.mul)


def test_gradcheck_says_at_which_order_it_failed():
    class Once(cg.autograd.Function):
        """x^2, whose backward has no derivative of its own."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            if g.requires_grad: raise ValueError("no second one")
            return g * 2 * ctx.saved_tensors[0]

    assert gradcheck(Once.apply, np.ones(2))
    with pytest.raises(ValueError, match="no second one") as caught:
        gradcheck(Once.apply, np.ones(2), order=2)
    assert "gradcheck: at derivative 2 of 2" in caught.value.__notes__
    del caught


def test_gradcheck_finds_the_wrong_element():
    def wrong(x, y):
        return (x * x).detach() + x + y

    with pytest.raises(AssertionError, match=(
        r"^gradcheck: derivative 1 for input 0, of shape \(2, 2\), is wrong at element \(0, 1\): backward gives "
        r"-?\S+, finite differences give -?\S+$"
    )):
        gradcheck(wrong, [np.array([[0.0, 2.0], [0.5, 0.5]]), np.ones(2)])


def test_gradcheck_finds_a_missing_input():
    with pytest.raises(AssertionError, match="derivative 1 for input 2, .* backward gives 0"):
        gradcheck(lambda x, n, y: x * y.detach(), [np.ones(2), 3, np.ones(2)])


def test_gradcheck_finds_a_wrong_second_derivative():
    def wrong(x):                                   # x^2 and its derivative, which is a constant here
        return (x * x).detach() + (x - x.detach()) * (2 * x).detach()

    assert gradcheck(wrong, np.array([0.5, -1.5]))
    with pytest.raises(AssertionError, match="derivative 2 for input 0"):
        gradcheck(wrong, np.array([0.5, -1.5]), order=2)


def test_gradcheck_refuses():
    random = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="f returns different values when it is called again with the same inputs"):
        gradcheck(lambda x: x * random.normal(), np.ones(2))
    with pytest.raises(AssertionError, match="f is nan at the inputs; choose them inside its domain"):
        gradcheck(cg.log, -np.ones(2))
    with pytest.raises(TypeError, match="gradcheck: output 1 of f must be a tensor, got float"):
        gradcheck(lambda x: (x, 1.0), np.ones(2))
    with pytest.raises(TypeError, match="no input is a floating tensor or array; there is nothing to differentiate"):
        gradcheck(lambda x: x, [np.array([1, 2])])
    with pytest.raises(ValueError, match="order must be an int of at least 1, got 0"):
        gradcheck(lambda x: x, np.ones(2), order=0)
    with pytest.raises(RuntimeError, match="no output of f depends on an input through recorded operations"):
        gradcheck(lambda x: x.detach(), np.ones(2))


def test_gradcheck_leaves_everything_alone():
    x = cg.tensor([1.0, 2.0], dtype="float64").attach_grad()
    given = np.array([3.0, 4.0])
    with cg.record(), assert_no_leak():
        gradcheck(lambda x, y: x * y, [x, given], order=2)
        assert cg.is_recording() and cg.is_training()
    assert x.tolist() == [1.0, 2.0] and x.grad.tolist() == [0.0, 0.0] and given.tolist() == [3.0, 4.0]


def test_fail_allocation_counts_to_n():
    with fail_allocation(3) as failure:
        a, b = cg.zeros(2), cg.zeros(2)
        with pytest.raises(MemoryError, match=r"allocation 3 of 8 bytes fails on request \(testing.fail_allocation\)"):
            cg.zeros(2)
        c = cg.zeros(2)
    assert failure.failed and failure.allocations == 4
    assert [t.tolist() for t in (a, b, c)] == [[0.0, 0.0]] * 3


def test_fail_allocation_for_ever():
    with fail_allocation(2, persistent=True):
        cg.zeros(2)
        for _ in range(3):
            with pytest.raises(MemoryError, match="fails on request"):
                cg.zeros(2)
    cg.zeros(2)


def test_fail_allocation_not_reached():
    with fail_allocation(5) as failure:
        cg.zeros(2)
    assert not failure.failed and failure.allocations == 1


def test_fail_allocation_ends_with_an_exception():
    with pytest.raises(KeyError), fail_allocation(1, persistent=True):
        raise KeyError
    cg.zeros(2)


def test_fail_allocation_refuses():
    for n in (0, -1, True, 1.0):
        with pytest.raises(ValueError, match="n must be an int of at least 1"), fail_allocation(n):
            pass
    with fail_allocation(10), pytest.raises(RuntimeError, match="another such scope is open; they do not nest"):
        with fail_allocation(1):
            pass


def test_every_allocation_of_a_step_fails_once():
    """After any failure, flags and bytes are as before the training step, and .grad is None or complete."""
    w = cg.tensor(np.ones((3, 4)), dtype="float32").requires_grad_()
    x = cg.asarray(np.ones((5, 4), "float32"))

    def step():
        with cg.record():
            loss = (cg.tanh(cg.matmul(x, w.T)) * 2).mean()
        loss.backward()

    n = 0
    while True:
        n += 1
        w.grad = None
        before = cg.memory.stats()
        with fail_allocation(n) as failure:
            try:
                step()
            except MemoryError:
                pass
        assert not cg.is_recording() and not cg.is_training()
        if not failure.failed:
            break
        assert w.grad is None
        now = cg.memory.stats()
        assert (now["live_bytes"], now["live_buffers"], now["by_category"]) == (
            before["live_bytes"], before["live_buffers"], before["by_category"])
    assert n > 4
    assert w.grad.shape == (3, 4)


def test_assert_no_leak():
    with assert_no_leak():
        x = cg.zeros(3)
        del x

    @assert_no_leak()
    def f():
        x = cg.zeros(3)
        return x.shape

    assert f() == (3,)


def test_assert_no_leak_says_what():
    with pytest.raises(AssertionError, match=(
        r"^assert_no_leak: the scope ends with \+28 live bytes in \+2 buffers \(parameters \+16, other \+12\) "
        r"compared to "
        r"its start$"
    )):
        with assert_no_leak():
            x = cg.zeros(3)
            y = cg.zeros(4).requires_grad_()
    assert x.shape + y.shape == (3, 4)


def test_assert_no_leak_sees_what_is_gone_and_what_is_empty():
    x = cg.zeros(3)
    with pytest.raises(AssertionError, match=r"-12 live bytes in -1 buffers \(other -12\)"), assert_no_leak():
        del x
    with pytest.raises(AssertionError, match=r"\+0 live bytes in \+1 buffers"), assert_no_leak():
        y = cg.zeros(0)
    del y


def test_assert_no_leak_lets_exceptions_through():
    kept = []
    with pytest.raises(KeyError, match="mine"), assert_no_leak():
        kept.append(cg.zeros(3))
        raise KeyError("mine")
