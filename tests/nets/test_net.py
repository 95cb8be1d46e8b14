"""Net: building, what is derived from the operators, edits, copies and text."""

import copy
import math
import pickle

import numpy as np
import pytest
from random_nets import chain, mlp, random_net, same

import cygrad as cg
from cygrad.graph import Blob, Net, Operator
from cygrad.ops.calls import arguments_taken, fits, operands
from cygrad.ops.table import ROWS


def small():
    net = Net("small")
    h = net.linear(["x", "w", "b"], "h")
    net.mul([net.relu(h), 0.5], "y")
    return net


def test_outputs_have_the_given_names_or_fresh_ones():
    net = Net()
    assert net.mul(["x", "y"], "z") == "z" and net.mul(["x", "y"]) == "mul" and net.mul(["x", "y"]) == "mul_1"
    assert net.max("x", 2, axis=0) == ("max", "max_1") and net.max("x", ["v", "i"]) == ("v", "i")
    assert net.add_operator("print", "x", 0) == () == net.add_operator("print", "x", [])
    assert net.max("x", ["only"]) == "only" and type(net.relu("x")) is Blob
    net.relu("relu_2", "relu_3")
    assert net.relu("x", 3) == ("relu_1", "relu_4", "relu_5")
    assert len(net) == 11 and [o.type for o in net][:2] == ["mul", "mul"]


def test_a_fresh_name_is_none_of_the_inputs():
    net = Net()
    assert net.relu("relu") == "relu_1" and net.add(["constant", 1], "constant_1") == "constant_1"
    assert net.operators[1].inputs == ("constant", "constant_2")


def test_numbers_are_constants_with_one_entry_for_each_number_and_type():
    net = Net()
    net.add(["x", 2])
    net.mul([2, "x"])
    net.where(["x", 2.0, True])
    net.add([-0.0, 0.0])
    net.add([math.nan, math.nan])
    assert net.operators[0].inputs == ("x", "constant") and net.operators[1].inputs == ("constant", "x")
    assert net.operators[4].inputs == ("constant_5", "constant_5")
    assert [(name, repr(v)) for name, v in net.constants.items()] == [
        ("constant", "2"), ("constant_1", "2.0"), ("constant_2", "True"), ("constant_3", "-0.0"), ("constant_4", "0.0"),
        ("constant_5", "nan")]
    assert net.inputs == ("x",) and net.add_constant(7, "seven") == "seven"
    assert net.add(["x", 7]) and net.operators[-1].inputs == ("x", "seven")
    assert net.exp(3.5) and net.operators[-1].inputs == ("constant_6",)
    with pytest.raises(TypeError): net.constants["constant"] = 3


def test_constants_are_copies():
    net, a = Net(), np.ones(2, np.float32)
    t = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        assert net.add_constant(a, "w") == "w" and net.add_constant(t) == "constant" and net.add_constant([1]) == \
            "constant_1"
    a[0] = 5
    t[...] = 7
    assert net.constants["w"].tolist() == [1, 1] and net.constants["constant"].tolist() == [1, 2]
    assert not net.constants["constant"].requires_grad and net.constants["constant_1"].dtype == "int64"
    assert type(net.constants["w"]) is cg.Tensor and net.add_constant(True) == "constant_2"


def test_an_input_can_become_a_constant():
    net = small()
    assert net.inputs == ("x", "w", "b")
    net.add_constant(np.zeros(3), "w")
    assert net.inputs == ("x", "b") and net.blobs == ("x", "w", "b", "h", "relu", "constant", "y")


