"""What a list of gradient operators says is what runs: edited, run alone, with any blob kept, and with the bits of
eager code."""

import numpy as np
import pytest
from model_nets import MODELS, numbers
from net_runs import check_alone, filled, run
from rows import same_bits
from typed_nets import arrays_for, typed_net

import cygrad as cg
from cygrad.graph import Net, Operator, Workspace
from cygrad.nets import lowering
from cygrad.nets.gradients import kept_names, results_of

X = np.array([0.5, -1.0, 2.0])


def gradients_of(net):
    """The names of all blobs that gradient operators write."""
    return [str(name) for o in net.operators if o.is_gradient for name in o.outputs]


def values(workspace, names):
    return {name: workspace.fetch(name).numpy() for name in names if name in workspace}


# ---- what is kept ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(60))
def test_the_bits_of_a_run_that_keeps_all_blobs(seed):
    """Sums have the bits of a run that stores no contribution."""
    net, sizes = typed_net(seed)
    net.add_gradient_operators(["loss"])
    with np.errstate(all="ignore"):
        plain, whole = filled(**arrays_for(sizes, seed)), filled(**arrays_for(sizes, seed))
        plain.run(net)
        whole.run(net, keep=gradients_of(net))
    found = values(whole, gradients_of(net))
    for name, g in values(plain, gradients_of(net)).items(): same_bits(found[name], g)
    for o in net.operators:                         # a contribution is what is added
        if o.is_gradient and o.type == "add" and {*o.inputs} <= {*found}:
            np.testing.assert_allclose(found[o.outputs[0]], found[o.inputs[0]] + found[o.inputs[1]], rtol=1e-4,
                                       atol=1e-5)


def used(n):
    """A blob that n operators read."""
    net, ys = Net("used"), []
    for k in range(n): ys.append(net.add_operator("scale_gradient", "x", s=1.0 + k))
    total = ys[0]
    for y in ys[1:]: total = net.add([total, y])
    return net, net.add_gradient_operators([net.sum(total, axis=0)])["x"]


def test_contributions_are_not_stored():
    """The gradient of a blob that many operators read takes no more memory than that of one."""
    peaks = []
    for n in (4, 8, 16):
        net, _ = used(n)
        net.share_blobs()
        peaks.append(net.plan({"x": (1000,)}).peak_bytes)
    assert len({*peaks}) == 1


def test_contributions_that_are_kept():
    net, g = used(3)
    workspace = filled(x=X)
    names = ["x_grad_autosplit_0", "x_grad_autosplit_1", "x_grad_autosplit_2", "x_grad_sum_0"]
    workspace.run(net, keep=names)
    assert [workspace.fetch(name).numpy()[0] for name in (*names, g)] == [3, 2, 1, 5, 6]
    workspace.run(net)                              # and not again
    assert not {*names} & {*workspace.blobs} and workspace.fetch(g).tolist() == [6, 6, 6]
    workspace.run(net, keep="x_grad_sum_0")
    assert workspace.fetch("x_grad_sum_0").tolist() == [5, 5, 5]


def test_contributions_to_a_variable():
    """They go to .grad directly. One that is kept is computed beside that."""
    w = cg.tensor([1.0, 2.0, 3.0])
    w.attach_grad("add")

    def step(x):
        with cg.record(): loss = ((w * x).sum() + (w * w * x).sum()) * 2
        loss.backward()
        return loss

    net = Net.capture(step, ((3,), "float32"), names={"w": w})
    parts = [name for name in gradients_of(net) if name.startswith("w_grad_autosplit")]
    assert len(parts) == 3
    workspace = filled(x=np.array([1, 2, 4], "f4"))
    workspace.run(net)
    once = w.grad.numpy().copy()
    workspace.run(net, keep=parts)
    np.testing.assert_array_equal(w.grad.numpy(), 2 * once)
    np.testing.assert_allclose(sum(workspace.fetch(name).numpy() for name in parts), once)


def test_hooks_see_contributions_that_are_kept():
    net, _ = used(3)
    seen = {}
    filled(x=X).run(net, after=lambda operator, values: seen.update(dict(values)), keep="x_grad_autosplit_1")
    assert seen["x_grad_autosplit_1"].tolist() == [2, 2, 2] and "x_grad_autosplit_2" not in seen


# ---- edited ----------------------------------------------------------------------------------------------------------

