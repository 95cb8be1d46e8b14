"""Net.capture: a net does what the function did, in the same memory, and refuses what a run would not repeat."""

import numpy as np
import pytest
from net_runs import training_step

import cygrad as cg
from cygrad import nn
from cygrad.graph import Net, Workspace

rng = np.random.default_rng(0)
BATCH = rng.normal(size=(8, 5)).astype("f4")
LABELS = rng.integers(0, 3, 8)


def mlp(seed=0):
    cg.random.seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def fed(net, *arrays):
    workspace = Workspace()
    for name, a in zip(net.inputs, arrays, strict=True): workspace.feed(name, a)
    return workspace


def values(model):
    return {name: x.numpy().copy() for name, x in model.state_dict().items()}


def same(a, b):
    assert a.keys() == b.keys()
    for name in a: np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_the_inputs_have_the_names_of_the_parameters_of_the_function():
    net = Net.capture(lambda image, label: image * label, cg.ones(3), cg.ones(3))
    assert net.inputs == ("image", "label") and net.outputs == ("mul",) and not net.bindings


def test_an_input_can_be_an_index():
    def f(x, i):
        y = x * 2
        y[i] = 0
        y[y > 1] = 1
        return x[i] + y.sum(0)

    x = rng.normal(size=(3, 5))
    net = Net.capture(f, x, np.int64(0))
    for i in range(-3, 3):
        workspace = fed(net, x, np.int64(i))
        workspace.run(net)
        np.testing.assert_array_equal(workspace.fetch(net.outputs[0]).numpy(), f(cg.tensor(x), i).numpy())


def test_capturing_changes_nothing():
    model, solver = mlp(), cg.optim.Adam(0.1)
    step = training_step(model, solver)
    step(cg.tensor(BATCH), cg.tensor(LABELS))
    before = values(model), [x.version for x in model.parameters()], [x.grad for x in model.parameters()]
    gradients = [g.numpy().copy() for g in before[2]]
    states, live = solver.get_states(), cg.memory.stats()["live_bytes"]
    net = Net.capture(step, BATCH, LABELS)
    same(values(model), before[0])
    assert [x.version for x in model.parameters()] == before[1]
    assert all(x.grad is g for x, g in zip(model.parameters(), before[2], strict=True))
    for x, g in zip(model.parameters(), gradients, strict=True): np.testing.assert_array_equal(x.grad.numpy(), g)
    assert [s.t for s in solver.get_states().values()] == [s.t for s in states.values()]
    assert cg.memory.stats()["live_bytes"] == live
    del net


def test_after_an_error_nothing_has_changed():
    model, solver = mlp(), cg.optim.Adam(0.1)
    step = training_step(model, solver)

    def fails(x, t):
        step(x, t)
        raise KeyError("here")

    before, live = values(model), cg.memory.stats()["live_bytes"]
    with pytest.raises(KeyError, match="here"): Net.capture(fails, BATCH, LABELS)
    same(values(model), before)
    assert all(x.grad is None and not x.fresh_grad for x in model.parameters())
    assert cg.memory.stats()["live_bytes"] == live


@pytest.mark.parametrize("solver", [cg.optim.Sgd, cg.optim.Momentum, cg.optim.Adam, cg.optim.AdamW, cg.optim.Lion,
                                    cg.optim.Ftrl])
def test_a_training_step(solver):
    ours, theirs = mlp(), mlp()
    net = Net.capture(training_step(ours, solver(0.05)), BATCH, LABELS, names=dict(ours.named_parameters()))
    step, workspace = training_step(theirs, solver(0.05)), fed(net, BATCH, LABELS)
    assert {"0.weight", "0.bias", "2.weight", "2.bias"} == {*net.bindings} and net.training
    for k in range(4):
        array = BATCH * (k + 1)
        workspace.feed("x", array)
        workspace.run(net)
        loss = step(cg.tensor(array), cg.tensor(LABELS))
        assert workspace.fetch(net.outputs[0]).item() == loss.item()
        same(values(ours), values(theirs))
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())
            assert a.fresh_grad == b.fresh_grad


def test_eager_steps_and_runs_of_the_net_can_alternate():
    ours, theirs = mlp(), mlp()
    solver, other = cg.optim.Adam(0.05), cg.optim.Adam(0.05)
    step, expected = training_step(ours, solver), training_step(theirs, other)
    net = Net.capture(step, BATCH, LABELS)
    workspace = fed(net, BATCH, LABELS)
    for k in range(6):
        if k == 3:
            solver.set_learning_rate(0.5)
            other.set_learning_rate(0.5)
        if k % 2: step(cg.tensor(BATCH), cg.tensor(LABELS))
        else: workspace.run(net)
        expected(cg.tensor(BATCH), cg.tensor(LABELS))
        same(values(ours), values(theirs))
    assert [s.t for s in solver.get_states().values()] == [6] * 4