def test_inputs_outputs_and_uses():
    net = small()
    assert net.outputs == ("y",) and net.blobs == ("x", "w", "b", "h", "relu", "constant", "y")
    assert "h" in net and "z" not in net and 3 not in net and net and bool(Net())
    assert net.readers("h") == (net.operators[1],) and net.writers("h") == (net.operators[0],)
    assert net.readers("y") == () == net.writers("x") and net.versions("x") == 0 and net.versions("y") == 1
    net.add(["h", "h"], "h")
    assert net.versions("h") == 2 and net.readers("h") == (net.operators[1], net.operators[3])
    assert net.writers("h") == (net.operators[0], net.operators[3]) and net.outputs == ("h", "y")
    net.outputs = "y"
    assert net.outputs == ("y",)
    net.outputs = ["x", "constant"]
    assert net.outputs == ("x", "constant")
    net.outputs = None
    assert net.outputs == ("h", "y")
    with pytest.raises(ValueError, match="no blob 'z'"): net.outputs = ["y", "z"]
    assert net.outputs == ("h", "y")


def test_in_place_writes_are_versions():
    net = Net()
    net.relu("x", "x")
    net.relu("x", "x")
    assert net.versions("x") == 2 and net.inputs == ("x",) == net.outputs and net.blobs == ("x",)
    net.add(["x", "x"], "y")
    assert net.outputs == ("y",)
    written = Net()
    written.relu("x", "y")
    written.exp("y", "x")
    assert written.inputs == ("x",) and written.outputs == ("x",)


def test_a_builder_call_says_what_the_row_takes():
    assert Net().linear.__doc__.endswith("Inputs: x, w, b (optional). Arguments: activation=None.")
    assert Net().concat.__doc__.endswith("Inputs: any number of xs. Arguments: axis=0.")


def test_every_row_has_a_builder_call():
    net = Net()
    assert set(ROWS) <= set(dir(net)) and "add_operator" in dir(net) and not set(ROWS) & set(vars(Net))
    for name in ROWS:
        inputs = ["x"] * next(n for n in range(1, 9) if fits(operands(name), n))
        arguments = dict.fromkeys(arguments_taken(name)[0], 1)
        made = getattr(net, name)(inputs, f"of {name}", **arguments)
        assert made == f"of {name}" and net.operators[-1] == Operator(name, inputs, made, arguments)
    assert net.relu.__name__ == "relu" and "add_operator('relu'" in net.relu.__doc__
    assert not hasattr(net, "no_such_row") and not hasattr(net, "__array__")


def test_an_unknown_type_can_be_added():
    net = Net()
    assert net.add_operator("my.operator", "x", p=1) == "my.operator" and net.operators[0].type == "my.operator"


def test_an_operator_is_added_as_it_is():
    net = Net()
    o = Operator("relu", "x", "y", None, "n", True)
    assert net.add_operator(o) == "y" and net.operators[0] is o
    assert net.insert_operator(0, o.replace(outputs="z")) == "z"
    assert [str(o.outputs[0]) for o in net] == ["z", "y"] and net.inputs == ("x",)


def test_python_operators():
    def double(x): return 2 * x
    net = Net()
    assert net.create_python_operator(double, ["x", 2], "y") == "y"
    assert net.create_python_operator(double, "y", 2, abs) == ("python", "python_1")
    assert net.operators[0].function == (double, None) and net.operators[1].function == (double, abs)
    assert repr(net.operators[0]) == "y = python(x, constant, f=double)" and net.inputs == ("x",)
    assert net.clone().operators == net.operators


def failing(net):
    """Calls that must change nothing."""
    return [lambda: net.mul(["h", 99], " z"), lambda: net.mul(["h", 99, "a\n"]), lambda: net.mul(["h", 99], p=object()),
            lambda: net.mul(["h", 99, np.ones(2)]), lambda: net.mul(["h", 99], "constant"), lambda: net.mul("h", -1),
            lambda: net.mul(["h", 99], ["a", "a"]), lambda: net.add_constant(1, "h"), lambda: net.add_constant({}, "q"),
            lambda: net.rename("h", "y"), lambda: net.rename("no", "new"), lambda: net.insert_operator(-1, "relu", "x"),
            lambda: net.remove_operator(Operator("relu", "no", "such")), lambda: net.add_operator("python", ["x", 99]),
            lambda: net.create_python_operator(3, ["x", 99]), lambda: setattr(net, "training", 1),
            lambda: net.add_operator(net.operators[0], "x"), lambda: net.insert_operator(99, "relu", ["x", 99]),
            lambda: net.add_operator(Operator("relu", "x", "constant"))]


