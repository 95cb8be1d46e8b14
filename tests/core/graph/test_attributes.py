"""The attributes of operators: named fields that cannot be set, with repr, equality, hash and pickling."""

import copy
import functools
import gc
import importlib
from pathlib import Path
import pickle

import pytest

import cygrad as cg
from cygrad.core.execute.program import Program
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from tests.samples import SAMPLED

from rows import floating_places, in_dtype, tensors

FILES = ("base", "compare", "einsum", "elementwise", "functions", "gradient", "index", "join", "linalg", "loss",
         "masks", "minmax", "normalize", "random", "reduce", "scan", "shape", "slices", "softmax", "sort", "statistics",
         "window")


def steps(f, xs, kwargs):
    """The operators that f runs, each with its attributes. The garbage collector finds those of a Program."""
    at = [i for i, x in enumerate(xs) if isinstance(x, cg.Tensor)]

    def g(*given):
        rest = iter(given)
        return f(*[next(rest) if i in at else x for i, x in enumerate(xs)], **kwargs)

    try:
        program = Program(g, *[xs[i] for i in at])
    except RuntimeError as e:                       # its shape depends on values
        assert str(e).startswith("capture: ")
        return
    for step in program.steps:
        held = gc.get_referents(step)
        operator = next((o for o in held if isinstance(o, Operator)), None)
        if operator is None: continue               # (a copy, zeros)
        others = [o for o in held if o is not operator and o is not None and not isinstance(o, (list, cg.Tensor))]
        assert len(others) <= 1
        yield operator, others[0] if others else None


def gradients(row, args, kwargs):
    """The gradients of a call, by formulas, as a function of its tensors."""
    places = floating_places(args)

    def f(*xs):
        with cg.record():
            y = row.tested(*[x.attach_grad() if i in places else x for i, x in enumerate(xs)], **kwargs)
            return cg.autograd.grad(y.sum(), [xs[i] for i in places], create_graph=True, allow_unused=True)[0]

    return f


@functools.cache
def used():
    """(name of a row, operator, attributes) for each operation in values and formulas of the table."""
    found = []
    for row in SAMPLED.values():
        for args, kwargs in row.tries:
            args = in_dtype(args, "float64")
            found += [(row.name, *step) for step in steps(row.tested, tensors(args), kwargs)]
            if row.operator.differentiable and floating_places(args):
                found += [(row.name, *step) for step in steps(gradients(row, args, kwargs), tensors(args), {})]
    return found


@functools.cache
def objects():
    """One object of each class of attributes of the operators in ops/."""
    return list({a for _, operator, a in used() if isinstance(a, Attributes) and module_of(operator) in FILES})


def module_of(operator):
    return type(operator).__module__.rpartition(".")[2]


def classes():
    """The classes of attributes in ops/, without abstract bases."""
    paths = [path for path in Path(cg.__file__).parent.glob("ops/*/*.pyx") if path.stem in FILES]
    assert len(paths) == len(FILES)
    names = [f"cygrad.ops.{path.parent.name}.{path.stem}" for path in paths]
    found = [c for name in names for c in vars(importlib.import_module(name)).values()
             if isinstance(c, type) and issubclass(c, Attributes) and c.__module__ == name]
    assert len(found) > 8
    return found


def test_every_operator_has_named_attributes_or_none():
    wrong = {(name, operator.name, type(a).__name__) for name, operator, a in used()
             if module_of(operator) in FILES and a is not None and not isinstance(a, Attributes)}
    assert not wrong


def test_the_table_uses_every_class():
    """Except those of views: a capture has no step for a view."""
    views = {"Dimensions", "Factor", "Permutation", "Section", "Shape", "Slices"}
    unused = {c for c in classes() if c not in {type(a) for a in objects()}}
    assert {c.__name__ for c in unused} <= views


def test_nothing_can_be_set():
    for a in objects():
        before = a.fields()
        assert before, "attributes without a field"
        for name, value in before.items():
            with pytest.raises(AttributeError):
                setattr(a, name, value)
            with pytest.raises(AttributeError):
                delattr(a, name)
        with pytest.raises(AttributeError):
            a.another = 1
        try:
            a.__init__(*[0] * len(before))          # without an effect, as the fields are set before
        except TypeError:
            pass
        assert a.fields() == before


def test_repr_names_every_field():
    for a in objects():
        assert repr(a) == f"{type(a).__name__}({', '.join(f'{k}={v!r}' for k, v in a.fields().items())})"
    axes = [a for a in objects() if type(a).__name__ == "Axes"]
    assert {"Axes(mask=1, keepdims=False)", "Axes(mask=3, keepdims=True)"} <= {repr(a) for a in axes}
    assert "Reduced(reduction='none')" in {repr(a) for a in objects()}


def test_equality_and_hash_are_those_of_the_fields():
    for a in objects():
        same = type(a)(*a.fields().values())        # the fields are the arguments, in order
        assert same is not a and same == a and not same != a and hash(same) == hash(a)
        assert a != tuple(a.fields().values()) and a != 1
        for b in objects():
            assert (a == b) == (type(a) is type(b) and a.fields() == b.fields())
    two = [a for a in objects() if type(a).__name__ == "Order"][:2]
    assert len(two) == 2 and two[0] != two[1]


def test_pickles_and_copies_are_equal():
    for a in objects():
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            same = pickle.loads(pickle.dumps(a, protocol))
            assert type(same) is type(a) and same == a and repr(same) == repr(a)
        assert copy.deepcopy(a) == a