def replaced(net, old, new):
    """The net with another operator in the place of one."""
    k = [o is old for o in net.operators].index(True)
    made = Net(net.name)
    for o in (*net.operators[:k], *new, *net.operators[k + 1:]): made.add_operator(o)
    return made


def chain():
    net = Net("chain")
    net.square("x", "s")
    net.exp("s", "y")
    net.add_gradient_operators(["y"])
    return net


def test_a_gradient_operator_that_was_replaced():
    net = chain()
    last = net.operators[-1]
    made = replaced(net, last, [Operator("mul", ["x", "s_grad"], last.outputs, is_gradient=True)])
    same_bits(run(made, last.outputs[0], x=X), X * np.exp(X * X))


@pytest.mark.parametrize("type, name, wanted", [
    ("square", "h", lambda h, g: 2 * h * g), ("exp", "h", lambda h, g: h * g), ("relu", "h", lambda h, g: (h > 0) * g),
    ("tanh", "h", lambda h, g: (1 - h * h) * g)])
def test_a_gradient_operator_that_reads_another_blob(type, name, wanted):
    """An input or an output that its operator keeps."""
    net = Net()
    net.add_operator(type, "x", "y")
    g = net.add_gradient_operators({"y": "g"})["x"]
    last = net.operators[-1]
    made = replaced(net, last, [last.replace(inputs=[name, "g"])])
    np.testing.assert_allclose(run(made, g, x=X, h=3 * X, g=X), wanted(3 * X, X))


def test_an_edited_pass_of_a_captured_step():
    """An operator between the gradient and the .grad to which it goes is refused, as is a pass without a part of it."""
    w = cg.tensor([1.0, 2.0])
    w.attach_grad()

    def step(x):
        with cg.record(): loss = (w * x).sum()
        loss.backward()

    net = Net.capture(step, ((2,), "float32"), names={"w": w})
    with pytest.raises(RuntimeError, match="writes .grad, and is for all operators before it as they are"):
        net.remove_operator(net.operators[-1])


# ---- alone -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(40))
def test_each_gradient_operator_of_a_random_net_alone(seed):
    net, sizes = typed_net(seed)
    net.add_gradient_operators(["loss"])
    assert check_alone(net, arrays_for(sizes, seed)) > 0


@pytest.mark.parametrize("model", MODELS)
def test_each_gradient_operator_of_a_model_alone(model):
    net, shapes = model()
    net.add_gradient_operators(["loss"])
    assert check_alone(net, numbers(shapes)) > 5


def test_a_gradient_operator_in_immediate_mode():
    """The values that its operator reads are those of the workspace."""
    net = chain()
    workspace, alone = filled(x=X, s_grad=X), Net()
    with workspace.immediate(): alone.add_operator(net.operators[-1])
    same_bits(workspace.fetch(net.operators[-1].outputs[0]).numpy(), 2 * X * X)


# ---- what is found once ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(20))
def test_what_a_gradient_operator_writes_is_stored_in_it(seed, monkeypatch):
    """It is what results_of() finds, and a run asks neither that again nor what the operators keep."""
    net, sizes = typed_net(seed)
    net.add_gradient_operators(["loss"])
    made = [o for o in net.operators if o.of is not None and o.writes is not None]
    assert made
    for o in made:
        assert o.replace().writes is None and results_of(o.replace(), net.constants) == o.writes
        assert kept_names(o.of, [i for i, _ in o.writes]) == [*o.inputs[:len(o.inputs) - len(o.of.outputs)]]
    with np.errstate(all="ignore"):
        before, after = filled(**arrays_for(sizes, seed)), filled(**arrays_for(sizes, seed))
        before.run(net)
        asked = []
        monkeypatch.setattr(lowering, "kept_names", lambda of, wanted: asked.append(of) or kept_names(of, wanted))
        after.run(net)
    assert not {*map(id, asked)} & {id(o.of) for o in made}
    for name, y in values(before, map(str, net.blobs)).items(): same_bits(after.fetch(name).numpy(), y)


def test_a_later_run_that_keeps_the_same_blobs_makes_no_new_program(monkeypatch):
    net, _ = used(3)
    workspace, names = filled(x=X), gradients_of(net)
    workspace.run(net, keep=names)
    monkeypatch.setattr(Workspace, "_run_anew", lambda *_: pytest.fail("the run was analysed again"))
    workspace.run(net, keep=names)
    assert {*values(workspace, names)} == {*names}
