"""Module: attributes, traversal, hooks, modes, copies, casts and freezing."""

import copy
import pickle
from contextlib import nullcontext

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn


class Affine(nn.Module):
    """A layer with a parameter of each kind, a buffer, and one that is not saved."""

    def __init__(self, n_in, n_out, start=1.0):
        self.weight = nn.Parameter(cg.full((n_out, n_in), start))
        self.bias = nn.Parameter(cg.zeros(n_out))
        self.register_buffer("calls", cg.zeros((), dtype="int64"))
        self.register_buffer("scratch", cg.zeros(n_out), persistent=False)

    def forward(self, x):
        return cg.linear(x, self.weight, self.bias)


class Growing(nn.Module):
    """A layer whose number of columns is that of its first input."""

    def __init__(self):
        self.n, self._how = None, {"dtype": cg.get_default_dtype()}
        self.register_parameter("weight", None)
        self._wait(1, 2)

    def _size_of(self, x):
        return x.shape[-1]

    def _size_in(self, state):
        return state["weight"].shape[-1] if "weight" in state else None

    def _plan(self, size):
        return {"weight": ((2, size), lambda shape: nn.Parameter(cg.ones(shape, dtype=self._how["dtype"])))}

    def _set_size(self, size):
        self.n = size

    def forward(self, x):
        return cg.linear(x, self.weight)


class Net(nn.Module):
    def __init__(self):
        self.first = Affine(2, 3)
        self.rest = nn.Sequential(Affine(3, 3), nn.Sequential(act=Affine(3, 3)))
        self.scale = nn.Parameter(cg.ones(3))
        self.history = []

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


def tied():
    """Two layers with one weight."""
    net = nn.Sequential(Affine(3, 3), Affine(3, 3, 2.0))
    net[1].weight = net[0].weight
    return net


NAMES = ["scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.1.act.weight", "rest.1.act.bias"]


def test_names():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert [id(x) for x in net.parameters()] == [id(net.get_parameter(name)) for name in NAMES]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1", "rest.1.act"]
    assert list(net.modules()) == [net.get_submodule(name) for name, _ in net.named_modules()]
    assert [name for name, _ in net.named_children()] == ["first", "rest"] and list(net.children())[1] is net.rest
    assert [name for name, _ in net.named_buffers()][:2] == ["first.calls", "first.scratch"]
    assert len(list(net.buffers())) == 6 and net.get_buffer("rest.0.calls") is net.rest[0].calls


def test_parameters_are_variables_in_attributes():
    before = cg.memory.stats()["by_category"]["gradients"]
    net = Affine(2, 3)
    assert vars(net)["weight"] is net.weight and net.weight.grad_req == "add" and net.weight.grad is None
    with cg.record():
        y = net(cg.ones(4, 2)).sum()
    y.backward()
    assert (net.weight.grad.numpy() == 4).all() and (net.bias.grad.numpy() == 4).all()
    net.zero_grad()
    assert net.weight.grad is None and not net.weight.fresh_grad
    with cg.record():
        y = net(cg.ones(4, 2)).sum()
    y.backward()
    net.zero_grad(set_to_none=False)
    assert (net.weight.grad.numpy() == 0).all()
    assert cg.memory.stats()["by_category"]["gradients"] == before + 24     # the bias has no memory until it is read


def test_assignment_moves_a_name():
    net = Affine(2, 3)
    net.bias = None
    assert [name for name, _ in net.named_parameters()] == ["weight"]
    net.bias = cg.ones(3).attach_grad()
    assert [name for name, _ in net.named_parameters()] == ["weight", "bias"]
    net.calls = cg.ones((), dtype="int64")
    assert dict(net.named_buffers())["calls"] is net.calls
    net.calls = nn.Parameter(cg.ones(()))
    assert "calls" in dict(net.named_parameters()) and "calls" not in dict(net.named_buffers())
    del net.calls, net.bias
    assert [name for name, _ in net.named_parameters()] == ["weight"] and not hasattr(net, "bias")
    with cg.record():
        net.last = net.weight * 2                   # a result, and a plain tensor
    net.input = cg.ones(2)
    assert [name for name, _ in net.named_parameters()] == ["weight"]
    net.child = net.other = Affine(1, 1)
    assert [name for name, _ in net.named_children()] == ["child"]
    net.child = None
    assert [name for name, _ in net.named_children()] == ["other"]


