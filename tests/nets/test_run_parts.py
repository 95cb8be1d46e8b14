"""Running a net in two parts, forward() and backward(), and with functions before and after each operator."""

from operator import setitem

import numpy as np
import pytest
from model_nets import MODELS, cnn, mlp, numbers
from net_runs import filled, training_step
from rows import same_bits

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net

X = np.array([0.5, -1.0, 2.0], "f4")
LABELS = np.array([0, 2, 1, 1])


def differentiated(model):
    """A net, values for its inputs, and its gradients."""
    net, shapes = model()
    return net, numbers(shapes), net.add_gradient_operators(["loss"])


def kept(net, workspace):
    return {name: workspace.fetch(name).numpy() for name in sorted(net.kept)}


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for name in found: same_bits(found[name], wanted[name])


def dropping(solver):
    """A training step of a model with dropout, and the model."""
    cg.random.seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3)).train()
    return training_step(model, solver), model


# ---- two parts -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_forward_and_backward_are_a_run(model, clear):
    net, arrays, _ = differentiated(model)
    whole, parts = filled(**arrays), filled(**arrays)
    whole.run(net)
    for _ in range(2):
        parts.forward(net, clear_no_need_grad=clear)
        parts.backward(net, clear_buffer=clear)
        same(kept(net, parts), kept(net, whole))


def test_the_values_of_the_forward_part():
    net, arrays, found = differentiated(mlp)
    hidden = net.operators[0].outputs[0]
    assert hidden not in net.kept
    workspace = filled(**arrays)
    workspace.forward(net)
    first = workspace.fetch(hidden).numpy()
    same_bits(first, cg.linear(*[cg.tensor(arrays[name]) for name in ("x", "w0", "b0")]).numpy())
    assert found["w0"] not in workspace
    workspace.backward(net)
    same_bits(workspace.fetch(hidden).numpy(), first)
    workspace.forward(net, clear_no_need_grad=True)
    assert hidden not in workspace or workspace.fetch(hidden).numpy().tobytes() == first.tobytes()


def views(x, w):
    return x.reshape(3, 1), x[1:][:1]


def written_later(x, w):
    return x.reshape(3, 1),


def written_first(x, w):
    x += 1
    return x[1:], x * w


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("f", [views, written_later, written_first])
def test_results_in_the_memory_of_an_input_exist_after_forward(f, clear):
    """They are copies, which the first part of the program has to make."""
    w = cg.tensor(X)
    w.attach_grad()

    def step(x):
        results = f(x, w.detach())
        u = x * 2
        with cg.record(): y = (u * w).sum()
        y.backward()
        if f is written_later: x *= 3
        return *results, y, x[:2]               # (the last one is a result of the second part)

    net = Net.capture(step, X)
    x = cg.tensor(X)
    wanted = [y.numpy() for y in f(x, w.detach())]
    workspace, whole = filled(x=X), filled(x=X)
    whole.run(net)
    for _ in range(2 if f is views else 1):
        workspace.forward(net, clear_no_need_grad=clear)
        for name, y in zip(net.outputs, wanted, strict=False): same_bits(workspace.fetch(name).numpy(), y)
        same_bits(workspace.fetch("x").numpy(), x.numpy())
        for _ in range(2 if f is views else 1):
            workspace.backward(net)
            for name in (*net.outputs, "x"): same_bits(workspace.fetch(name).numpy(), whole.fetch(name).numpy())


def test_blobs_that_both_parts_write_have_the_values_of_each():
    net = Net()
    net.mul(["x", "w"], "y")
    net.reshape("q", "v", shape=(1, 3))
    net.add("q y".split(), "q")
    net.sum(net.mul(["y", "x"]), "loss")
    gradient = net.add_gradient_operators(["loss"])["w"]
    net.mul(["q", gradient], "q")
    net.mul([gradient, "v"], "v")
    net.neg("loss", "loss")
    for name in "qv": net.mul([name, 1.0], name + "_now")
    workspace, whole = (filled(x=X, w=2 * X, q=3 * X) for _ in range(2))
    whole.run(net)
    workspace.forward(net)
    y = X * (2 * X)
    for name, value in zip("qvy", (3 * X + y, 3 * X[None], y), strict=True):
        same_bits(workspace.fetch(name).numpy(), value)
    assert workspace.fetch("loss").item() == (y * X).sum() and "q_now" not in workspace
    workspace.backward(net)
    for name in (*"xwqvy", "loss", gradient, "q_now", "v_now"):
        same_bits(workspace.fetch(name).numpy(), whole.fetch(name).numpy())


def test_backward_can_be_repeated_until_its_values_are_cleared():
    net, arrays, found = differentiated(cnn)
    hidden = net.operators[0].outputs[0]
    workspace = filled(**arrays)
    workspace.forward(net)
    workspace.backward(net)
    wanted = kept(net, workspace)
    workspace.backward(net)
    same(kept(net, workspace), wanted)
    workspace.backward(net, clear_buffer=True)
    same(kept(net, workspace), wanted)
    with pytest.raises(ValueError, match="has no value"): workspace.fetch(hidden)
    with pytest.raises(RuntimeError, match=r"call forward\(\) of net cnn first"): workspace.backward(net)
    assert found["w0"] in workspace


def test_forward_forgets_old_gradients_and_a_run_what_it_overwrites():
    net, arrays, found = differentiated(mlp)
    workspace = filled(**arrays)
    workspace.run(net)
    workspace.feed("relu", 0.0)
    workspace.run(net)
    assert "relu" not in workspace and found["w0"] in workspace
    workspace.forward(net)
    assert found["w0"] not in workspace and "loss" in workspace
    workspace.backward(net)
    assert found["w0"] in workspace


