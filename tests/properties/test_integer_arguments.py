"""Integer arguments: for a number out of range, a float, a string and None, each public function either works or raises
an error that describes the argument, never one of Python's or NumPy's own conversions."""

import inspect
import re

import numpy as np
import pytest
from tests.samples import SAMPLED

import cygrad as cg
from cygrad.ops import COMPOSED

VALUES = [2**31, 2**63, 2**70, -2**63 - 1, [2**62, 2**62], 1.5, float("nan"), "a", None, np.array("a")]
RAW = re.compile("too large|cannot be interpreted|not supported between|unsupported operand|can only concatenate|"
                 "object (is not|cannot)|has no attribute|integer is required|could not convert|did not contain a loop|"
                 "integer scalar arrays|ambiguous")


def x():
    return np.arange(12.0).reshape(3, 4)


# Calls of the functions that are made of operators, which have no samples.
CALLS = {
    "array_split": (x(), 2), "atleast_1d": (x(),), "column_stack": ([x()],), "cosine_similarity": (x(), x()),
    "cross": (x()[:, :3], x()[:, :3]), "diff": (x(),), "dsplit": (x().reshape(1, 3, 4), 2), "hsplit": (x(), 2),
    "index_add": (x(), 0, [1], x()[:1]), "lp_pool1d": (x(), 2.0, 2), "matrix_power": (x()[:3, :3], 2),
    "median": (x(),), "moveaxis": (x(), 0, 1), "multi_margin_loss": (x(), [0, 1, 2]), "pixel_shuffle":
    (x().reshape(4, 1, 3), 2), "pixel_unshuffle": (x().reshape(3, 2, 2), 2), "quantile": (x(), 0.5), "repeat": (x(), 2),
    "roll": (x(), 2), "rot90": (x(),), "take_along_axis": (x(), x().astype("int64") % 3), "tensordot": (x(), x().T, 1),
    "tile": (x(), 2), "trace": (x(),), "unstack": (x(),), "vecdot": (x(), x()), "vsplit": (x(), 3),
}
CREATED = {
    "arange": (3,), "eye": (3,), "linspace": (0, 1, 3), "full": (3, 1.0), "zeros": (3,), "flatten": (x(),),
    "swapaxes": (x(), 0, 1), "dropout": (x(),),
}


def integer_names(f):
    """The parameters that take integers."""
    parameters = inspect.signature(f).parameters.values()
    return [p.name for p in parameters
            if re.search(r"\bint\b", str(p.annotation)) and p.kind is p.POSITIONAL_OR_KEYWORD]


def calls():
    """(name, function, positional arguments, keyword arguments)."""
    for name, sampled in SAMPLED.items():
        if not sampled.public or not sampled.tries: continue
        args, kwargs = sampled.tries[0]
        try: inspect.signature(sampled.function).bind(*args, **kwargs)
        except TypeError: continue                  # (the row is tested through another function)
        yield name, sampled.function, args, kwargs
    for names in COMPOSED.values():
        for name in names:
            if name in CALLS: yield name, getattr(cg, name), CALLS[name], {}
    for name, args in CREATED.items(): yield name, getattr(cg, name), args, {}
    yield "choice", lambda a: cg.random.choice(a, 3), (4,), {"integers": ["a"]}
    yield "permutation", lambda x: cg.random.permutation(x), (4,), {"integers": ["x"]}


@pytest.mark.filterwarnings("ignore")
def test_errors_of_integer_arguments_are_described():
    raw, raised = [], 0
    for name, f, args, kwargs in calls():
        names = kwargs.pop("integers", None) or integer_names(f)
        for what in names:
            for value in VALUES:
                bound = inspect.signature(f).bind(*args, **kwargs)
                bound.arguments[what] = value
                try:
                    with cg.memory.limit("64MiB"): f(*bound.args, **bound.kwargs)
                except Exception as e:
                    raised += 1
                    if RAW.search(str(e)) or isinstance(e, MemoryError) and not isinstance(e, cg.MemoryLimitError):
                        raw.append(f"{name}({what}={value!r}): {type(e).__name__}: {e}")
    assert not raw, "\n".join(raw)
    assert raised > 1000
