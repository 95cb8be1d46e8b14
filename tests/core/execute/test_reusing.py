"""What nobody reads is not computed, and elementwise results are written over what is read last: the same bits."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

from rows import CASES, ELEMENTWISE, both_dtypes, in_dtype, is_array, is_floating, same_bits

OVER = [case for case in CASES if case.values[0].family in (*ELEMENTWISE, "activations")]


@pytest.mark.parametrize("size", [None, 40_001])
@both_dtypes
@pytest.mark.parametrize("row, args, kwargs", OVER)
def test_a_result_over_an_operand(row, args, kwargs, dtype, size):
    """Each elementwise row reads copies that nothing else reads; also so large that threads share the work."""
    given = in_dtype(args, dtype)
    if size: given = [np.resize(a, size) if is_array(a) and a.ndim else a for a in given]
    arrays = [a for a in given if is_floating(a)]

    def f(*xs):
        copies = iter([x.copy() for x in xs])
        return row.tested(*[next(copies) if is_floating(a) else cg.tensor(a) if is_array(a) else a for a in given],
                          **kwargs)

    with np.errstate(all="ignore"):
        try: wanted = f(*map(cg.tensor, arrays))
        except (ValueError, TypeError, IndexError):
            assert size                             # (its arguments say which shape it takes)
            return
        found = Program(f, *map(cg.tensor, arrays)).run(*map(cg.tensor, arrays))
    same_bits(np.asarray(wanted), np.asarray(found))


def arena(f, *xs):
    """(the bytes of the arena of f, the names of its steps), after a run that has the values of eager code"""
    program = Program(f, *xs)
    same_bits(program.run(*xs).numpy(), f(*xs).numpy())
    return program.arena_bytes, [step.name for step in program.steps]


def test_a_chain_needs_one_buffer():
    x = cg.ones(1000)
    assert arena(lambda x: cg.tanh(cg.exp(cg.sin(x) * 2)), x)[0] == 4032


def test_operands_that_are_not_written_over():
    """What is read again, has another shape or size, is read in another order, or is outside."""
    x, w = cg.tensor(np.arange(1000.0, dtype="f4").reshape(10, 100)), cg.ones(1000)

    def again(x):
        y = x * 2
        return cg.exp(y) + y

    assert arena(again, x)[0] == 4032               # (y and exp(y) are in strips)
    assert arena(lambda x: cg.exp(w) + w, x)[0] == 4032
    assert w.tolist() == [1] * 1000 and w.version == 0
    square = cg.tensor(np.arange(900.0, dtype="f4").reshape(30, 30))
    both = arena(lambda x: (lambda y: y + y.T)(x * 2), square)[0]
    assert both == 2 * 3648
    assert arena(lambda x: (x * 2).sum(0) + (x * 3), x)[0] == 4032 + 448


def test_a_result_is_not_written_over_and_gradients_are_right():
    x = cg.tensor(np.linspace(-2, 2, 1000, dtype="f4")).attach_grad()

    def step():
        with cg.record():
            y = cg.tanh(x * 3)
            z = (cg.exp(y) * y).sum()
        z.backward()
        return y

    wanted = step().numpy().copy(), x.grad.numpy().copy()
    program = Program(step)
    for _ in range(2): same_bits(program.run().numpy(), wanted[0])
    same_bits(x.grad.numpy(), wanted[1])


def test_what_nobody_reads_is_not_computed():
    x = cg.ones(1000)

    def f(x):
        y = cg.exp(x)
        z = cg.sin(cg.tanh(y) * 2)
        _, u = z + 1, cg.take(z, cg.tensor([0, 1]))     # (take can fail, so it stays, and what it reads)
        _ = u * 2
        return y

    assert arena(f, x)[1] == ["fused exp, tanh, mul, ... (4)", "take"]
    with pytest.raises(IndexError): Program(lambda x: (cg.take(x, cg.tensor([5000])), x * 2)[1], x).run(x)
