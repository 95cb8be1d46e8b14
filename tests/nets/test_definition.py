"""Operators, blobs and arguments as data: what is accepted, equality, text, copies."""

import copy
import math
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Blob, GradientSlice, Net, Operator
from cygrad.nets.definition import MAX_DEPTH


def test_the_text_of_an_operator_is_code():
    assert repr(Operator("conv2d", ["x", "w", "b"], "y", {"stride": 2})) == "y = conv2d(x, w, b, stride=2)"
    assert repr(Operator("max", "x", ("v", "i"), {"axis": -1})) == "v, i = max(x, axis=-1)"
    assert repr(Operator("print", "x")) == "print(x)"
    assert repr(Operator("linear", ["x", "w", None], ["y"], None, "head")) == "y = linear(x, w, None)  # head"
    assert repr(Operator("getitem", "x", "y", {"index": (slice(None, 2), ...)})) == \
        "y = getitem(x, index=(slice(None, 2, None), Ellipsis))"
    assert repr(Operator("a.b", ["a b", "f(x)", "None"], "w/0:b")) == "w/0:b = a.b('a b', 'f(x)', 'None')"
    assert len(repr(Operator("take", "x", "y", {"index": (1,) * 10_000}))) < 300


def test_lists_dtypes_and_numpy_numbers_become_plain():
    o = Operator("astype", "x", "y", {"dtype": cg.float32, "a": [1, [2]], "i": np.int8(3), "f": np.float64(0.5),
                                      "b": np.bool_(True), "s": Blob("mean"), "c": slice(np.int64(1), None)})
    assert o.arguments == {"dtype": "float32", "a": (1, (2,)), "i": 3, "f": 0.5, "b": True, "s": "mean",
                           "c": slice(1, None)}
    kinds = {key: type(v) for key, v in o.arguments.items()}
    assert kinds == dict(dtype=str, a=tuple, i=int, f=float, b=bool, s=str, c=slice)
    assert type(o.arguments["c"].start) is int
    assert o.inputs == ("x",) and o.outputs == ("y",) and type(o.inputs[0]) is Blob


def test_a_blob_is_a_name_that_was_checked():
    x = Blob("x")
    assert Operator("exp", x, "y").inputs[0] is x and Blob(x) == x == pickle.loads(pickle.dumps(x))
    for name, error in ((5, TypeError), (" x", ValueError), ("a\nb", ValueError), ("", ValueError)):
        with pytest.raises(error, match="^Blob: the name of a blob must "): Blob(name)


@pytest.mark.parametrize("a, b", [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ((1,), (True,)), (None, ...),
                                  (slice(1), slice(0, 1)), ((), None)])
def test_operators_differ_if_an_argument_does(a, b):
    first, second = (Operator("f", "x", "y", {"p": v}) for v in (a, b))
    assert first != second and first == Operator("f", "x", "y", {"p": a}) and second == second.replace()


def test_equality():
    o = Operator("f", "x", "y", {"p": math.nan, "q": 1})
    assert o == Operator("f", ["x"], ["y"], {"q": 1, "p": math.nan}) and hash(o) == hash(o.replace())
    for change in (dict(type="g"), dict(inputs=["x", None]), dict(outputs="z"), dict(arguments={}), dict(name="n"),
                   dict(is_gradient=True)):
        assert o.replace(**change) != o
    assert o != "y = f(x)" and o.__eq__(3) is NotImplemented
    f = Operator("python", "x", "y", function=(abs, None))
    assert f == f.replace() and f != f.replace(function=(abs, abs)) and repr(f) == "y = python(x, f=abs)"
    assert repr(f.replace(function=(abs, len))) == "y = python(x, f=abs, grad_f=len)"


def test_an_operator_cannot_be_changed():
    o = Operator("f", "x", "y", {"p": 1})
    with pytest.raises(AttributeError): o.type = "g"
    with pytest.raises(AttributeError): o.new = 1
    with pytest.raises(AttributeError): del o.inputs
    with pytest.raises(TypeError): o.arguments["p"] = 2
    with pytest.raises(TypeError): o.replace(kind="g")
    given = {"p": 1}
    o = Operator("f", "x", "y", given)
    given["p"] = 2
    assert o.arguments == {"p": 1}


def test_copies_and_pickles_are_equal():
    for o in (Operator("f", ["x", None], "y", {"p": (1, ...)}, "n", True),
              Operator("python", "x", "y", function=(abs, None))):
        for other in (copy.copy(o), copy.deepcopy(o), pickle.loads(pickle.dumps(o))):
            assert other == o and type(other) is Operator


def test_a_blob_is_a_str_without_a_memory():
    b = Net().relu("x")
    assert isinstance(b, str) and b == "relu" and {b: 1}["relu"] == 1 and b + "_grad" == "relu_grad"
    assert not hasattr(b, "__dict__")
    indices, values = g = GradientSlice("i", "v")
    assert (indices, values) == (g.indices, g.values) == ("i", "v")


def test_tuples_nest_so_deep():
    deep = ()
    for _ in range(MAX_DEPTH - 1): deep = (deep,)
    assert Operator("f", (), (), {"p": deep}).arguments["p"] == deep
    with pytest.raises(ValueError, match="at most 16 tuples"): Operator("f", (), (), {"p": (deep,)})
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="at most 16 tuples"): Operator("f", (), (), {"p": loop})


@pytest.mark.parametrize("name", ["x", "a b", "Größe", "名前", "<script>", "\"", "\\", "x" * 1000, "\U0001f600"])
def test_names(name):
    assert Operator("f", name, name).inputs == (name,)


@pytest.mark.parametrize("name", ["", " x", "x ", "a\nb", "a\tb", "\0", "\x7f", "\x85", "a\u2028b", "a\u202eb",
                                  "\ud800", "\uffff", "x" * 1001, "\u3000x"])
def test_what_is_no_name(name):
    for call in (lambda: Operator("f", name), lambda: Operator("f", "x", name), lambda: Operator(name, "x", "y"),
                 lambda: Net(name), lambda: Net().relu("x", name), lambda: Net().add_operator(name),
                 lambda: Net().add_constant(1, name), lambda: Operator("f", "x", "y", None, name or " ")):
        with pytest.raises(ValueError, match="must have from 1 to 1,000 characters"): call()
