"""Modules in unusual arrangements: in cycles, in slices, and in several threads at first use."""

import copy
import sys
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn


class Loop(nn.Module):
    """A module that contains itself, below a child."""

    def __init__(self):
        self.first = nn.Linear(2, 2)
        self.box = nn.ModuleList([self])

    def forward(self, x):
        return self.first(x)


def test_a_module_that_contains_itself():
    m = Loop()
    assert list(m.state_dict()) == ["first.weight", "first.bias"]
    assert [name for name, _ in m.named_modules(remove_duplicate=False)] == ["", "first", "box"]
    m.load_state_dict({name: cg.ones(*x.shape) for name, x in m.state_dict().items()})
    calls = []
    assert m.apply(calls.append) is m and calls == [m.first, m.box, m]
    assert "..." in repr(m) and repr(m).count("Linear") == 1
    m.freeze("first.weight")
    assert not m.first.weight.requires_grad
    m.astype("float64")
    assert m.first.weight.dtype == m.first.bias.dtype == cg.float64
    c = copy.deepcopy(m)
    assert c.box[0] is c
    del m.box, c.box            # the cycles, which would need the garbage collector


def test_apply_calls_once_for_a_shared_module():
    a = nn.Linear(2, 2)
    calls = []
    net = nn.Sequential(nn.Sequential(a), a)
    net.apply(calls.append)
    assert calls == [a, net[0], net]


def test_append_to_a_slice_keeps_all_modules():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.ReLU())
    part, last = net[1:], nn.Sigmoid()          # named "1" and "2"
    part.append(last)
    assert list(part) == [net[1], net[2], last] and list(net) == [*net[:2], net[2]]


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *modules: nn.ModuleList(modules)])
def test_pop_and_addition(kind):
    a, b, c = nn.Tanh(), nn.ReLU(), nn.Sigmoid()
    box = same = kind(a, b)
    box += [c]
    assert box is same and list(box) == [a, b, c]
    assert box.pop(0) is a and [name for name, _ in box.named_children()] == ["0", "1"]
    assert box.pop() is c and list(box) == [b]
    both = box + [a]
    assert type(both) is type(box) and list(both) == [b, a] and list(box) == [b]
    with pytest.raises(IndexError): box.pop(1)
    with pytest.raises(TypeError): box + [3]


def test_first_calls_in_several_threads_make_the_parameters_once():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            layer, start, seen = nn.Linear(None, 64), threading.Barrier(4), []

            def call(layer=layer, start=start, seen=seen):
                x = cg.ones(2, 64)
                start.wait()
                layer(x)
                seen.append(id(layer.weight))

            threads = [threading.Thread(target=call) for _ in range(4)]
            for t in threads: t.start()
            for t in threads: t.join()
            assert len(seen) == 4 and len(set(seen)) == 1
    finally:
        sys.setswitchinterval(interval)


BESIDE = {                      # what another thread does to a waiting layer and its weight during its first call
    "load": lambda layer, w: layer.load_state_dict({"weight": cg.full((5, 4), 2.0), "bias": cg.full((5,), 2.0)}),
    "assign": lambda layer, w: setattr(layer, "weight", nn.Parameter(cg.full((5, 4), 2.0))),
    "astype": lambda layer, w: layer.astype("float64"),
    "init": lambda layer, w: nn.init.constant_(w, 2.0),
    "init detached": lambda layer, w: nn.init.constant_(w.detach(), 2.0),
    "fill": lambda layer, w: w.detach().fill_(2.0),
    "freeze": lambda layer, w: layer.freeze().unfreeze(),
    "solver": lambda layer, w: cg.optim.Adam(layer.parameters()),
}


@pytest.mark.parametrize("other", BESIDE)
def test_a_first_call_beside_other_threads_is_before_or_after_what_they_do(other):
    interval, faults = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)

    def in_turn(start, f):
        start.wait()
        try: f()
        except Exception as e: faults.append(e)

    try:
        for _ in range(150):
            layer, start = nn.Linear(None, 5), threading.Barrier(2)
            w = layer.weight
            threads = [threading.Thread(target=in_turn, args=(start, f)) for f in (
                lambda layer=layer: layer(cg.ones(2, 4)), lambda layer=layer, w=w: BESIDE[other](layer, w))]
            for t in threads: t.start()
            for t in threads: t.join()
            assert not faults and layer.weight.shape == (5, 4) and layer.in_features == 4
            if other not in ("astype", "freeze", "solver"): assert (layer.weight.numpy() == 2).all()
            if other == "astype": assert layer.weight.dtype == layer.bias.dtype == "float64"
    finally:
        sys.setswitchinterval(interval)


def test_a_value_that_cannot_be_read_is_named():
    m = nn.Linear(2, 2)
    before = m.weight.numpy().copy()
    with pytest.raises(TypeError, match="load_state_dict of Linear: the value of 'bias' cannot be read: .*complex64"):
        m.load_state_dict({"weight": np.zeros((2, 2), "float32"), "bias": np.zeros(2, "complex64")})
    assert np.array_equal(m.weight.numpy(), before)


@pytest.mark.parametrize("strict", [True, False])
def test_a_state_without_the_input_size_is_refused(strict):
    net = nn.Sequential(nn.Linear(None, 3), nn.Linear(3, 1))
    state = {"0.weight": cg.ones(3), "0.bias": cg.ones(3), "1.weight": cg.ones(1, 3), "1.bias": cg.ones(1)}
    before = net[1].weight.numpy().copy()
    fault = (r"\n  from which a layer cannot take its input size:\n    '0.weight' of shape \(3,\)\n"
             r"    '0.bias' of shape \(3,\)$")
    with pytest.raises(ValueError, match=fault): net.load_state_dict(state, strict)
    assert net[0]._pending and np.array_equal(net[1].weight.numpy(), before)
    net.load_state_dict(state | {"0.weight": cg.ones(3, 2)}, strict)
    assert net[0].in_features == 2
