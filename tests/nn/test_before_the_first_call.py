"""What programs do with a net before its first call, when its layers do not know their sizes yet."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.graph.waiting import is_waiting
from cygrad.trainers import Updater


def images(n=4):
    return cg.random.Generator(7).normal((n, 1, 8, 8))


def lenet():
    return nn.Sequential(nn.Conv2d(None, 3, 3), nn.BatchNorm2d(None), nn.Tanh(), nn.Flatten(), nn.Linear(None, 5),
                         nn.Tanh(), nn.Linear(None, 2))


def assert_equal(a, b):
    for x, y in zip(a.parameters(), b.parameters(), strict=True): np.testing.assert_array_equal(x.numpy(), y.numpy())


class Classifier(nn.Module):
    """A model that makes its net and its solver in __init__, as books do."""

    def __init__(self, lr):
        self.net = lenet()
        self.net.apply(self.init)
        self.solver = cg.optim.Sgd(self.parameters(), lr=lr)

    @staticmethod
    def init(m):
        if type(m) in (nn.Linear, nn.Conv2d):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.net(x)

    def fit(self, batches):
        for x, labels in batches:
            with cg.record(): loss = cg.cross_entropy(self(x), labels)
            loss.backward()
            self.solver.update()
            self.solver.zero_grad()
        return loss.item()


def test_a_book_s_program():
    cg.random.seed(1)
    live = cg.memory.stats()["live_bytes"]
    model = Classifier(lr=0.5)
    assert cg.memory.stats()["live_bytes"] == live
    assert repr(model).count("# waits for its input size") == 6     # (the model, the net, and four layers)
    names = [name for name, _ in model.named_parameters()]
    assert names == [f"net.{i}.{name}" for i in (0, 1, 4, 6) for name in ("weight", "bias")]
    before = list(model.parameters())
    assert len(before) == len(set(map(id, before))) == 8 and not any(x.grad is not None for x in before)
    state = model.state_dict()
    assert list(state)[:7] == ["net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias", "net.1.running_mean",
                               "net.1.running_var", "net.1.num_batches_tracked"]
    x, labels = images(), cg.asarray(np.array([0, 1, 0, 1]))
    first = model.fit([(x, labels)])
    assert list(model.parameters()) == before and all(map(np.shares_memory, [x.detach().numpy() for x in before], [
        state[name].numpy() for name in names]))
    assert model.net[4].weight.shape == (5, 108) and np.abs(model.net[4].weight.numpy()).max() < 0.3
    assert model.fit([(x, labels)] * 20) < first / 2


def test_the_order_of_draws():
    """A layer draws its own values first, then what apply() asked for, each when the layer has its size."""
    def init(m):
        if type(m) is nn.Linear:
            nn.init.normal_(m.bias, std=0.01)
            nn.init.uniform_(m.weight, 0, 1)

    cg.random.seed(5)
    net = nn.Sequential(nn.Linear(None, 3), nn.Linear(None, 2)).apply(init)
    position = cg.random.Generator(5).state
    assert cg.core.execute.generator.default_generator.state == position
    net(cg.ones((1, 4)))
    cg.random.seed(5)
    for layer, (n_out, n_in) in zip(net, ((3, 4), (2, 3)), strict=True):
        sized = nn.Linear(n_in, n_out).apply(init)
        for x, y in zip(layer.parameters(), sized.parameters(), strict=True):
            np.testing.assert_array_equal(x.numpy(), y.numpy())


@pytest.mark.parametrize("fill", [
    lambda w: nn.init.uniform_(w, -10, 10), lambda w: nn.init.normal_(tensor=w, std=2), nn.init.trunc_normal_,
    lambda w: nn.init.constant_(w, 42), nn.init.zeros_, nn.init.ones_, nn.init.eye_, nn.init.xavier_uniform_,
    nn.init.xavier_normal_, nn.init.kaiming_uniform_, lambda w: nn.init.kaiming_normal_(w, mode="fan_out"),
    nn.init.orthogonal_, lambda w: nn.init.sparse_(w, 0.5), lambda w: w.fill_(3), lambda w: w.detach().fill_(3),
], ids=range(15))
def test_every_initializer_waits(fill):
    cg.random.seed(3)
    layer = nn.Linear(None, 6)
    fill(layer.weight)
    layer(cg.ones((1, 5)))
    cg.random.seed(3)
    sized = nn.Linear(5, 6)
    with cg.pause(): fill(sized.weight)
    np.testing.assert_array_equal(layer.weight.numpy(), sized.weight.numpy())


def test_dirac_waits():
    for layer in (nn.Conv2d(None, 6, 3, groups=3), nn.ConvTranspose2d(None, 2, 3)):
        nn.init.dirac_(layer.weight, groups=3)
        layer(cg.ones((1, 6, 4, 4)))
        assert layer.weight.numpy().sum() == 6


def test_wrong_arguments_raise_in_the_call():
    w, position = nn.Linear(None, 3).weight, cg.random.Generator(0)
    before = position.state
    for wrong, kind in ((lambda: nn.init.normal_(w, std="a"), Exception),
                        (lambda: nn.init.xavier_uniform_(w, gain="a"), TypeError),
                        (lambda: nn.init.kaiming_normal_(w, mode="out"), ValueError),
                        (lambda: nn.init.normal_(w, generator=3), TypeError),
                        (lambda: nn.init.normal_(w, wrong=3), TypeError),
                        (lambda: nn.init.sparse_(w, 2, generator=position), ValueError)):
        with pytest.raises(kind): wrong()
    nn.init.normal_(w, generator=position)
    assert position.state == before


@pytest.mark.parametrize("make", [cg.optim.Sgd, cg.optim.Adam, cg.optim.Momentum, cg.optim.AdamW])
@pytest.mark.parametrize("way", ["parameters", "dict", "groups", "added", "again"])
def test_solvers_move_what_they_got_before(make, way):
    cg.random.seed(2)
    net = lenet()
    solver = make(net.parameters()) if way == "parameters" else make()
    if way == "dict": solver.set_parameters(dict(net.named_parameters()))
    if way == "groups": solver.set_parameters([{"params": net[:4].parameters()}, {"params": net[4:].parameters()}])
    if way == "added":
        solver.set_parameters(net[:4].parameters())
        solver.add_param_group({"params": net[4:].parameters(), "lr": 0.001})
    if way == "again":
        solver.set_parameters(dict(net.named_parameters()))
        solver.set_parameters(dict(net.named_parameters()), reset=False, retain_state=True)
    solver.set_learning_rate(0.001)
    solver.zero_grad()
    solver.weight_decay(0.1)
    with pytest.warns(UserWarning, match="no backward pass has reached a parameter"): solver.update()
    solver.clip_grad_by_global_norm(1.0)
    assert not solver.check_inf_or_nan_grad()
    optimizer = cg.memory.stats()["by_category"]["optimizer"]
    assert optimizer == 0 and all(is_waiting(s) for p, _ in solver.get_states().values() for s in p.values())
    cg.random.seed(2)
    sized = lenet()
    net(images())
    sized(images())
    sized.load_state_dict(net.state_dict())
    other = make()
    other.set_parameters(sized.named_parameters() if way in ("dict", "again") else sized.parameters())
    other.set_learning_rate(0.001)
    for n, s in ((net, solver), (sized, other)):
        for _ in range(3):
            s.zero_grad()
            with cg.record(): loss = cg.mean(n(images())**2)
            loss.backward()
            s.weight_decay(0.1)
            s.clip_grad_by_norm(1.0)
            s.update()
    assert_equal(net, sized)
    assert [t for _, t in solver.get_states().values()] == [3] * 8


def test_states_of_a_solver():
    net, sized = lenet(), lenet()
    sized(images())
    solver, other = cg.optim.Adam(net.parameters()), cg.optim.Adam(sized.parameters())
    with cg.record(): loss = cg.mean(sized(images())**2)
    loss.backward()
    other.update()
    with pytest.raises(RuntimeError, match="a solver's state of Conv2d.weight, .* has no values yet"):
        solver.load_state_dict(other.state_dict())
    net.load_state_dict(sized.state_dict())
    solver.load_state_dict(other.state_dict())
    for a, b in zip(solver.get_states().values(), other.get_states().values(), strict=True):
        assert a.t == b.t == 1 and all(np.array_equal(a.pstate[k].numpy(), b.pstate[k].numpy()) for k in "mv")


def test_saving_is_refused_by_name(tmp_path):
    net = lenet()
    solver = cg.optim.Adam(net.parameters())
    with pytest.raises(RuntimeError, match="Conv2d.weight, of shape .* has no values yet"):
        cg.save(tmp_path / "a.safetensors", net.state_dict())
    with pytest.raises(RuntimeError, match="state of Conv2d.weight, of shape .* has no values yet"):
        solver.save_states(tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_net_and_its_solver(again):
    net = lenet().apply(Classifier.init)
    net[0].freeze()
    solver = cg.optim.Adam(net.named_parameters(), lr=0.125)
    net[4].weight.attach_grad("write")
    twin, copied = again((net, solver))
    assert list(copied.get_parameters().values()) == list(twin.parameters()) and copied.learning_rate() == 0.125
    for n, s in ((net, solver), (twin, copied)):
        cg.random.seed(4)
        assert all(map(is_waiting, n.parameters())) and n[4].weight.grad_req == "write" and is_waiting(n[4].weight.grad)
        with cg.record(): loss = cg.mean(n(images())**2)
        loss.backward()
        s.update()
        assert not n[0].weight.requires_grad
    assert_equal(net, twin)


def test_roles_and_hooks_stay():
    net, seen = lenet(), []
    net.freeze("0", lambda name, x: name.endswith("bias"))
    net[4].weight.attach_grad("write")
    net[6].weight.attach_grad("add")
    net[6].bias.requires_grad_().attach_grad("null")
    net[6].weight.register_hook(lambda g: seen.append(g.shape))
    net[4].weight.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad.shape))
    for p in net[1].parameters(): p.requires_grad = False
    kept = net[4].weight.grad
    for _ in range(2):
        with cg.record(): loss = cg.mean(net(images())**2)
        loss.backward()
    assert [name for name, x in net.named_parameters() if x.requires_grad] == ["4.weight", "6.weight"]
    assert seen == [(2, 5), (5, 108)] * 2 and net[4].weight.grad is kept
    net.unfreeze()
    assert all(x.requires_grad for x in net.parameters()) and net[6].bias.grad_req == "add"


def test_a_shared_layer_and_tied_layers():
    shared = nn.Linear(None, 6)
    net = nn.Sequential(nn.Linear(None, 6), shared, nn.Tanh(), shared)
    net[0].bias = shared.bias
    solver = cg.optim.Sgd(net.parameters(), lr=0.1)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.weight"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"]
    with cg.record(): loss = cg.sum(net(cg.ones((2, 3))))
    loss.backward()
    before = shared.bias.copy()
    solver.update()
    assert net[0].bias is shared.bias and (shared.bias.numpy() != before.numpy()).any()
    assert net[0].weight.shape == (6, 3) and shared.weight.shape == (6, 6)


def test_a_state_of_a_net_that_waits():
    """It has the values when the net has them. Loaded into another one that waits, it changes nothing."""
    net, other = lenet(), lenet()
    state = net.state_dict()
    assert other.load_state_dict(state) == ([], []) and is_waiting(other[0].weight)
    assert other.load_state_dict({"0.weight": state["0.weight"]}, strict=False).missing_keys[0] == "0.bias"
    net(images())
    assert not any(map(is_waiting, state.values()))
    assert other.load_state_dict(state) == ([], [])
    for name, x in other.state_dict().items(): np.testing.assert_array_equal(x.numpy(), state[name].numpy())
    np.testing.assert_array_equal(other(images()).numpy(), net(images()).numpy())


def test_a_tied_state():
    a, b = nn.Linear(None, 4), nn.Linear(None, 4)
    b.weight = a.weight
    net, weight = nn.Sequential(a, b), a.weight
    net.load_state_dict({"0.weight": cg.ones((4, 4)), "0.bias": cg.ones(4), "1.bias": cg.zeros(4)})
    assert a.weight is b.weight is weight and b.in_features == 4 and weight.numpy().sum() == 16


def test_another_dtype():
    net = lenet()
    solver = cg.optim.Sgd(net.parameters())
    old = list(net.parameters())
    net.apply(Classifier.init).freeze("0").astype("float64")
    assert not {*map(id, net.parameters())} & {*map(id, old)} and list(solver.get_parameters().values()) == old
    assert {str(x.dtype) for x in net.parameters()} == {"float64"}
    net(images().astype("float64"))
    assert {str(x.dtype) for x in net.parameters()} == {"float64"} and not net[0].weight.requires_grad
    assert net[4].bias.numpy().sum() == 0 and net[1].num_batches_tracked.dtype == cg.int64


def test_a_captured_step_decides_the_sizes():
    """The parameters are made outside the captured program, which reads them, as if the sizes had been known."""
    net = nn.Sequential(nn.Linear(None, 3), nn.Tanh(), nn.Linear(None, 2)).apply(Classifier.init)
    x = cg.ones((4, 5))
    live = cg.memory.stats()["live_bytes"]
    captured = cg.graph.Net.capture(lambda x: cg.sum(net(x)**2), x)
    assert net[0].weight.shape == (3, 5) and cg.memory.stats()["live_bytes"] > live
    assert not [op for op in captured.operators if "random" in op.type or "uniform" in op.type]
    workspace = cg.graph.Workspace()
    workspace.feed("x", x)
    for _ in range(2):
        workspace.run(captured)
        np.testing.assert_allclose(workspace.fetch("sum").numpy(), cg.sum(net(x)**2).numpy(), rtol=1e-6)


def test_a_plan_decides_the_sizes():
    net, x = lenet(), images()

    def step(x):
        with cg.record(): loss = cg.mean(net(x)**2)
        loss.backward()

    assert cg.memory.plan(step, x).peak_bytes > 0
    assert net[4].weight.shape == (5, 108) and net[4].weight.numpy().any() and net[4].weight.grad is None
    step(x)
    assert net[4].weight.grad is not None


def test_layers_made_in_a_captured_function():
    def f(x):
        return cg.sum(nn.Linear(None, 3)(x))

    assert cg.memory.plan(f, cg.ones((2, 4))).peak_bytes > 0
    assert len(cg.graph.Net.capture(f, cg.ones((2, 4))).operators)


def test_updaters():
    net, x, labels = lenet().apply(Classifier.init), images(), cg.asarray(np.array([0, 1, 0, 1]))
    solver = cg.optim.Adam(net.parameters())
    losses = []

    def loss():
        y = cg.cross_entropy(net(x), labels)
        losses.append(y.item())
        return y

    updater = Updater(solver, loss)
    for i in range(5): updater.update(i)
    assert losses[-1] < losses[0]


def test_summary_and_zero_grad():
    net = lenet()
    net.zero_grad()
    net.zero_grad(set_to_none=False)
    net[4].weight.attach_grad()
    net.zero_grad(set_to_none=False)
    assert is_waiting(net[4].weight.grad)
    net.zero_grad()
    assert net[4].weight.grad is None
    net[1].reset_running_stats()
    net[1].freeze_statistics().freeze_statistics(False)
    assert net.summary(images()).parameters == sum(x.size for x in net.parameters())


def test_what_a_layer_does_without():
    norm = nn.LayerNorm(None)
    norm.weight = None
    norm(cg.ones((2, 3)))
    assert norm.weight is None and norm.bias.shape == (3,)
    lines = nn.Linear(None, 3)
    lines.bias = None
    assert [name for name, _ in lines.named_parameters()] == ["weight"] and list(lines.state_dict()) == ["weight"]


def test_nothing_refers_to_a_dead_layer():
    layer = nn.Linear(None, 3)
    weight = layer.weight
    solver = cg.optim.Adam(layer.parameters())
    del layer
    assert is_waiting(weight) and "Linear.weight" in repr(weight)
    with pytest.warns(UserWarning): solver.update()
