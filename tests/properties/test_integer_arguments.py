"""Numbers as arguments: for an integer out of range, a float, a string and None, each public function, layer and
initializer either works or raises an error that describes the argument, never one of Python's or NumPy's own
conversions."""

import inspect
import re

import numpy as np
import pytest
from tests.samples import SAMPLED

import cygrad as cg
from cygrad import nn
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


HUGE = [10**400, -10**400, "a"]


def float_names(f, kinds):
    """The parameters that take floats, or one of `kinds`."""
    return [p.name for p in inspect.signature(f).parameters.values()
            if re.search(rf"\b({kinds})\b", str(p.annotation)) and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def raw_error(f, *args, **kwargs):
    """The error of a call, as text, if Python or NumPy made it; "" if it is described; None without one."""
    try:
        with cg.memory.limit("64MiB"): f(*args, **kwargs)
    except Exception as e:
        raw = RAW.search(str(e)) and "missing" not in str(e)
        return f"{type(e).__name__}: {e}" if raw else ""
    return None


@pytest.mark.filterwarnings("ignore")
def test_errors_of_float_arguments_are_described():
    found = {}
    for name, f, args, kwargs in calls():
        kwargs.pop("integers", None)
        for what in float_names(f, "float|Data|Operand"):
            for value in HUGE:
                bound = inspect.signature(f).bind(*args, **kwargs)
                bound.arguments[what] = value
                found[f"{name}({what}={value!r:.9})"] = raw_error(f, *bound.args, **bound.kwargs)
    raw = [f"{call}: {error}" for call, error in found.items() if error]
    assert not raw, "\n".join(raw)
    assert sum(error is not None for error in found.values()) > 300


INPUTS = [np.abs(np.random.default_rng(0).normal(size=shape)) for shape in ((2,), (2, 2), (2, 2, 4), (2, 2, 4, 4))]


@pytest.mark.filterwarnings("ignore")
def test_errors_of_float_arguments_of_layers_are_described():
    """In the constructor, or in a call with one, two or three arrays."""
    tried, raw = 0, []
    layers = [getattr(nn, name) for name in nn.__all__ if name not in ("Parameter", "init")]
    for cls in layers:
        if not issubclass(cls, nn.Module): continue
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        needed = {p.name: 2 for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
        for what in float_names(cls.__init__, "float"):
            for value in HUGE:
                made = []
                errors = [raw_error(lambda kwargs=needed | {what: value}: made.append(cls(**kwargs)))]
                for layer in made:
                    with cg.train_mode(): errors += [raw_error(layer, *[x] * n) for x in INPUTS for n in (1, 2, 3)]
                tried += 1
                raw += [f"{cls.__name__}({what}={value!r:.9}): {e}" for e in errors if e and "argument" not in e]
    assert not raw, "\n".join(raw)
    assert tried > 100


def test_errors_of_float_arguments_of_initializers_are_described():
    tried, raw = 0, []
    for name, f in vars(nn.init).items():
        if name.startswith("_") or not callable(f) or getattr(f, "__module__", "") != "cygrad.nn.init": continue
        parameters = inspect.signature(f).parameters.values()
        for what in float_names(f, "float"):
            for value in HUGE:
                needed = {p.name: cg.ones(3, 3) if p.name == "tensor" else 0.5 for p in parameters
                          if p.default is p.empty}
                call = (lambda f=f, **kwargs: f(**kwargs)((3, 3))) if isinstance(f, type) else f
                error = raw_error(call, **needed | {what: value})
                tried += 1
                if error: raw.append(f"{name}({what}={value!r:.9}): {error}")
    assert not raw, "\n".join(raw)
    assert tried > 40
