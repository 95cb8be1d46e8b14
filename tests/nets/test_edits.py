"""Changes of a net: unlink and rewire. (rename and remove_operator are in test_net.py, too.)"""

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Net, Workspace

X = np.array([1.0, 2.0, 3.0])


def chain():
    """y = exp(sin(x) * 2), and the outputs of a branch of sin(x)."""
    net = Net("chain")
    net.sin("x", "s")
    net.mul(["s", 2.0], "m")
    net.exp("m", "y")
    net.neg("s", "branch")
    return net


def result(net, blob, **values):
    workspace = Workspace()
    for name, x in values.items(): workspace.feed(name, x)
    workspace.run(net)
    return workspace.fetch(blob).numpy()


def test_an_unlinked_blob_is_an_input():
    net = chain()
    assert net.unlink("m") == "m"
    assert net.inputs == ("x", "m") and [o.type for o in net.operators] == ["sin", "exp", "neg"]
    np.testing.assert_array_equal(result(net, "y", x=X, m=X), np.exp(X))


def test_unlinking_removes_what_only_this_blob_needed():
    net = chain()
    net.remove_operator(net.operators[3])
    net.unlink("m")
    assert [o.type for o in net.operators] == ["exp"] and net.inputs == ("m",) and "s" not in net


def test_an_assigned_output_stays():
    net = chain()
    net.remove_operator(net.operators[3])
    net.outputs = ["s", "y"]
    net.unlink("m")
    assert [o.type for o in net.operators] == ["sin", "exp"]


def test_readers_of_a_rewired_blob_read_the_other_one():
    net = chain()
    net.cos("x", "c")
    net.insert_operator(0, "cos", "x", "first")
    assert net.rewire("s", on="first") == "first"
    assert [o.type for o in net.operators] == ["cos", "mul", "exp", "neg", "cos"]
    np.testing.assert_array_equal(result(net, "y", x=X), np.exp(np.cos(X) * 2))
    np.testing.assert_array_equal(result(net, "branch", x=X), -np.cos(X))


def test_an_input_can_be_rewired_on_a_new_input():
    net = chain()
    net.square("z", "unused")
    net.rewire("x", on="z")
    assert net.inputs == ("z",)
    np.testing.assert_array_equal(result(net, "branch", z=X), -np.sin(X))


def test_a_captured_net_is_unlinked_and_rewired():
    w = cg.tensor(np.array([2.0, 3.0, 4.0]))
    net = Net.capture(lambda x, z: cg.exp(x * w) + z, X, X)
    hidden = net.operators[0].outputs[0]
    net.unlink(hidden)
    found = result(net, net.outputs[0], x=X, z=X, **{hidden: X})
    np.testing.assert_array_equal(found, np.exp(X) + X)
    net.rewire(hidden, on="x")
    np.testing.assert_array_equal(result(net, net.outputs[0], x=2 * X, z=X), np.exp(2 * X) + X)


def test_arguments_of_a_captured_net_follow_changes():
    net = Net.capture(lambda x, t: (cg.exp(x), t * 2.0), X, X)
    net.rename("x", "z")
    assert net.inputs == ("z", "t") and "x" not in net
    net.outputs = net.outputs[1:]
    net.remove_operator(net.operators[0])           # (an argument stays an input, also if nothing reads it)
    assert net.inputs == ("z", "t") and "z" in net
    np.testing.assert_array_equal(result(net, net.outputs[0], z=X, t=X), X * 2)


def test_gradients_come_after_the_changes():
    net = chain()
    net.unlink("m")
    gradients = net.add_gradient_operators(["y"])
    np.testing.assert_array_equal(result(net, gradients["m"], x=X, m=X), np.exp(X))
    for change in (lambda: net.unlink("y"), lambda: net.rewire("x", on="m")):
        with pytest.raises(RuntimeError, match="has the gradient operator"): change()


def test_a_change_that_fails_changes_nothing():
    net = chain()
    net.split("x", ["a", "b", "c"], sections=3)
    net.relu("a", "r")
    before = net.text(), net.edits
    for change in (lambda: net.unlink("a"), lambda: net.unlink("x"), lambda: net.rewire("s", on="y"),
                   lambda: net.rewire("y", on="x")):
        with pytest.raises(ValueError): change()
    assert (net.text(), net.edits) == before