def test_what_backward_reads_must_not_change():
    net, arrays, _ = differentiated(mlp)
    workspace = filled(**arrays)
    with pytest.raises(RuntimeError, match=r"call forward\(\) of net mlp first"): workspace.backward(net)
    workspace.forward(net)
    workspace.feed("w1", arrays["w1"] * 2)
    with pytest.raises(RuntimeError, match=r"'w1' was written after forward\(\) of net mlp"): workspace.backward(net)
    workspace.forward(net)
    workspace.feed(net.operators[1].outputs[0], 0.0)
    with pytest.raises(RuntimeError, match=r"'relu' was written after forward\(\)"): workspace.backward(net)
    workspace.forward(net)
    net.add_operator("neg", "loss")
    with pytest.raises(RuntimeError, match=r"call forward\(\) of net mlp first"): workspace.backward(net)


def test_a_training_step_in_two_parts():
    ours, model = dropping(cg.optim.Adam(0.1))
    net = Net.capture(ours, np.ones((4, 3), "f4"), LABELS, names=dict(model.named_parameters()))
    theirs, other = dropping(cg.optim.Adam(0.1))
    workspace = filled(t=LABELS)
    cg.random.seed(1)
    for k in range(3):
        x = np.full((4, 3), k + 1.0, "f4") * X
        state = cg.random.default_generator.state
        workspace.feed("x", x)
        workspace.forward(net)
        workspace.backward(net)
        with pytest.raises(RuntimeError, match=r"'0\.weight' was written after forward\(\)"): workspace.backward(net)
        cg.random.default_generator.state = state
        loss = theirs(cg.tensor(x), cg.tensor(LABELS))
        assert workspace.fetch(net.outputs[0]).item() == loss.item()
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            same_bits(a.numpy(), b.numpy())
            same_bits(a.grad.numpy(), b.grad.numpy())


def test_a_net_without_a_plan_has_no_parts():
    net = Net()
    net.create_python_operator(lambda x: x * 2, "x", "y", grad_f=lambda xs, ys, gs: gs[0] * 2)
    net.add_gradient_operators(["y"])
    with pytest.raises(RuntimeError, match=r"Workspace\.forward: net net has no plan"): filled(x=X).forward(net)


def test_a_backward_part_that_fails_must_begin_again():
    net = Net()
    net.mul([net.sum("x"), 2.0], "loss")
    net.add_gradient_operators(["loss"])
    net.cholesky("m", "factor")
    workspace = filled(x=X, m=-np.eye(2))
    workspace.forward(net)
    with pytest.raises(np.linalg.LinAlgError): workspace.backward(net)
    with pytest.raises(RuntimeError, match=r"call forward\(\) of net net first"): workspace.backward(net)


# ---- hooks -----------------------------------------------------------------------------------------------------------

def watched(net, workspace):
    """Run a net. Returns the operators before which, and after which, a function was called."""
    before, after = [], []

    def begins(operator, values):
        assert len(before) == len(after)
        for name in filter(None, operator.inputs):
            assert name in values or operator.is_gradient
        before.append(operator)

    def ends(operator, values):
        after.append(operator)
        if not operator.is_gradient: assert {*operator.outputs} <= {*values}

    workspace.run(net, begins, ends)
    return before, after


@pytest.mark.parametrize("model", MODELS)
def test_each_operator_is_watched_once_in_order(model):
    net, arrays, _ = differentiated(model)
    plain, workspace = filled(**arrays), filled(**arrays)
    plain.run(net)
    before, after = watched(net, workspace)
    assert before == after == [*net.operators]
    same(kept(net, workspace), kept(net, plain))


def test_a_training_step_is_watched():
    step, model = dropping(cg.optim.Sgd(0.1))
    net = Net.capture(step, np.ones((4, 3), "f4"), LABELS)
    other, eager = dropping(cg.optim.Sgd(0.1))
    cg.random.seed(2)
    before, after = watched(net, filled(x=np.ones((4, 3), "f4") * X, t=LABELS))
    assert before == after == [*net.operators]
    cg.random.seed(2)
    other(cg.tensor(np.ones((4, 3), "f4") * X), cg.tensor(LABELS))
    for a, b in zip(model.parameters(), eager.parameters(), strict=True): same_bits(a.numpy(), b.numpy())


def test_a_function_that_raises_ends_the_run():
    net, arrays, found = differentiated(mlp)
    workspace, live = filled(**arrays), cg.memory.stats()["live_bytes"]

    def stop(operator, values):
        if operator.is_gradient: raise KeyError("here")

    with pytest.raises(KeyError, match="here") as caught: workspace.run(net, before=stop)
    notes = [note for note in caught.value.__notes__ if "of net" in note or "the function" in note]
    assert notes == ["cygrad: the function `before` raised this at operator 10, loss_autogen_grad = ones_like(loss); "
                     "the operator did not fail"]
    del caught
    assert found["w0"] not in workspace and cg.memory.stats()["live_bytes"] == live
    with pytest.raises(TypeError, match="does not support item assignment"):
        workspace.run(net, after=lambda operator, values: setitem(values, "x", 1))
    with pytest.raises(RuntimeError, match="a net is running in this workspace"):
        workspace.run(net, after=lambda operator, values: workspace.fetch("x"))
