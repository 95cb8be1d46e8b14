"""state_dict and load_state_dict, also from and to PyTorch, and containers."""

import numpy as np
import pytest
from peers import torch

import cygrad as cg
from cygrad import nn


class Affine(nn.Module):
    def __init__(self, n_in, n_out, start=1.0):
        self.weight = nn.Parameter(cg.full((n_out, n_in), start))
        self.bias = nn.Parameter(cg.zeros(n_out))

    def forward(self, x):
        return cg.linear(x, self.weight, self.bias)


def net():
    return nn.Sequential(Affine(2, 3), Affine(3, 3), Affine(3, 1))


def tied():
    m = net()
    m[1].bias = m[0].bias
    return m


def numbers(module, seed=0):
    """Random values for the state of a module."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=x.shape).astype(x.dtype) for name, x in module.state_dict().items()}


def test_state_dict_shares_memory():
    m = tied()
    state = m.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"]
    assert state["0.bias"] is state["1.bias"] and not any(x.requires_grad for x in state.values())
    m[0].weight.detach().fill_(5)
    assert (state["0.weight"].numpy() == 5).all()
    assert list(m.state_dict("net")) == ["net." + name for name in state]


@pytest.mark.parametrize("convert", [cg.tensor, np.asarray, torch.from_numpy,
                                     lambda a: torch.nn.Parameter(torch.from_numpy(a)),
                                     lambda a: np.asfortranarray(a)])
def test_load(convert):
    m = net()
    values = numbers(m)
    tensors = list(m.parameters())
    assert m.load_state_dict({name: convert(a) for name, a in values.items()}) == ([], [])
    assert all(x is y for x, y in zip(m.parameters(), tensors, strict=True))
    for name, x in m.state_dict().items(): np.testing.assert_array_equal(x.numpy(), values[name])


def test_exchange_with_pytorch():
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    m = net()
    m.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(1).normal(size=(5, 2)).astype("float32")
    np.testing.assert_allclose(m(x).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(), 1e-5, 1e-6)
    m.load_state_dict(numbers(m))
    theirs.load_state_dict({name: torch.from_dlpack(x) for name, x in m.state_dict().items()})
    np.testing.assert_allclose(m(x).detach().numpy(), theirs(torch.from_numpy(x)).detach().numpy(), 1e-5, 1e-6)


def test_not_strict():
    m, before = net(), numbers(net(), 1)
    m.load_state_dict(before)
    values = {"0.weight": np.zeros((3, 2), "float32"), "other": np.zeros(1)}
    missing, unexpected = m.load_state_dict(values, strict=False)
    assert unexpected == ["other"] and missing == list(before)[1:]
    assert (m[0].weight.numpy() == 0).all() and (m[1].weight.numpy() == before["1.weight"]).all()


@pytest.mark.parametrize("change", [{"0.weight": None}, {"x": 0}, {"2.bias": np.zeros(2, "float32")},
                                    {"2.bias": np.zeros(1)}, {"2.bias": 1.0}])
def test_a_state_that_does_not_fit_changes_nothing(change):
    m, before = net(), numbers(net(), 1)
    m.load_state_dict(before)
    values = {**numbers(m, 2), **change}
    if change == {"0.weight": None}: del values["0.weight"]
    versions = [x.version for x in m.parameters()]
    with pytest.raises((ValueError, TypeError), match="load_state_dict of Sequential"):
        m.load_state_dict(values)
    for name, x in m.state_dict().items(): np.testing.assert_array_equal(x.numpy(), before[name])
    assert [x.version for x in m.parameters()] == versions


def test_one_name_of_a_tied_parameter_suffices():
    m = tied()
    values = numbers(m)
    for name in "0.bias", "1.bias":
        one = {n: a for n, a in values.items() if n == name or "bias" not in n or n == "2.bias"}
        assert m.load_state_dict(one) == ([], [])
        np.testing.assert_array_equal(m[0].bias.numpy(), values[name])
    values["1.bias"] = values["0.bias"]
    m.load_state_dict(values)


def test_a_state_of_the_same_module_in_another_order():
    m = nn.Sequential(Affine(2, 2, 1.0), Affine(2, 2, 2.0))
    state = m.state_dict()
    m.load_state_dict({name: state[name.replace("0", "-").replace("1", "0").replace("-", "1")] for name in state})
    assert (m[0].weight.numpy() == 2).all() and (m[1].weight.numpy() == 1).all()


def test_loading_is_not_recorded_and_backward_sees_it():
    m = net()
    with cg.record():
        y = m(cg.ones(1, 2)).sum()
        m.load_state_dict(numbers(m))
    assert all(x.is_leaf for x in m.parameters())
    with pytest.raises(RuntimeError, match="it has been written in place since"):
        y.backward()


def test_read_only_memory_is_found_before_anything_is_written():
    m = net()
    a = np.ones((1, 3), "float32")
    a.flags.writeable = False
    m[2].register_parameter("weight", cg.asarray(a))
    with pytest.raises(ValueError, match="read-only memory in the module: '2.weight'"):
        m.load_state_dict(numbers(m))
    assert (m[0].weight.numpy() == 1).all()


# ---- containers ------------------------------------------------------------------------------------------------------

def test_sequential():
    m = net()
    assert len(m) == 3 and m[0] is list(m)[0] and m[-1] is m[2] and [m[i] for i in range(3)] == list(m)
    part = m[:2]
    assert type(part) is nn.Sequential and list(part) == list(m)[:2] and part[0].weight is m[0].weight
    x = cg.ones(4, 2)
    np.testing.assert_array_equal(m(x).numpy(), m[2](part(x)).numpy())
    assert m.append(Affine(1, 5)) is m and m(x).shape == (4, 5)
    assert m.extend([Affine(5, 2)]) is m and len(m) == 5 and list(m.named_children())[-1] == ("4", m[4])
    named = nn.Sequential(hidden=Affine(2, 3), last=Affine(3, 1))
    assert list(named.state_dict()) == ["hidden.weight", "hidden.bias", "last.weight", "last.bias"]
    assert named.last is named[1] and list(nn.Sequential({"a": m[0], "b": m[1]}).named_children())[1] == ("b", m[1])
    assert nn.Sequential()(x) is x
    m[0] = Affine(2, 3, 7.0)
    assert m[0].weight.numpy()[0, 0] == 7 and [name for name, _ in m.named_children()] == list("01234")


def test_lists_rename_by_position():
    layers = [Affine(1, 1, float(i)) for i in range(4)]
    m = nn.ModuleList(layers)
    del m[1]
    assert list(m) == [layers[0], layers[2], layers[3]] and [name for name, _ in m.named_children()] == list("012")
    m.insert(1, layers[1])
    assert list(m) == layers and [name for name, _ in m.named_children()] == list("0123")
    assert type(m[1:3]) is nn.ModuleList and list(m[1:3]) == layers[1:3] and list(m[1:3].state_dict())[0] == "0.weight"
    del m[::2]
    assert list(m) == layers[1::2]
    with pytest.raises(NotImplementedError):
        m(1)


def test_module_dict():
    a, b = Affine(1, 1), Affine(1, 2)
    m = nn.ModuleDict({"a": a})
    m["b"] = b
    assert list(m) == list(m.keys()) == ["a", "b"] and "a" in m and len(m) == 2 and m["b"] is b and m.a is a
    assert list(m.items()) == [("a", a), ("b", b)] and list(m.values()) == [a, b]
    assert [name for name, _ in m.named_parameters()] == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert m.pop("a") is a and list(m) == ["b"]
    with pytest.raises(KeyError):
        del m["a"]
    m.update([("c", a)])
    m.clear()
    assert len(m) == 0 and not list(m.parameters())


REFUSED = {
    "update": lambda m: m.d.update({"x": Affine(1, 1), "keys": Affine(1, 1)}),
    "update with a dot": lambda m: m.d.update([("a", Affine(1, 1)), ("x.y", Affine(1, 1))]),
    "update with no module": lambda m: m.d.update({"x": Affine(1, 1), "y": None}),
    "extend": lambda m: m.s.extend([Affine(1, 1), cg.tanh]),
    "+=": lambda m: m.s.__iadd__([Affine(1, 1), None]),
    "insert": lambda m: m.s.insert(0, cg.tanh),
    "insert at": lambda m: m.s.insert("0", Affine(1, 1)),
    "del": lambda m: m.s.__delitem__(5),
    "register_module": lambda m: m.register_module("_mode", m.s),
    "register_buffer": lambda m: m.register_buffer("_modules", cg.ones(2)),
    "register_parameter": lambda m: m.register_parameter("__dict__", nn.Parameter(cg.ones(2))),
    "class": lambda m: m.register_buffer("__class__", cg.ones(2)),
    "freeze": lambda m: m.freeze("s.0", "s.2"),
    "unfreeze": lambda m: m.unfreeze("d", "s.2"),
    "unfreeze of what was freed": lambda m: m.unfreeze(),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(change):
    m = nn.Module()
    m.s, m.d = nn.Sequential(Affine(1, 1), Affine(1, 1)), nn.ModuleDict({"a": Affine(1, 1)})
    m.b = nn.Parameter(cg.ones(2))
    m.d.freeze()
    m.last = nn.Module()
    m.last.register_parameter("gone", nn.Parameter(cg.ones(2), requires_grad=False))
    m.last.gone.free()

    def everything():
        return [(path, id(part), list(part._modules), dict(part._parameters), dict(part._buffers), dict(vars(part)),
                 part._mode, [x.requires_grad for n in part._parameters if n != "gone" for x in [vars(part)[n]]])
                for path, part in m.named_modules()]

    before = everything()
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)):
        change(m)
    assert everything() == before


def test_pytorch_names_have_an_answer():
    """Every public name of torch.nn is one of cygrad.nn, or the error of getattr says what to use."""
    names = [name for name in dir(pytest.importorskip("torch.nn")) if not name.startswith("_")]
    assert len(names) > 150
    for name in names:
        if name in nn.__all__ or hasattr(nn, name) and hasattr(getattr(nn, name), "__file__"): continue     # (a file)
        with pytest.raises(AttributeError, match=f"'cygrad.nn' has no attribute '{name}': "):
            getattr(nn, name)


def test_isinstance_of_a_parameter():
    w = cg.ones(2)
    assert not isinstance(w, nn.Parameter) and not isinstance(3, nn.Parameter)
    w.requires_grad_()
    with cg.record():
        assert isinstance(w, nn.Parameter) and not isinstance(w * 2, nn.Parameter)
    assert isinstance(nn.Parameter(w, requires_grad=False), nn.Parameter)
    assert all(isinstance(x, nn.Parameter) for x in net().freeze("0").parameters())
