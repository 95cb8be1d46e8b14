"""In-place writes while recording and before backward, contract 5."""

import numpy as np
import pytest
from tests.autograd.test_passes import recorded, state, variable

import cygrad as cg


def write(t, how):
    if how == "+=":
        t += 1
    elif how == "[]":
        t[...] = 7
    elif how == "[0]":
        t[0] = 7
    elif how == "copy_":
        t.copy_(cg.zeros(2, dtype=t.dtype))
    else:
        t.fill_(3.0)


WAYS = ["+=", "[]", "[0]", "copy_", "fill_"]
every_way = pytest.mark.parametrize("how", WAYS)


@every_way
def test_writes_raise_the_version(how):
    x = cg.tensor([1.0, 2.0], dtype="float64")
    view, other = x[:1], x.detach()
    for n in (1, 2):
        write(x, how)
        assert x.version == view.version == other.version == n
    if how == "+=":
        x *= 2
        x -= 1
        x /= 2
        assert x.version == 5 and x.tolist() == [2.5, 3.5]


@every_way
def test_saved_tensor_written_names_both_versions(how):
    x = variable()
    with cg.record():
        a = x * 1
        y = cg.exp(a)
    with cg.no_grad():
        write(y.detach(), how)
    before = state(x)
    with pytest.raises(cg.InplaceError, match=r"exp saved a tensor .* for backward at version 0, but .* at version 1"):
        y.backward()
    assert state(x) == before


@every_way
def test_saved_leaf_written(how):
    x, w = variable(), variable()
    y = recorded(lambda: x * w)
    with cg.no_grad():
        write(w, how)
    with pytest.raises(cg.InplaceError, match=r"mul saved a tensor .* for backward at version 0, but .* at version 1"):
        y.backward()
    y = recorded(lambda: x * w)
    with cg.no_grad():
        write(w, how)
        write(w, how)
    with pytest.raises(cg.InplaceError, match="at version 1, but .* is at version 3"):
        y.backward()
    assert x.grad.tolist() == w.grad.tolist() == [0.0, 0.0]
    assert issubclass(cg.InplaceError, RuntimeError)


def test_writes_that_nobody_needs_are_fine():
    x, w = variable(), cg.tensor([1.0, 2.0], dtype="float64")
    y = recorded(lambda: x + w)
    w += 1
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


@every_way
def test_leaf_written_while_recording(how):
    x = variable()
    for target in (x, x[:], x.T, x.reshape(2, 1)[:, 0], x.detach()):
        with cg.record(), pytest.raises(cg.InplaceError, match=r"leaf variable of shape \(2,\) cannot be written"):
            write(target, how)
    assert x.version == 0 and x.tolist() == [1.0, 2.0]
    with cg.pause():
        write(x, how)
    write(x, how)
    assert x.version == 2


@every_way
def test_recorded_tensor_written_outside(how):
    x = variable()
    y = recorded(lambda: x * 2)
    with pytest.raises(cg.InplaceError, match=r"this result of mul, of shape \(2,\), belongs to a graph .* detach\(\)"):
        write(y, how)
    assert y.version == 0
    write(y.detach(), how)
    assert y.version == 1


@every_way
def test_intermediate_written_while_recording(how):
    x = variable()
    with cg.record():
        y = x * 3
        write(y, how)
        z = y * y
    z.backward()
    values = {"+=": [4.0, 7.0], "[]": [7.0, 7.0], "[0]": [7.0, 6.0], "copy_": [0.0, 0.0], "fill_": [3.0, 3.0]}[how]
    through = {"+=": [1, 1], "[]": [0, 0], "[0]": [0, 1], "copy_": [0, 0], "fill_": [0, 0]}[how]
    assert y.tolist() == values
    assert x.grad.tolist() == [2 * v * t * 3 for v, t in zip(values, through, strict=True)]


def test_arithmetic_in_place_is_differentiated():
    for f, g in (
        (lambda y, w: y.__iadd__(w), lambda y, w: y + w), (lambda y, w: y.__isub__(w), lambda y, w: y - w),
        (lambda y, w: y.__imul__(w), lambda y, w: y * w), (lambda y, w: y.__itruediv__(w), lambda y, w: y / w),
        (lambda y, w: y.__imul__(y), lambda y, w: y * y), (lambda y, w: y.__isub__(y), lambda y, w: y - y),
        (lambda y, w: y.__itruediv__(y), lambda y, w: y / y),
    ):
        found = []
        for h in (f, g):
            x, w = variable(0.5, -2.0), variable(3.0, 0.7)
            with cg.record():
                z = h(x * 2, w) * x
            z.backward()
            found.append((z.tolist(), x.grad.tolist(), w.grad.tolist()))
        np.testing.assert_allclose(*found, rtol=1e-14)


def test_what_was_overwritten_has_a_gradient_of_zero():
    """Also if the incoming gradient is infinite."""
    x = variable(1.0, 2.0)
    with cg.record():
        y = x * 3
        y[0] = 0
        z = y ** 0.5
    z.backward()
    assert x.grad.tolist() == [0.0, 0.5 * 6 ** -0.5 * 3]


def test_plain_tensor_becomes_an_intermediate():
    x, t = variable(), cg.zeros(3, dtype="float64")
    with cg.record():
        t[1:] = x * 2
        y = t * t
    assert t.requires_grad and not t.is_leaf
    y.backward()
    assert x.grad.tolist() == [8.0, 16.0]


def test_a_plain_value_recorded_in_place():
    """A plain tensor to which a recorded value is written: operations that saved its old value are correct or raise."""
    x, t = variable(), cg.tensor([1.0, 2.0], dtype="float64")
    with cg.record():
        before = x * t
        t += x
        after = x * t
    with pytest.raises(cg.InplaceError, match="mul saved a tensor .* at version 0"):
        before.backward()
    after.backward()
    assert x.grad.tolist() == [3.0, 6.0]


def test_solvers_write_leaves_freely():
    x = variable()
    solver = cg.optim.Sgd(lr=0.1)
    solver.set_parameters([x])
    y = recorded(lambda: x * x)
    y.backward()
    solver.update()
    assert x.version == 1
    z = recorded(lambda: x * x)
    with cg.no_grad():
        x += 1
    with pytest.raises(cg.InplaceError, match="mul saved a tensor"):
        z.backward()


def test_labels_in_an_array_of_the_callers_may_be_reused():
    x, labels = cg.tensor([[1.0, 2.0], [3.0, 4.0]]).attach_grad(), np.array([0, 1])
    with cg.record():
        loss = cg.cross_entropy(x, labels)
    labels[:] = 10**10
    loss.backward()
    assert np.allclose(x.grad.numpy(), [[-0.365529, 0.365529], [0.134471, -0.134471]], atol=1e-6)
