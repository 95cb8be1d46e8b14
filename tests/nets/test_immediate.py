"""Immediate mode: operators run as they are added; the mode is restored, whatever happens."""

import threading

import numpy as np
import pytest
from net_runs import filled

import cygrad as cg
from cygrad.graph import Net, Operator
from cygrad.nets.immediate import state

X = np.array([0.5, -1.0, 2.0])


@pytest.fixture(autouse=True)
def the_mode_is_restored():
    yield
    assert state.scope is None


def test_each_operator_runs_as_it_is_added():
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        y = net.square("x")
        assert workspace.fetch(y).tolist() == (X * X).tolist()
        net.mul([y, 2.0], "z")
        assert workspace.fetch("z").tolist() == (2 * X * X).tolist()
    net.neg("z", "later")
    assert "later" not in workspace and [o.type for o in net] == ["square", "mul", "neg"]


def test_gradient_operators_run_once_each_in_order():
    """Defect 4 of Caffe2: a sum ran before its inputs existed, and again."""
    calls = []

    def grad(inputs, outputs, heads):
        calls.append(len(heads))
        return heads[0] * 2
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        net.create_python_operator(lambda x: x * 2, "x", "y", grad)
        net.add([net.square("x", "s"), "y"], "z")
        found = net.add_gradient_operators(["z"])
        assert calls == [1]
        parts = [workspace.fetch(f"x_grad_autosplit_{k}").tolist() for k in range(2)]
        assert sorted(parts) == sorted([[2, 2, 2], (2 * X).tolist()])
        assert workspace.fetch(found["x"]).tolist() == (2 * X + 2).tolist()
    assert set(found.values()) <= set(workspace.blobs)


def test_a_failed_operator_is_not_added():
    workspace, net = filled(x=X, w=np.ones((2, 2))), Net()
    net.add_constant(1.0, "c")
    with workspace.immediate():
        for call, error, wording in (
                (lambda: net.matmul(["x", "w"], "y"), ValueError, "inner sizes"),
                (lambda: net.neg("nothing", "y"), ValueError, "immediate mode: the blob 'nothing' has no value"),
                (lambda: net.mul(["x", 5.0, "w"], "y"), ValueError, "got 3 inputs"),
                (lambda: net.add_operator("unknown", "x", "y"), RuntimeError, "has the type 'unknown'")):
            before = net.text(), net.edits, workspace.blobs
            with pytest.raises(error, match=wording): call()
            assert (net.text(), net.edits, workspace.blobs) == before and 5.0 not in net.constants.values()
        assert net.neg("x") == "neg"


def test_failed_gradient_operators_change_nothing():
    def wrong(inputs, outputs, heads):
        raise KeyError("mine")
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        net.create_python_operator(lambda x: x * 2, net.square("x"), "y", wrong)
        before = net.text(), workspace.blobs
        with pytest.raises(KeyError, match="mine"): net.add_gradient_operators(["y"])
        assert (net.text(), workspace.blobs) == before
        with pytest.raises(RuntimeError): _ = net.gradients


def test_the_scope_is_left_by_an_exception():
    """Defect 10 of Caffe2: after an exception the wrong workspace was current."""
    workspace, net = filled(x=X), Net()
    for error in (KeyError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), workspace.immediate(): raise error
        net.neg("x")
        assert workspace.blobs == ("x",)


def test_scopes_nest():
    outer, inner, net = filled(x=X), filled(x=2 * X), Net()
    with outer.immediate():
        with pytest.raises(KeyError), inner.immediate():
            net.neg("x", "a")
            raise KeyError
        net.neg("x", "b")
        scope = outer.immediate()
        with scope, scope: net.neg("x", "c")
    assert inner.blobs == ("x", "a") and outer.blobs == ("x", "b", "c")
    assert inner.fetch("a").tolist() == (-2 * X).tolist() and outer.fetch("b").tolist() == (-X).tolist()


def test_other_threads_are_not_in_the_mode():
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        thread = threading.Thread(target=lambda: net.neg("x", "a"))
        thread.start()
        thread.join()
        assert "a" in net and "a" not in workspace


def test_the_mode_of_training_and_recording_is_kept():
    workspace, net = filled(x=np.ones(100)), Net()
    net.training = True
    with cg.record(train_mode=False), workspace.immediate():
        net.dropout("x", "y", p=0.5)
        assert cg.is_recording() and not cg.is_training()
    assert 0 in workspace.fetch("y").numpy() and not workspace.fetch("y").requires_grad


def test_in_place_operators_and_their_gradients():
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        net.neg("x", "x")
        net.tanh("x", "x")
        found = net.add_gradient_operators(["x"])
    np.testing.assert_allclose(workspace.fetch(found["x"]).numpy(), np.tanh(-X) ** 2 - 1, rtol=1e-14)


def test_gradients_of_operators_that_did_not_run():
    """They run on the values of the workspace, if it has those that the operators read."""
    workspace, net = filled(x=X), Net()
    net.add(["x", "w"], "y")
    workspace.feed("y", X)
    wording = r"add_gradient needs the operator y = add\(x, w\), which has not run before it in this net"
    with workspace.immediate(), pytest.raises(RuntimeError, match=wording):
        net.add_gradient_operators(["y"])
    assert len(net) == 1
    workspace.feed("w", X[:1])
    with workspace.immediate(): found = net.add_gradient_operators(["y"])
    assert workspace.fetch(found["w"]).tolist() == [3]


def test_a_blob_that_is_fed_between_an_operator_and_its_gradient():
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        net.square("x", "y")
        workspace.feed("x", X + 5)
        found = net.add_gradient_operators(["y"])
        assert workspace.fetch(found["x"]).tolist() == (2 * X).tolist()
    assert workspace.fetch("x").tolist() == (X + 5).tolist()


def test_second_derivatives():
    workspace, net = filled(x=X), Net()
    with workspace.immediate():
        net.sin("x", "y")
        first = net.add_gradient_operators(["y"])["x"]
        second = net.clone().add_gradient_operators([first])["x"]
        np.testing.assert_allclose(workspace.fetch(second).numpy(), -np.sin(X), rtol=1e-14)


def test_an_operator_object_and_one_without_outputs():
    workspace, net, seen = filled(x=X), Net(), []
    with workspace.immediate():
        net.add_operator(Operator("neg", "x", "y"))
        net.create_python_operator(lambda y: seen.append(y.tolist()), "y", [])
        net.insert_operator(0, "exp", "x", "e")
    assert seen == [(-X).tolist()] and workspace.fetch("e").tolist() == np.exp(X).tolist()
