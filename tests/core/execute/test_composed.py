"""Functions that are made of operators: their errors name the function that was called (core/execute/composed.pyx)."""

import inspect
import itertools
import re

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.composed import composed
from cygrad.core.execute.program import Program
from cygrad.ops import COMPOSED, ROWS

NAMES = [name for names in COMPOSED.values() for name in names]
KNOWN = {*ROWS, *NAMES}


def values():
    return [cg.zeros(()), cg.zeros(2), cg.zeros(3), cg.zeros((2, 3)), cg.zeros((3, 3)), cg.full((3, 3), np.nan),
            cg.zeros((0, 3)), cg.zeros((3, 0)), cg.zeros((2, 3), "int64"), cg.full(3, 7, "int64"),
            cg.zeros((2, 3), "bool"), cg.zeros((2, 2, 2)), 2, -1, 1.5, float("inf"), "a", (0, 1), True, None]


def functions():
    for name in NAMES: yield name, getattr(cg, name)
    yield "linalg.norm", cg.linalg.norm
    for name in ("mse", "clip", "smooth_l1_loss", "binary_cross_entropy_with_logits"): yield name, getattr(cg, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, f", [pytest.param(name, f, id=name) for name, f in functions()])
def test_no_error_names_another_function(name, f):
    """All pairs of wrong arguments, and triples with fewer values."""
    kinds = [p.kind for p in inspect.signature(f).parameters.values()]
    several = inspect.Parameter.VAR_POSITIONAL in kinds
    most = 3 if several else kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found, given = {}, values()
    for n in range(1, min(most, 3) + 1):
        for args in itertools.product(given if n < 3 else given[2::2], repeat=n):
            try:
                with cg.memory.limit("64MiB"): f(*args)
            except Exception as e:
                word = re.match(r"[a-z_][\w.]*(?=:| is not| needs| takes| cannot)", str(e))
                if word is not None and word[0] in KNOWN and word[0] != name: found[word[0]] = str(e)
    assert not found


def test_signature_and_documentation_are_kept():
    f = cg.tensordot
    assert str(inspect.signature(f)).startswith("(x: 'Data', y: 'Data', axes:")
    assert (f.__name__, f.__module__) == ("tensordot", "cygrad.ops.linalg.products") and "sums of products" in f.__doc__
    for name in NAMES: assert getattr(cg, name).__wrapped__.__name__ == name


def test_errors_of_others_are_unchanged():
    def raising(e):
        raise e

    f = composed(raising, "f")
    for e in (ValueError("max: too large"), ValueError("nobody: wrong"), ValueError("max", 3), ValueError(),
              KeyError("max: 3"), RuntimeError("max: wrong"), IndexError("maximal: wrong")):
        args = ("f: too large",) if e.args == ("max: too large",) else e.args
        with pytest.raises(type(e)) as caught: f(e)
        assert caught.value is e and e.args == args


def test_a_backward_pass_names_the_operator():
    x = cg.zeros((2, 2)).attach_grad()
    with cg.record(): y = cg.slogdet(x).logabsdet
    with pytest.raises(np.linalg.LinAlgError, match="^backward of slogdet: x is singular"): y.backward()


def test_the_backward_of_a_users_function_keeps_its_error():
    class Own(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x * 1

        @staticmethod
        def backward(ctx, g): return g * cg.ones(3)

    x = cg.zeros(2).attach_grad()
    with cg.record(): y = Own.apply(x)
    with pytest.raises(ValueError, match="^mul: shapes"): y.backward()


def test_a_program_names_the_function():
    labels = cg.tensor([0, 1])
    x = cg.zeros((2, 3))
    program = Program(lambda x: cg.multi_margin_loss(x, labels) + cg.tensordot(x, x, 2), x)
    assert program.run(x).shape == ()
    labels[0] = 5
    with pytest.raises(IndexError, match="^multi_margin_loss: label 5 is not a class"): program.run(x)
    with pytest.raises(RuntimeError, match="depends on values, that of unique"): Program(cg.unique, cg.zeros(2))
    with pytest.raises(RuntimeError, match="depends on values, that of argwhere"):     # none is running any more
        Program(lambda x: cg.argwhere(cg.ptp(x) + x), cg.zeros(2))
