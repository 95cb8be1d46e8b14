"""The head of a captured net as the loss of an updater: the same updates as with the function that was captured, bit
for bit."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, Workspace
from cygrad.trainers import DynamicLossScalingUpdater, Updater

rng = np.random.default_rng(0)
X, T = rng.normal(size=(20, 8, 1, 4, 4)).astype("float32"), rng.integers(0, 3, (20, 8))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Dropout(0.25), nn.Linear(12, 3))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(16, 3))


def recorded(f, *examples):
    """The net of the forward pass in train mode."""
    with cg.record(): return Net.capture(f, *examples)


def trained(make, as_head, kind=Updater, grad_req="write", **options):
    """The parameters, buffers and losses after five updates, with the function or with the head of its net."""
    cg.random.seed(3)
    model = make()
    for w in model.parameters(): w.attach_grad(grad_req)
    solver = cg.optim.Momentum(lr=0.1)
    solver.set_parameters(dict(model.named_parameters()))
    batches, losses = iter(zip(X, T, strict=True)), []

    def loss(x, t):
        return cg.cross_entropy(model(x), t)

    if as_head:
        net = recorded(loss, X[0], T[0])
        assert net.inputs == ("x", "t")
    updater = kind(solver, net.head() if as_head else loss, lambda: next(batches), **options)
    for i in range(5):
        updater.update(i)
        losses.append(updater.last_loss.item())
    return losses, {name: x.detach().numpy().copy() for name, x in model.state_dict().items()}


@pytest.mark.parametrize("kind", [Updater, DynamicLossScalingUpdater])
@pytest.mark.parametrize("accum_grad", [1, 3])
@pytest.mark.parametrize("grad_req", ["write", "add"])
@pytest.mark.parametrize("make", [mlp, cnn])
def test_the_same_bits_as_with_the_function(make, grad_req, accum_grad, kind):
    wanted, found = (trained(make, as_head, kind, grad_req, accum_grad=accum_grad) for as_head in (False, True))
    assert wanted[0] == found[0] and len(set(wanted[0])) == 5
    for name, x in wanted[1].items(): assert x.tobytes() == found[1][name].tobytes(), name


def test_callbacks_run_around_both_passes():
    w = cg.tensor([1.0, 2.0]).attach_grad()
    solver, calls = cg.optim.Sgd(lr=0.5), []
    solver.set_parameters({"w": w})
    net = recorded(lambda x: (w * x).sum(), np.ones(2, "float32"))

    def say(what): return lambda i: calls.append((what, i, w.grad is not None and w.grad.numpy().any()))

    updater = Updater(solver, net.head(), lambda: np.array([1.0, 3.0], "float32"), accum_grad=2, **{
        f"{stage}_callback_on_{end}": say(f"{stage} {end}") for stage in ("forward", "backward", "update")
        for end in ("start", "finish")})
    updater.update(7)
    passes = [("forward start", 7), ("forward finish", 7), ("backward start", 7), ("backward finish", 7)]
    assert [call[:2] for call in calls] == [*passes, *passes, ("update start", 7), ("update finish", 7)]
    assert [bool(call[2]) for call in calls[:5]] == [False, False, False, True, True]
    assert w.tolist() == [0.0, -1.0]


def test_a_head_is_a_name_that_can_be_called():
    net = Net("small")
    net.mul(["x", "w"], "y")
    net.sum("y", "s")
    head = net.head("y")
    assert head == "y" and isinstance(head, str) and head.net is net and net.head() == "s"
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record(): y = head(x, [3.0, 4.0])
    y.backward(cg.ones(2))
    assert y.tolist() == [3, 8] and x.grad.tolist() == [3, 4]
    assert not head(x, [3.0, 4.0]).requires_grad        # (outside record())


def test_parts_without_a_graph_stay_without():
    w = cg.tensor([1.0, 2.0]).attach_grad()

    def f(x):
        with cg.no_grad(): scale = w * 10.0
        return (w * scale * x).sum() + (w.detach() * w).sum()

    net = recorded(f, np.ones(2, "float32"))
    with cg.record(): net.head()(np.ones(2, "float32")).backward()
    found = w.grad.numpy().copy()
    with cg.record(): f(cg.ones(2)).backward()
    assert np.array_equal(found, w.grad.numpy()) and found.tolist() == [11, 22]


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_gradient_operators_that_bind(grad_req):
    cg.random.seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 3))
    for w in model.parameters(): w.attach_grad(grad_req)
    names = dict(model.named_parameters())

    def loss(x, t): return cg.cross_entropy(model(x), t)

    net = Net.capture(loss, X[0], T[0], names=names)
    made = net.add_gradient_operators([net.outputs[0]], bind=True)
    assert {*made} == {*names}
    workspace, found = Workspace(), []
    for x, t in zip(X[:3], T[:3], strict=True):
        workspace.feed("x", x)
        workspace.feed("t", t)
        workspace.run(net)
        found.append([w.grad.numpy().copy() for w in names.values()])
        assert all(w.fresh_grad for w in names.values())
    for w in names.values(): w.grad = None
    for (x, t), gradients in zip(zip(X[:3], T[:3], strict=True), found, strict=True):
        with cg.record(): y = loss(cg.tensor(x), cg.tensor(t))
        y.backward()
        for w, g in zip(names.values(), gradients, strict=True): assert w.grad.numpy().tobytes() == g.tobytes()