def test_a_run_raises_the_versions_of_what_it_writes():
    model = mlp()
    net = Net.capture(training_step(model, cg.optim.Sgd(0.1)), BATCH, LABELS)
    workspace, before = fed(net, BATCH, LABELS), [x.version for x in model.parameters()]
    workspace.run(net)
    assert all(x.version > v for x, v in zip(model.parameters(), before, strict=True))


def test_random_operators_advance_their_generator():
    g = cg.random.Generator(3)

    def f(x):
        with cg.train_mode(): return cg.dropout(x, 0.5, g) + g.normal((100,)) + cg.random.uniform((100,))

    cg.random.seed(5)
    state = g.state
    net = Net.capture(f, cg.ones(100))
    assert g.state == state
    workspace = fed(net, np.ones(100, "f4"))
    found = []
    for _ in range(2):
        workspace.run(net)
        found.append(workspace.fetch(net.outputs[0]).numpy())
    g.state = state
    cg.random.seed(5)
    for y in found: np.testing.assert_array_equal(y, f(cg.ones(100)).numpy())
    assert not np.array_equal(*found)


def test_batch_norm_moves_its_statistics():
    def model():
        cg.random.seed(1)
        return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))

    ours, theirs = model(), model()
    for m in (ours, theirs): m.train()
    net = Net.capture(training_step(ours, cg.optim.Sgd(0.1)), BATCH, LABELS)
    step = training_step(theirs, cg.optim.Sgd(0.1))
    workspace = fed(net, BATCH, LABELS)
    for _ in range(3):
        workspace.run(net)
        step(cg.tensor(BATCH), cg.tensor(LABELS))
        same(values(ours), values(theirs))


def test_writes_in_place_reach_views_and_tensors_from_outside():
    total = cg.zeros(3)

    def f(x):
        y = x * 2
        first = y[0]
        y *= x
        first += 1
        total.copy_(total + y)
        return y, first

    net = Net.capture(f, cg.ones(3))
    workspace = fed(net, np.array([1, 2, 3], "f4"))
    for _ in range(2): workspace.run(net)
    assert workspace.fetch(net.outputs[0]).tolist() == [3, 8, 18]
    assert workspace.fetch(net.outputs[1]).item() == 3 and total.tolist() == [6, 16, 36]