def test_parameter():
    x = cg.ones(3)
    assert nn.Parameter(x) is x and x.requires_grad and nn.Parameter(x) is x
    frozen = nn.Parameter(cg.ones(2), requires_grad=False)
    net = nn.Module()
    net.x, net.frozen, net.y = x, frozen, nn.Parameter([1.0, 2.0])
    assert [name for name, _ in net.named_parameters()] == ["x", "frozen", "y"] and not net.frozen.requires_grad
    with cg.record():
        y = x * 2
    assert nn.Parameter(y) is not y and nn.Parameter(y).is_leaf
    a = np.ones(2)
    nn.Parameter(a).detach().fill_(3)
    assert a[0] == 1


def test_tied_parameters_are_listed_counted_and_updated_once():
    net = tied()
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert [name for name, _ in net.named_parameters(remove_duplicate=False)][2] == "1.weight"
    assert "# 15 parameters, 60 bytes" in repr(net).split("\n")[0]
    solver = cg.optim.Sgd(0.5)
    solver.set_parameters(dict(net.named_parameters()))
    with cg.record():
        y = net(cg.ones(1, 3)).sum()
    y.backward()
    grad = net[0].weight.grad.numpy().copy()
    solver.update()
    np.testing.assert_allclose(net[1].weight.numpy(), 1 - 0.5 * grad)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies(copied):
    net = nn.Sequential(tied(), Net())
    net.freeze("1.first")
    net.train()
    calls = []
    net.register_forward_hook(lambda *args: calls.append(args))
    net.note = {"a": 1}
    twin = copied(net)
    assert twin[0][0].weight is twin[0][1].weight is not net[0][0].weight
    assert {name: x.requires_grad for name, x in twin.named_parameters()} == {
        name: x.requires_grad for name, x in net.named_parameters()}
    assert list(twin.state_dict()) == list(net.state_dict()) and twin.note == {"a": 1} and twin.training
    assert "1.first.scratch" not in net.state_dict() and twin[1].first.scratch.shape == (3,)
    with cg.train_mode():
        twin[0](cg.ones(1, 3))
    assert not calls
    twin.unfreeze()
    with cg.record():
        y = twin[1](cg.ones(1, 2)).sum()
    y.backward()
    assert twin[1].first.weight.grad is not None and net[1].first.weight.grad is None


def test_a_model_and_its_solver_in_one_pickle():
    net = tied()
    solver = cg.optim.Adam(0.1)
    solver.set_parameters(dict(net.named_parameters()))
    net, solver = pickle.loads(pickle.dumps((net, solver)))
    assert [id(x) for x in solver.get_parameters().values()] == [id(x) for x in net.parameters()]
    before = net[1].weight.numpy().copy()
    with cg.record():
        y = net(cg.ones(1, 3)).sum()
    y.backward()
    solver.update()
    assert (net[1].weight.numpy() != before).all()


def test_shallow_copy_shares_tensors_and_not_names():
    net = Affine(2, 3)
    twin = copy.copy(net)
    twin.extra = nn.Parameter(cg.ones(1))
    assert twin.weight is net.weight and [name for name, _ in net.named_parameters()] == ["weight", "bias"]


def test_modules_need_no_garbage_collector():
    before = cg.memory.stats()["live_buffers"]
    net = Net()
    assert cg.memory.stats()["live_buffers"] > before
    held = cg.ones(5)
    handle = net.first.register_forward_hook(lambda m, args, y, x=held: y)
    with cg.record():
        y = net(cg.ones(1, 2)).sum()
    y.backward()
    del net, handle, held, y
    assert cg.memory.stats()["live_buffers"] == before


def test_hooks():
    net, seen = Affine(2, 3), []
    first = net.register_forward_pre_hook(lambda m, args: seen.append("a") or (args[0] * 2,))
    net.register_forward_pre_hook(lambda m, args: seen.append("b") or args[0] + 1, prepend=True)
    net.register_forward_pre_hook(lambda m, args, kwargs: seen.append("c") or (args, kwargs), with_kwargs=True)
    assert net(cg.ones(1, 2)).numpy()[0, 0] == 8 and seen == ["b", "a", "c"]
    with net.register_forward_hook(lambda m, args, y: y + 1):
        assert net(cg.ones(1, 2)).numpy()[0, 0] == 9
    last = net.register_forward_hook(lambda m, args, kwargs, y: seen.append(kwargs), with_kwargs=True)
    first.remove()
    first.remove()
    assert net(cg.ones(1, 2)).numpy()[0, 0] == 4 and seen[-1] == {}
    last.remove()


