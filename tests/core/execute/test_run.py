"""Setting up an operation: operands are held from when they are read, and their number is checked before any write."""

import gc

import numpy as np
import pytest

import cygrad as cg


class Late:
    """Something that becomes an array by running Python code."""

    def __init__(self, call, value=1.0):
        self.call, self.value = call, value

    def __array__(self, dtype=None, copy=None):
        self.call()
        return np.full(4, self.value, np.float32)


def test_an_operand_that_a_callback_frees():
    """The conversion of the third operand frees the first. This raises an error instead of reading freed memory."""
    x, y = cg.full(4, 2.0), cg.full(4, 3.0)
    with pytest.raises(RuntimeError, match="this tensor was freed"):
        cg.where(y > 0, x, Late(x.free))
    x = cg.full(4, 2.0)
    with pytest.raises(RuntimeError, match="this tensor was freed"):
        cg.add(x, Late(x.free))
    x = cg.full(4, 2.0)
    with pytest.raises(RuntimeError, match="this tensor was freed"):
        cg.concat([x, y, Late(x.free)])
    x = cg.zeros(4)
    with pytest.raises(RuntimeError, match="this tensor was freed"):
        x[[0, 1]] = Late(x.free)


def test_a_callback_that_changes_the_list_of_operands():
    xs = [cg.full(4, 2.0), None]
    xs[1] = Late(xs.clear, 5.0)
    assert cg.concat(xs).tolist() == [2.0] * 4 + [5.0] * 4
    xs += [cg.full(4, 2.0), Late(lambda: xs.__setitem__(0, None), 5.0)]
    assert cg.stack(xs).tolist() == [[2.0] * 4, [5.0] * 4]
    xs.clear()


@pytest.mark.parametrize("recorded", [False, True])
def test_nobody_frees_an_operand_while_the_operation_runs(recorded):
    """A listener to memory events, or a finalizer, may run during an operation when it allocates."""
    x, said = cg.full(4, 2.0), []

    def listen(event):
        if said: return
        try:
            x.free()
            said.append("it was freed")
        except RuntimeError as e:
            said.append(str(e))

    if recorded: x.attach_grad("add").grad = None
    with cg.memory.events(listen), cg.record():
        y = x * x
    assert y.tolist() == [4] * 4 and "cannot be freed" in said[0]
    with cg.memory.scope() as scope:
        z = cg.full(4, 3.0)
        left = []

        def leave(event):
            if not left:
                left.append(1)
                scope.__exit__(None, None, None)

        with cg.memory.events(leave):
            y = z + 1
        assert y.tolist() == [4] * 4
        scope.__enter__()


def test_operands_are_released():
    x = cg.ones(4)
    for f in (lambda: x + 1, lambda: cg.concat([x] * 9), lambda: x @ cg.ones(5), lambda: x.sum(axis=7),
              lambda: x * "a"):
        try:
            f()
        except (ValueError, TypeError, IndexError):
            pass
        assert cg.memory.why(x).holders == 1
    y = x.copy()
    y += x
    y[1:] = x[:3]
    assert cg.memory.why(y).holders == 1
    gc.collect()


@pytest.mark.parametrize("join", [cg.concat, cg.stack])
@pytest.mark.parametrize("recorded", [True, False])
def test_more_inputs_than_a_node_can_count(join, recorded):
    x = cg.ones(1).attach_grad() if recorded else cg.ones(1)
    message = "inputs; an operation takes at most 65535, so join them in groups"
    for n in (65_536, 70_000):
        with cg.record(), pytest.raises(ValueError, match=f"{join.__name__}: {n} {message}"):
            join([x] * n)
    with cg.record():
        y = join([x] * 65_535)
    assert y.size == 65_535
    if recorded:
        y.backward()
        assert x.grad.tolist() == [65_535]


def test_more_variables_than_a_buffer_can_count():
    x = cg.ones(2)
    variables = [x.detach().attach_grad("write") for _ in range(65_535)]
    with pytest.raises(ValueError, match="attach_grad: 65535 variables share the memory of this tensor of shape"):
        x.detach().attach_grad()
    assert cg.memory.stats()["by_category"]["parameters"] == 8
    variables.pop()
    last = x.detach().attach_grad()
    del variables, last
    assert cg.memory.stats()["by_category"]["parameters"] == 0


def test_more_gradients_on_their_way_than_sixteen_bits():
    """One gradient is shared by 70,000 variables at once."""
    xs = [cg.ones(1).requires_grad_() for _ in range(70_000)]
    with cg.record():
        parts = [cg.concat(xs[:35_000]), cg.concat(xs[35_000:])]
        y = cg.concat(parts)
    y.backward()
    assert cg.memory.stats()["by_category"]["gradients"] == sum(x.grad.nbytes for x in xs)