def test_a_wrong_call_changes_nothing():
    net = small()
    text, edits = net.text(), net.edits
    for call in failing(net):
        with pytest.raises((TypeError, ValueError)): call()
        assert (net.text(), net.edits) == (text, edits) and 99 not in net.constants.values()


def test_edits_count_every_change():
    net, seen = Net(), [0]
    for change in (lambda: net.relu("x", "y"), lambda: net.insert_operator(0, "exp", "x", "e"),
                   lambda: net.add(["y", 1]), lambda: net.add_constant(2.0), lambda: net.rename("e", "f"),
                   lambda: setattr(net, "outputs", "y"),
                   lambda: setattr(net, "training", True), lambda: net.remove_operator(net.operators[0]),
                   lambda: net.create_python_operator(abs, "y")):
        change()
        assert net.edits > seen[-1]
        seen.append(net.edits)
    for look in (net.text, net.clone, lambda: net.inputs, lambda: net.blobs, net.to_dot, net.to_svg): look()
    assert net.edits == seen[-1]


def test_insert_and_remove():
    net = small()
    relu = net.operators[1]
    assert net.insert_operator(1, "add", ["h", 1.0], "h") == "h"
    assert [o.type for o in net] == ["linear", "add", "relu", "mul"]
    net.remove_operator(relu)
    assert net.inputs == ("x", "w", "b", "relu") and [o.type for o in net] == ["linear", "add", "mul"]
    net.remove_operator(Operator("linear", ["x", "w", "b"], "h"))
    assert net.inputs == ("h", "relu") and "x" not in net and net.relu("x") == "relu_1"
    same_twice = Net()
    for _ in range(2): same_twice.relu("x", "x")
    second = same_twice.operators[1]
    same_twice.exp("x", "x")
    same_twice.remove_operator(second)
    assert [o.type for o in same_twice] == ["relu", "exp"] and same_twice.operators[0] is not second


def test_an_assigned_output_is_not_removed():
    net = small()
    net.outputs = "y"
    with pytest.raises(ValueError, match="'y' would no longer exist"): net.remove_operator(net.operators[2])
    net.insert_operator(2, "exp", "relu", "y")
    net.remove_operator(net.operators[3])
    assert net.outputs == ("y",) and net.operators[-1].type == "exp"


def test_rename():
    net = small()
    net.outputs, net.shapes["h"] = ["h", "constant"], ((2,), "float32")
    net.add(["h", "h"], "h")
    assert net.rename("h", "hidden") == "hidden" and net.rename("constant", "half") == "half"
    assert "h" not in net and net.versions("hidden") == 2 and net.outputs == ("hidden", "half")
    assert net.shapes == {"hidden": ((2,), "float32")} and dict(net.constants) == {"half": 0.5}
    net.mul(["x", 0.5])
    assert net.operators[-1].inputs == ("x", "half") and net.relu("h") == "relu_1"


def test_a_clone_is_independent():
    net = random_net(3)
    text = net.text()
    other = net.clone()
    assert same(net, other) and net.clone("other").name == "other"
    name = next(n for n, v in other.constants.items() if isinstance(v, cg.Tensor) and v.size)
    before = net.constants[name].tolist()
    other.constants[name][...] = 1
    other.relu("new", "newer")
    other.training = not other.training
    other.shapes["new"] = (), "float32"
    other.rename(other.inputs[0], "renamed")
    assert net.text() == text and "new" not in net
    assert net.constants[name].tolist() == before != other.constants[name].tolist()