def test_a_call_passes_any_arguments():
    class Echo(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    echo = Echo()
    for n in (0, 1, 6, 7, 20):
        assert echo(*range(n)) == (tuple(range(n)), {}) and echo(*range(n), a=1) == (tuple(range(n)), {"a": 1})
    with pytest.raises(TypeError, match="forward"):
        Affine(1, 1)()
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


def test_modes():
    class Noisy(nn.Module):
        def forward(self, x):
            return self._training()

    net = nn.Sequential(Affine(2, 2), Noisy())
    for training in (True, False):                  # follows the thread
        cg.set_training(training)
        assert net(cg.ones(1, 2)) is training and net.training is training
    assert net.train() is net and net.training
    with pytest.raises(RuntimeError, match=r"Noisy: train\(\) was called .* the thread is in predict mode; call it ins"
                                           r"ide `with cygrad\.train_mode\(\):`"):
        net(cg.ones(1, 2))
    with cg.train_mode():
        assert net(cg.ones(1, 2)) is True
        net.eval()
        assert net[0](cg.ones(1, 2)).shape == (1, 2)        # does not depend on the mode
        with pytest.raises(RuntimeError, match=r"Noisy: eval\(\) .*train mode.*`with cygrad\.predict_mode\(\):`"):
            net(cg.ones(1, 2))
        net.train(None)
        assert net(cg.ones(1, 2)) is True
    net[0].eval()
    assert net(cg.ones(1, 2)) is False


def test_apply_runs_children_first():
    net, seen = Net(), []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Affine", "Affine", "Affine", "Sequential", "Sequential", "Net"]


@pytest.mark.parametrize("which, names", [
    ((), NAMES), (("first",), NAMES[1:3]), (("rest.1", "scale"), ["scale", *NAMES[5:]]), (("rest.0.bias",), NAMES[4:5]),
    ((lambda name, x: name.endswith("bias") and x.ndim == 1,), [n for n in NAMES if n.endswith("bias")]),
])
def test_freeze(which, names):
    net = Net()
    net.scale.attach_grad("write")
    solver = cg.optim.Adam(0.1)
    solver.set_parameters(dict(net.named_parameters()))
    before = {name: x.numpy().copy() for name, x in net.named_parameters()}
    assert net.freeze(*which) is net

    def step():
        with cg.record():
            y = (net(cg.ones(1, 2)) * (1 + nn.Parameter(cg.ones(3)))).sum()
        y.backward()
        with nullcontext() if any(x.requires_grad for x in net.parameters()) else pytest.warns(UserWarning):
            solver.update()

    step()
    for name, x in net.named_parameters():
        assert (name in names) == (not x.requires_grad) == (x.grad is None) == (x.numpy() == before[name]).all()
    assert list(net.state_dict())[:1] == ["scale"] and len(list(net.parameters())) == len(NAMES)
    net.unfreeze(*which)
    step()
    assert all(x.requires_grad and (x.numpy() != before[name]).all() for name, x in net.named_parameters())
    assert net.scale.grad_req == "write" and net.first.weight.grad_req == "add"


def test_freeze_by_a_tied_name():
    net = tied()
    net[1].weight.attach_grad("write")
    net.freeze("1.weight")
    assert not net[0].weight.requires_grad
    net.unfreeze("0.weight")
    assert net[0].weight.requires_grad and net[0].weight.grad_req == "write"
    assert net.requires_grad_(False) is net and not any(x.requires_grad for x in net.parameters())


def test_astype():
    net = nn.Sequential(tied(), Affine(3, 3))
    net[1].weight.attach_grad("write")
    net.freeze("1.bias")
    calls = net[1].calls
    assert net.astype("float64") is net
    assert {x.dtype for x in net.parameters()} == {cg.float64} and net[1].calls is calls
    assert net[0][0].weight is net[0][1].weight and net[1].scratch.dtype == cg.float64
    assert net[1].weight.grad_req == "write" and net[0][0].bias.grad_req == "add" and not net[1].bias.requires_grad
    weight = net[1].weight
    assert net.astype(cg.float64)[1].weight is weight


ROLES = [("write", "default", True), ("write", "default", False), ("add", "default", True), ("add", "default", False),
         ("write", "row_sparse", True), ("add", "row_sparse", True)]


def in_role(req, stype, with_grad):
    """A module with one parameter, `weight`, of this grad_req and stype, with a .grad or None."""
    net = nn.Module()
    net.weight = cg.ones(3, 2).attach_grad(req, stype)
    if not with_grad: net.weight.grad = None
    return net


def role(x):
    return x.grad_req, type(x.grad), x.requires_grad


@pytest.mark.parametrize("req, stype, with_grad", ROLES)
def test_astype_keeps_the_role_of_a_variable(req, stype, with_grad):
    net = in_role(req, stype, with_grad)
    net.register_buffer("b", cg.ones(2).attach_grad())
    before, seen = role(net.weight), []
    handle = net.weight.register_hook(lambda g: seen.append(g))
    net.weight.register_post_accumulate_grad_hook(seen.append)
    net.astype("float64")
    assert role(net.weight) == before and net.b.requires_grad and net.b.dtype == cg.float64
    with cg.record():
        y = cg.embedding(cg.tensor([1, 1]), net.weight, sparse=stype == "row_sparse").sum()
    y.backward()
    assert type(net.weight.grad) is (cg.GradientSlice if stype == "row_sparse" else cg.Tensor)
    assert len(seen) == 2 and seen[1] is net.weight
    net.astype("float32")
    assert role(net.weight)[:1] == before[:1] and not net.weight.fresh_grad
    handle.remove()
    with cg.record():
        y = net.weight.sum()
    y.backward()
    assert len(seen) == 3 and seen[2] is net.weight
    seen.clear()                                    # (which refers to the variable that refers to it)


@pytest.mark.parametrize("change", [lambda m: m.astype("float64"), copy.deepcopy,
                                    lambda m: pickle.loads(pickle.dumps(m)), lambda m: m])
@pytest.mark.parametrize("req, stype, with_grad", ROLES)
def test_unfreeze_restores_the_role(req, stype, with_grad, change):
    net = in_role(req, stype, with_grad)
    net.freeze()
    net = change(net)
    assert role(net.weight) == ("null", type(None), False)
    net.unfreeze()
    plain = (req, stype) == ("add", "default")
    assert role(net.weight) == (req, type(None) if plain else type(in_role(req, stype, True).weight.grad), True)


@pytest.mark.parametrize("n", range(1, 4))
def test_astype_changes_nothing_if_an_allocation_fails(n):
    net = Affine(2, 3)
    before = dict(vars(net))
    with cg.testing.fail_allocation(n) as f, pytest.raises(MemoryError):
        net.astype("float64")
    assert f.failed and vars(net) == before and net.weight.requires_grad


def test_unknown_sizes():
    net = nn.Sequential(Growing(), Affine(2, 2))
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "1.weight", "1.bias"]
    assert "# waits for its input size" in repr(net)
    net.zero_grad()
    twin = copy.deepcopy(net)
    with cg.testing.fail_allocation(1, persistent=True), pytest.raises(MemoryError):
        net(np.ones((1, 5), "float32"))
    assert net(cg.ones(1, 5)).shape == (1, 2) and net[0].n == 5
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "1.weight", "1.bias"]
    net[0].weight.detach().fill_(7)
    twin.load_state_dict(net.state_dict())
    assert (twin[0].weight.numpy() == 7).all() and twin[0].n == 5 and not twin[0]._pending


