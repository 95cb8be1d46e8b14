"""ParameterList and ParameterDict. test_state.py has the containers of modules."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.testing import fail_allocation


def numbers(*shape):
    return cg.tensor(np.random.default_rng(len(shape)).normal(size=shape))


class Powers(nn.Module):
    """A polynomial: the sum of w[i] x^i."""

    def __init__(self, n):
        self.w = nn.ParameterList(cg.full((), float(i + 1)) for i in range(n))

    def forward(self, x):
        return sum(w * x**i for i, w in enumerate(self.w))


def names(m):
    return [name for name, _ in m.named_parameters()]


def test_a_list_registers_its_parameters():
    net = Powers(3)
    assert names(net) == list(net.state_dict()) == ["w.0", "w.1", "w.2"] and len(net.w) == 3
    x = cg.tensor(2.0)
    with cg.record(): y = net(x)
    y.backward()
    assert y.item() == 1 + 2 * 2 + 3 * 4 and [w.grad.item() for w in net.w] == [1.0, 2.0, 4.0]
    solver = cg.optim.Sgd(net.parameters(), lr=0.5)
    solver.update()
    assert [w.item() for w in net.w] == [0.5, 1.0, 1.0]
    net.load_state_dict({f"w.{i}": np.float32(i) for i in range(3)})
    assert [w.item() for w in net.w] == [0.0, 1.0, 2.0]


def test_what_becomes_a_parameter():
    plain, variable, frozen = cg.ones(2), nn.Parameter(cg.ones(3)), nn.Parameter(cg.ones(4), requires_grad=False)
    m = nn.ParameterList([plain, variable, frozen])
    assert m[0] is plain and plain.requires_grad and m[1] is variable and m[-1] is frozen and not frozen.requires_grad
    assert [x.shape for x in m.parameters()] == [(2,), (3,), (4,)]
    d = nn.ParameterDict({"a": cg.ones(2), "b": variable})
    assert d["a"].requires_grad and d["b"] is variable and d.b is variable and names(d) == ["a", "b"]


def test_lists_are_like_those_of_modules():
    xs = [cg.full((1,), float(i)) for i in range(5)]
    m = nn.ParameterList(xs[:3])
    assert m.append(xs[3]) is m and m.extend([xs[4]]) is m and list(m) == xs and names(m) == list("01234")
    del m[1]
    assert list(m) == [xs[0], *xs[2:]] and names(m) == list("0123")
    assert m.insert(1, xs[1]) is m and list(m) == xs and m.pop() is xs[4] and m.pop(0) is xs[0] and len(m) == 3
    part = m[1:]
    assert type(part) is nn.ParameterList and list(part) == xs[2:4] and names(part) == ["0", "1"]
    m[0] = xs[4]
    m += [xs[0]]
    assert list(m) == [xs[4], xs[2], xs[3], xs[0]] and list(m + [xs[1]])[-1] is xs[1] and len(m) == 4
    with pytest.raises(NotImplementedError, match="ParameterList has no forward"): m(1)


def test_dicts_are_like_those_of_modules():
    a, b, c = (cg.full((1,), float(i)) for i in range(3))
    d = nn.ParameterDict([("a", a)])
    d["b"] = b
    d.update({"c": c})
    assert list(d) == list(d.keys()) == ["a", "b", "c"] and list(d.values()) == [a, b, c] and "a" in d and len(d) == 3
    assert list(d.items())[1] == ("b", b) and d.get("a") is a and d.get("x") is None and d.get("x", 3) == 3
    d["b"] = a                                      # one parameter under two names is listed once
    assert names(d) == ["a", "c"] and list(d.state_dict()) == ["a", "b", "c"]
    assert d.pop("b") is a
    del d["c"]
    with pytest.raises(KeyError): del d["c"]
    with pytest.raises(KeyError): d["c"]
    d.clear()
    assert len(d) == 0 and not list(d.parameters())
    modules = nn.ModuleDict({"x": nn.Tanh()})
    assert modules.get("x") is modules.x and modules.get("y", 3) == 3


@pytest.mark.parametrize("change", [
    lambda m: m.w.append(3.0), lambda m: m.w.extend([cg.ones(2), np.ones(2)]), lambda m: m.w.insert(0, None),
    lambda m: m.w.insert("0", cg.ones(2)), lambda m: m.w.__setitem__(0, [1.0]),
    lambda m: m.w.__setitem__(7, cg.ones(2)),
    lambda m: m.w.__delitem__(5), lambda m: m.d.update({"x": cg.ones(2), "keys": cg.ones(2)}),
    lambda m: m.d.update({"x": cg.ones(2), "y": cg.ones(2, dtype="int64")}), lambda m: m.d.update(3),
    lambda m: m.d.__setitem__("x.y", cg.ones(2)), lambda m: m.d.__setitem__(3, cg.ones(2)),
])
def test_what_is_refused_changes_nothing(change):
    m = nn.Module()
    m.w, m.d = nn.ParameterList([cg.ones(2), cg.ones(3)]), nn.ParameterDict({"a": cg.ones(2)})
    before = [(name, id(x)) for name, x in m.named_parameters()]
    with pytest.raises((TypeError, ValueError, IndexError)): change(m)
    assert [(name, id(x)) for name, x in m.named_parameters()] == before


def test_a_recorded_result_is_refused():
    x = cg.ones(2).attach_grad()
    with cg.record(): y = x * 2
    with pytest.raises(TypeError, match="ParameterList.extend takes parameters, got a recorded result; make one with"):
        nn.ParameterList([y])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies_and_representations(copied):
    m = nn.ModuleDict({"w": nn.ParameterList([numbers(2, 3), numbers(3)]), "d": nn.ParameterDict({"a": numbers(2)})})
    twin = copied(m)
    assert repr(twin) == repr(m) and not {id(x) for x in m.parameters()} & {id(x) for x in twin.parameters()}
    assert [x.numpy().tobytes() for x in twin.parameters()] == [x.numpy().tobytes() for x in m.parameters()]
    assert repr(m.w) == "ParameterList((0): (2, 3) float64, (1): (3,) float64)  # 9 parameters, 72 bytes"
    assert repr(m["d"]) == "ParameterDict((a): (2,) float64)  # 2 parameters, 16 bytes"
    assert m.astype("float32").w[0].dtype == m.d["a"].dtype == "float32"


def test_a_failed_allocation_while_a_list_grows():
    """Either a value became a parameter of the list, or nothing happened."""
    m = nn.ParameterList()
    for n in range(1, 100):
        with fail_allocation(n) as failure:
            try: m.append(cg.ones(1000))
            except MemoryError: pass
        assert len(m) == (not failure.failed) and names(m) == ["0"][:len(m)]
        if not failure.failed: break
    assert n > 1