def test_a_net_can_be_copied_and_pickled():
    net = small()
    net.add_constant(np.ones(2), "w")
    for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert same(net, other)
        other.relu("y")
        assert len(other) == len(net) + 1


def test_the_text():
    net = small()
    net.shapes["x"] = (32, 784), "float32"
    net.add_constant(np.zeros((784, 10), np.float32), "w")
    net.max("y", ["values", "at"], axis=1)
    net.add_operator("print", "at", 0)
    net.training = True
    assert net.text() == repr(net) == """\
net small: 5 operators, train mode
  inputs     x: float32 (32, 784)
             b
  constants  constant = 0.5
             w: float32 (784, 10)
  outputs    values

  0  h          = linear(x, w, b)
  1  relu       = relu(h)
  2  y          = mul(relu, constant)
  3  values, at = max(y, axis=1)
  4               print(at)"""
    net.training = False
    assert net.text().startswith("net small: 5 operators, predict mode\n")
    assert Net().text() == "net net: 0 operators"
    one = Net()
    one.relu("x", "an output with a very long name")
    assert one.text().endswith("\n\n  0   = relu(x)".replace("   =", "  'an output with a very long name' ="))


@pytest.mark.parametrize("seed", range(50))
def test_random_nets_are_consistent(seed):
    net = random_net(seed, 20)
    written, read = set(net.constants), []
    for o in net:
        read += [b for b in o.inputs if b is not None and b not in written]
        written |= {*o.outputs}
        assert all(b in net and b in net.blobs for b in (*o.inputs, *o.outputs) if b is not None)
    assert list(net.inputs) == list(dict.fromkeys(read)) and len(net.text().splitlines()) >= len(net)
    assert sum(net.versions(b) for b in net.blobs) == sum(len(o.outputs) for o in net)
    assert all(o in net.readers(b) for o in net for b in o.inputs if b is not None)


class Odd:
    """Has the attributes of many things."""

    shape, dtype, name, type = (2,), "float32", 3, None

    def __len__(self):
        return -1

    def __index__(self):
        raise RuntimeError


def test_wrong_types_give_errors():
    """Every public method with wrong arguments in each place."""
    junk = [None, 3, -1, 1 << 70, 2.5, math.nan, 1j, "x", "", "\0", b"x", [], ["x"], [[]], (None,), {}, {"x": 1},
            slice(1), ..., int, abs, Odd(), np.ones(2), np.array(None), cg.ones(2), Operator("relu", "x", "y"), small(),
            object()]
    methods = ["add_operator", "insert_operator", "create_python_operator", "add_constant", "rename", "remove_operator",
               "clone", "versions", "readers", "writers", "relu", "mul"]
    raised = 0
    for name in methods:
        for a in junk:
            for args in ((a,), (a, a), ("x", a), (a, "x"), ("x", "z", a), (0, "f", a), (0, "f", "x", a)):
                net = small()
                try:
                    getattr(net, name)(*args)
                except (TypeError, ValueError):
                    raised += 1
                assert net.text() and net.blobs is not None and net.to_dot()
        for key in ("p", "axis"):
            for a in junk:
                try: small().relu("x", **{key: a})
                except (TypeError, ValueError): raised += 1
    assert raised > 1500


def test_shapes_that_are_none_are_not_printed():
    net = small()
    net.shapes |= {"x": None, "w": 3, "b": ()}
    assert "  inputs     x\n             w\n             b\n" in net.text() and net.to_svg() and net.to_dot()


def test_the_nets_of_the_other_tests():
    assert len(mlp()) == 31 and len(chain(30)) == 30 and mlp().inputs[0] == "x"


def test_graph_is_loaded_at_first_use():
    import subprocess
    import sys
    code = ("import sys, cygrad; assert 'cygrad.nets' not in sys.modules and 'graph' in dir(cygrad); "
            "cygrad.graph.Net; import cygrad.graph; assert cygrad.graph is cygrad.nets; "
            "assert 'cygrad.nets.drawing' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