def test_a_detached_tensor_has_no_gradient():
    w = cg.tensor([2.0, 3.0]).attach_grad()

    def f(x):
        with cg.record():
            y = w * x
            with cg.pause(): z = y * 10
            loss = (y * y.detach() + z * w).sum()
        loss.backward()

    net = Net.capture(f, cg.ones(2))
    workspace = fed(net, np.array([1, 2], "f4"))
    workspace.run(net)
    found = w.grad.numpy().copy()
    f(cg.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(found, w.grad.numpy())


def test_gradients_of_gradients():
    def f(x):
        x = x * 1.0
        with cg.record():
            y = x.detach() * w
            g = cg.autograd.grad((y ** 3).sum(), w, create_graph=True)
            loss = (g * g).sum()
        return cg.autograd.grad(loss, w)

    w = cg.tensor([2.0, 3.0]).attach_grad()
    net = Net.capture(f, cg.ones(2))
    workspace = fed(net, np.array([1, 2], "f4"))
    workspace.run(net)
    np.testing.assert_array_equal(workspace.fetch(net.outputs[0]).numpy(), f(cg.tensor([1.0, 2.0])).numpy())


@pytest.mark.parametrize(("f", "named"), [
    (lambda x: x * x.sum().item(), "reading the values of a tensor"),
    (lambda x: x if x.sum() > 0 else -x, "reading the values of a tensor"),
    (lambda x: cg.tensor(x.numpy()), r"numpy\(\)"),
    (lambda x: x[x > 0], "a result whose shape depends on values, that of select,"),
    (lambda x: cg.argwhere(x), "a result whose shape depends on values, that of argwhere,"),
    (lambda x: (x * 1).attach_grad(), r"attach_grad\(\)"),
    (lambda x: cg.random.permutation(5) + x.sum(), "drawing these random numbers"),
])
def test_what_a_run_would_not_repeat_is_refused_by_name(f, named):
    with pytest.raises(RuntimeError, match=f"^capture: {named}.* cannot be captured"): Net.capture(f, cg.ones(3))


def test_memory_that_the_function_makes_is_new_at_each_run(tmp_path):
    def f(x):
        made = cg.ones(3)
        row = made[:1]
        made += x
        row *= 3
        return made * cg.tensor([0.5, 1, 2])

    net = Net.capture(f, cg.ones(3))
    assert not net.bindings and sum(isinstance(x, cg.Tensor) for x in net.constants.values()) == 2
    assert [o.type for o in net.operators].count("copy") == 1
    net.save(tmp_path / "net.safetensors")
    for known in (net, Net.load(tmp_path / "net.safetensors")):
        workspace = fed(known, np.array([1, 2, 3], "f4"))
        for _ in range(2):
            workspace.run(known)
            assert workspace.fetch(known.outputs[0]).tolist() == [3, 3, 8]


def test_removing_a_gradient():
    w, other = (cg.tensor([1.0, 2.0]).attach_grad("add") for _ in range(2))

    def f(x):
        w.grad = other.grad = None
        with cg.record(): loss = (w * x).sum()
        loss.backward()

    net = Net.capture(f, cg.ones(2))
    workspace = fed(net, np.array([3, 4], "f4"))
    for _ in range(2):
        workspace.run(net)
        assert w.grad.tolist() == [3, 4] and other.grad is None


def test_a_saved_net_draws_from_the_default_generator(tmp_path):
    def f(x):
        with cg.train_mode(): return cg.dropout(x, 0.5) + cg.random.uniform((100,))

    Net.capture(f, cg.ones(100)).save(tmp_path / "net.safetensors")
    net = Net.load(tmp_path / "net.safetensors")
    workspace = fed(net, np.ones(100, "f4"))
    cg.random.seed(7)
    workspace.run(net)
    cg.random.seed(7)
    np.testing.assert_array_equal(workspace.fetch(net.outputs[0]).numpy(), f(cg.ones(100)).numpy())


def test_a_run_that_fails_before_its_backward_leaves_zeros_as_eager_code_does():
    w = cg.tensor([1.0, 2.0]).attach_grad()

    def f(x):
        w.zero_grad()
        with cg.record(): loss = (cg.linalg.cholesky(x) * w).sum()
        loss.backward()

    net = Net.capture(f, cg.ones((2, 2)))
    workspace = fed(net, np.eye(2, dtype="f4"))
    workspace.run(net)
    assert w.grad.tolist() == [1, 1] and w.fresh_grad
    workspace.feed("x", -np.eye(2, dtype="f4"))
    with pytest.raises(np.linalg.LinAlgError): workspace.run(net)
    assert w.grad.tolist() == [0, 0] and not w.fresh_grad


def in_collector(x):
    with cg.autograd.GradientCollector() as collector:
        collector.backward((x * OUTSIDE[0]).sum())


def in_record(f):
    def call(x):
        with cg.record(): f(x * OUTSIDE[0])
    return call


OUTSIDE = []                # a variable


@pytest.mark.parametrize(("f", "named"), [
    (lambda x: setattr(OUTSIDE[0], "grad", x * 2), r"an assignment to \.grad"),
    (lambda x: setattr(OUTSIDE[0], "fresh_grad", True), "an assignment to fresh_grad"),
    (lambda x: OUTSIDE[0].drop_grad(), r"attach_grad\(\), requires_grad_\(\) or drop_grad\(\) of a tensor"),
    (lambda x: OUTSIDE[0].requires_grad_(False), r"attach_grad\(\), requires_grad_\(\) or drop_grad\(\)"),
    (lambda x: OUTSIDE[0].register_hook(print), r"register_hook\(\)"),
    (lambda x: OUTSIDE[0].register_post_accumulate_grad_hook(print), r"register_post_accumulate_grad_hook\(\)"),
    (in_record(lambda y: y.grad_fn.register_hook(print)), r"register_hook\(\)"),
    (in_record(lambda y: y.grad_fn.register_prehook(print)), r"register_prehook\(\)"),
    (in_collector, "a backward pass in a GradientCollector"),
])
def test_changes_of_variables_from_outside_are_refused_by_name(f, named):
    w = cg.tensor([1.0, 2.0, 3.0]).attach_grad()
    OUTSIDE.append(w)
    try:
        with pytest.raises(RuntimeError, match=f"^capture: {named}.* cannot be captured"):
            Net.capture(f, cg.ones(3))
    finally: OUTSIDE.clear()
    assert w.requires_grad and w.grad.tolist() == [0, 0, 0] and not w.fresh_grad


def test_an_error_of_eager_code_is_that_of_the_capture():
    w = cg.tensor([1.0, 2.0]).attach_grad()

    def f(x):
        with cg.record():
            y = cg.exp(x * w)
            z = y * y
        y.detach().fill_(0)
        z.backward()

    for call in (lambda: f(cg.ones(2)), lambda: Net.capture(f, cg.ones(2))):
        with pytest.raises(cg.InplaceError, match="^mul saved a tensor"): call()