def test_repr():
    net = nn.Sequential(tied(), nn.ModuleList([Affine(1, 2)]))
    assert repr(net) == """\
Sequential(  # 19 parameters, 76 bytes
  (0): Sequential(  # 15 parameters, 60 bytes
    (0): Affine()  # 12 parameters, 48 bytes
    (1): Affine()  # 12 parameters, 48 bytes
  )
  (1): ModuleList(  # 4 parameters, 16 bytes
    (0): Affine()  # 4 parameters, 16 bytes
  )
)"""


def test_repr_of_arguments_and_children():
    assert repr(nn.TransformerBlock(32, 4, 64, causal=True)).split("\n")[:5] == [
        "TransformerBlock(  # 8,544 parameters, 34,176 bytes",
        "  causal=True",
        "  (self_attn): MultiheadAttention(  # 4,224 parameters, 16,896 bytes",
        "    32, 4, dropout=0.1",
        "    (out_proj): Linear(32, 32)  # 1,056 parameters, 4,224 bytes"]
    assert repr(nn.LinearCrossEntropyLoss(3, 4)).split("\n")[1] == (
        "  ignore_index=-100, reduction='mean', label_smoothing=0.0")


def test_names_of_other_libraries_are_answered_and_free_to_use():
    class Own(nn.Module):
        def __init__(self):
            self.type = "own"

        def half(self):
            return 2

    assert Own().type == "own" and Own().half() == 2 and not hasattr(Own(), "cuda") and "cuda" not in dir(Own())


def test_a_solver_takes_frozen_parameters_and_does_not_move_them():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).freeze("0")
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters(dict(model.named_parameters()))
    before = {name: x.numpy().copy() for name, x in model.state_dict().items()}
    for frozen in ("0", None):
        if frozen is None: model.unfreeze()
        solver.zero_grad()
        with cg.record(): loss = model(cg.ones((4, 2))).sum()
        loss.backward()
        solver.update()
        moved = {name for name, x in model.state_dict().items() if not np.array_equal(x.numpy(), before[name])}
        assert moved == ({"1.weight", "1.bias"} if frozen else set(before))
