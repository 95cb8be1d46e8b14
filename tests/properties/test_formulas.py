"""A formula is pure: it takes and returns tensors and reads no value in Python. A captured gradient is then correct for
other inputs."""

import re

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from rows import DIFFERENTIABLE_ROWS, floating_places, head_for, tensors

def impurity(row, args, kwargs):
    """The error in the formula of a call, or None. Its gradient is captured with one set of inputs and run with
    another, and must have the bits of eager code."""
    xs, places = tensors(args), floating_places(args)
    leaves = [xs[i].requires_grad_() for i in places]

    def gradients():
        with cg.record():
            inputs = list(xs)
            for i in places: inputs[i] = xs[i] * 1.0            # then the saved value is a result of the capture
            y = row.tested(*inputs, **kwargs)
        found = cg.autograd.grad(y, leaves, head, create_graph=True, allow_unused=True)
        return (y, *[g for g in found if g is not None])

    with cg.no_grad(): head = head_for(row.tested(*xs, **kwargs))
    try:
        program = Program(gradients)
    except RuntimeError as e:
        if re.match("capture: a result whose shape depends on values", str(e)): return None     # it read none
        if not re.match(r"capture: the gradient of .* reads the values", str(e)): raise
        return str(e)
    with cg.no_grad():
        for x in leaves: x.copy_(np.flip(x.numpy()) * 0.875)
    for ours, eager in zip(program.run(), gradients(), strict=True):
        if ours.numpy().tobytes() != eager.detach().numpy().tobytes():
            return f"the program computed {ours.tolist()}, eager {eager.tolist()}"
    return None


@pytest.mark.parametrize("row", DIFFERENTIABLE_ROWS)
def test_formula_is_pure(row):
    found = [impurity(row, args, kwargs) for args, kwargs in row.tries if floating_places(args)]
    assert found, "no sample has a floating input"
    wrong = [text for text in found if text]
    assert not wrong, wrong
