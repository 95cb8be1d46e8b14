"""Plans and inference: memory, shapes and dtypes before anything runs."""

import gc

import numpy as np
import pytest
from model_nets import MODELS, cnn, mlp, numbers
from net_runs import filled

import cygrad as cg
from cygrad import nn
from cygrad.graph import GradientRegistry, Net, Plan, Workspace


def one(type="square"):
    net = Net(type)
    net.add_operator(type, "x", "y")
    return net


def held():
    stats = cg.memory.stats()
    return stats["live_bytes"] + stats["cached_bytes"]


def test_a_plan_takes_no_memory_and_computes_nothing():
    net, shapes = mlp()
    net.add_gradient_operators(["loss"])
    before = cg.memory.stats()["live_bytes"]
    plan = net.plan(shapes)
    assert cg.memory.stats()["live_bytes"] == before and type(plan) is Plan
    assert plan.peak_bytes >= plan.bound_bytes > 0 and len(plan.steps) >= 10
    assert repr(plan).startswith(f"<plan of mlp: {plan.peak_bytes:,} bytes for {len(plan.rows)} buffers and ")


@pytest.mark.parametrize("model", MODELS)
def test_the_buffers_of_a_plan_lie_apart(model):
    net, shapes = model()
    net.add_gradient_operators(["loss"])
    net.share_blobs()
    plan = net.plan(shapes)
    rows = [row for row in plan.rows if row.nbytes]
    assert max(row.offset + row.nbytes for row in rows) <= plan.peak_bytes
    for k, a in enumerate(rows):
        for b in rows[:k]:
            at_once = a.first <= b.last and b.first <= a.last
            assert not at_once or a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_does_not_run_while_a_net_is_planned(collects):
    """It runs afterwards if it did before, also after an error."""
    net, workspace, phases = Net("chain"), filled(x=np.zeros(3, "f4")), []
    for k in range(50): net.exp("x" if k == 0 else f"x{k}", f"x{k + 1}")

    def note(phase, info): phases.append(phase)

    before = gc.isenabled(), gc.get_threshold()
    gc.callbacks.append(note)
    try:
        if collects: gc.enable()
        else: gc.disable()
        gc.set_threshold(1)
        del phases[:]
        net.plan({"x": 3})
        assert gc.isenabled() is collects and len(phases) < (50 if collects else 1)     # (a few before and after it)
        with pytest.raises(ValueError, match="the shape of the input 'x' is missing"): net.plan()
        assert gc.isenabled() is collects
        workspace.run(net)
        assert gc.isenabled() is collects
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before[1])
        if before[0]: gc.enable()
        else: gc.disable()


@pytest.mark.parametrize("shape", [3, (3,), [3], ((3,), "float32"), ([3], np.float32), np.zeros(3, "float32")])
def test_shapes_are_given_in_many_ways(shape):
    net = one()
    assert net.infer({"x": shape}) == {"x": ((3,), "float32"), "y": ((3,), "float32")}
    assert net.plan({"x": shape}).peak_bytes == net.plan({"x": cg.zeros(3)}).peak_bytes > 0


@pytest.mark.parametrize("shapes, error, wording", [
    ({}, ValueError, "Net.plan: the shape of the input 'x' is missing; pass shapes with a shape or"),
    ({"x": 3, "q": 3}, ValueError, "Net.plan: net square has no blob 'q'; its inputs are x"),
    ({"x": "3"}, TypeError, "the shape of 'x' must be a tuple of sizes, or a pair of it and a dtype, got '3'"),
    ({"x": (3, -1)}, TypeError, "must be a tuple of sizes"), ({"x": (True,)}, TypeError, "must be a tuple of sizes"),
    ({"x": None}, TypeError, "must be a tuple of sizes"), ({"x": 2.0}, TypeError, "must be a tuple of sizes"),
    ({"x": ((3,), "float16")}, TypeError, "has the dtype 'float16'; wanted one that tensors have"),
    ({"x": ((3,), "nothing")}, TypeError, "has the dtype 'nothing'"),
    (3, TypeError, "Net.plan: shapes must be a dict from blob to shape, got 3"),
    ([("x", 3)], TypeError, "shapes must be a dict"),
])
def test_wrong_shapes(shapes, error, wording):
    with pytest.raises(error, match=wording): one().plan(shapes)
    with pytest.raises(error): one().infer(shapes)


def test_the_shapes_of_the_net_are_the_default():
    net = one()
    net.shapes["x"] = (3,), "float64"
    assert net.infer()["y"] == ((3,), "float64") and net.infer({"x": 2})["y"] == ((2,), "float32")
    assert net.plan().peak_bytes > 0


def test_inference_equals_what_a_run_makes():
    for model in MODELS:
        net, shapes = model()
        found = net.add_gradient_operators(["loss"])
        inferred = net.infer(shapes)
        workspace = Workspace()
        for name, a in numbers(shapes).items(): workspace.feed(name, a)
        workspace.run(net)
        for name in workspace.blobs:
            y = workspace.fetch(name)
            assert inferred[name] == (y.shape, str(y.dtype))
        assert {*found.values()} <= {*inferred}


def test_errors_name_the_operator_and_its_blobs():
    net = Net("n")
    net.matmul([net.relu("x", "a"), "w"], "y")
    for call in (net.plan, net.infer):
        with pytest.raises(ValueError, match=r"matmul: x is \(2, 3\) but y is \(4, 5\)") as caught:
            call({"x": (2, 3), "w": (4, 5)})
        assert caught.value.__notes__[-1] == ("cygrad: operator 1 of net n failed:\n  0  a = relu(x)\n  1  y = matmul("
                                              "a, w)  <- failed; a: float32 (2, 3), w: float32 (4, 5)")


def test_python_operators_have_no_plan():
    net = one("relu")
    net.create_python_operator(np.tanh, "y", "z")
    with pytest.raises(RuntimeError, match=r"Net.plan: operator 1, z = python\(y, f=tanh\), calls a Python function"):
        net.plan({"x": 3})


def test_blobs_that_share_memory():
    net, x = Net(), "x"
    for k in range(6): x = net.exp(x, f"y{k}")
    apart = net.plan({"x": 1000}).peak_bytes
    net.share_blobs()
    shared = net.plan({"x": 1000}).peak_bytes
    net.share_blobs("y2")
    kept = net.plan({"x": 1000}).peak_bytes
    assert shared < kept < apart
    workspace = Workspace()
    workspace.feed("x", np.zeros(1000, "float32"))
    workspace.run(net)
    assert workspace.blobs == ("x", "y2", "y5") or {*workspace.blobs} == {"x", "y2", "y5"}
    with pytest.raises(ValueError, match=r"after share_blobs\(\) only what that names"):
        workspace.fetch("y1")
    for wrong, error in (("nothing", ValueError), (["y1", "nothing"], ValueError), (3, TypeError), ([3], TypeError)):
        with pytest.raises(error): net.share_blobs(wrong)


def test_what_was_differentiated_is_kept():
    net, shapes = mlp()
    found = net.add_gradient_operators(["loss"])
    net.share_blobs()
    workspace = Workspace()
    for name, a in numbers(shapes).items(): workspace.feed(name, a)
    workspace.run(net)
    assert {*workspace.blobs} == {*shapes, "loss", *(found[name] for name in net.param_to_grad)}


def by_capture_of_layers():
    model, loss = nn.Sequential(nn.Linear(100, 300), nn.Tanh(), nn.Linear(300, 5)), cg.mse_loss
    model.train()
    solver = cg.optim.Sgd(model.parameters(), lr=0.1)

    def step(x):
        solver.zero_grad()
        with cg.record(): y = loss(model(x), cg.zeros((64, 5)))
        y.backward()
        solver.update()
        return y

    x = cg.ones((64, 100))
    net = Net.capture(step, x)
    return net, {net.inputs[0]: x}


def by_gradients():
    net, shapes = cnn()
    net.add_gradient_operators(["loss"])
    return net, {name: cg.tensor(a) for name, a in numbers(shapes).items()}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("model", [by_capture_of_layers, by_gradients])
def test_a_limit_at_the_held_bytes_suffices(model, place):
    """Whatever is live elsewhere: `place` varies what the pages are shared with."""
    elsewhere = [cg.ones(int(n), "uint8") for n in np.random.default_rng(place).integers(1, 30_000, 300)]
    del elsewhere[::2]
    net, feeds = model()
    for x in net.bindings.values(): x.grad = None
    workspace = filled(**feeds)
    gc.collect()
    cg.memory.empty_cache()
    plan, before = net.plan(feeds), held()
    with cg.memory.limit(before + plan.held_bytes):
        for _ in range(3): workspace.run(net)
    assert before < held() <= before + plan.held_bytes
    gradients = sum(x.grad.nbytes for x in net.bindings.values() if x.requires_grad)
    assert plan.peak_bytes + gradients <= plan.held_bytes <= 1.005 * (plan.peak_bytes + gradients) + (64 << 10)
    for x in net.bindings.values(): x.grad = None
    del workspace
    cg.memory.empty_cache()
    workspace = filled(**feeds)
    with pytest.raises(cg.MemoryLimitError), cg.memory.limit(held() + plan.peak_bytes - 4096): workspace.run(net)


# ---- heads of ones ---------------------------------------------------------------------------------------------------

def by_capture(x):
    w = cg.ones(x.shape, "float64").attach_grad()

    def step(x):
        with cg.record(): y = w * x
        y.backward()
    return Net.capture(step, x)


def by_grad(x):
    w = cg.ones(x.shape, "float64").attach_grad()

    def step(x):
        with cg.record(): y = cg.exp(w * x)
        return cg.autograd.grad(y, w)
    return Net.capture(step, x)


def by_hand(x):
    net = Net("hand")
    net.exp("x", "y")
    net.add_gradient_operators(["y"])
    return net


def alone(x):
    """Its gradient operators run one by one, ones_like among them."""
    net = Net("alone")
    net.exp("x", "y")
    for operator in GradientRegistry.get_backward_pass(net.operators, ["y"])[0]: net.add_operator(operator)
    return net


@pytest.mark.parametrize("make", [by_capture, by_grad, by_hand, alone])
def test_a_run_takes_what_the_plan_says(make):
    x, workspace = cg.ones(5000, "float64"), Workspace()
    net = make(x)
    plan = net.plan({"x": x})
    workspace.feed("x", x)
    for w in net.bindings.values(): w.grad.tolist()         # (zeros have no memory before)
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as track: workspace.run(net)
    assert track.peak_bytes - before == cg.memory.stats()["live_bytes"] - before == plan.peak_bytes
    with cg.memory.events() as log: workspace.run(net)
    assert log == []
