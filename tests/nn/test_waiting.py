"""Layers that wait for a size: what is assigned, converted and frozen before the first call stays."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.graph.waiting import is_waiting

LAYERS = {                      # (a function of the size, the shape of an input, its size)
    "Linear": (lambda n, **how: nn.Linear(n, 7, **how), (2, 4), 4),
    "Conv2d": (lambda n, **how: nn.Conv2d(n, 6, 3, groups=2, **how), (2, 4, 5, 5), 4),
    "ConvTranspose1d": (lambda n, **how: nn.ConvTranspose1d(n, 6, 3, groups=2, **how), (2, 4, 5), 4),
    "BatchNorm1d": (lambda n, **how: nn.BatchNorm1d(n, **how), (3, 4), 4),
    "GroupNorm": (lambda n, **how: nn.GroupNorm(2, n, **how), (2, 4, 5), 4),
    "LayerNorm": (lambda n, **how: nn.LayerNorm(n, **how), (2, 4), 4),
    "RMSNorm": (lambda n, **how: nn.RMSNorm(n, **how), (2, 4), 4),
    "LSTM": (lambda n, **how: nn.LSTM(n, 3, 2, bidirectional=True, **how), (5, 2, 4), 4),
    "GRUCell": (lambda n, **how: nn.GRUCell(n, 3, **how), (2, 4), 4),
}
every_layer = pytest.mark.parametrize("make, shape, n", LAYERS.values(), ids=LAYERS)


def parameters(shape):
    return nn.Parameter(cg.ones(shape))


def test_tying_to_an_embedding():
    e, o = nn.Embedding(7, 4), nn.Linear(None, 7, bias=False)
    o.weight = e.weight
    assert o.in_features == 4 and list(o.parameters()) == [e.weight]
    assert o(cg.ones((1, 4))).shape == (1, 7) and o.weight is e.weight
    o = nn.Linear(None, 7, generator=cg.random.Generator(1))
    with cg.testing.fail_allocation(1 << 40) as counted: o.weight = e.weight
    assert o.weight is e.weight and o.bias.shape == (7,) and counted.allocations == 1      # (that of the bias)


@every_layer
def test_each_parameter_that_was_assigned_stays(make, shape, n):
    """The first one of each layer has its size."""
    for i, (name, x) in enumerate(make(n).named_parameters()):
        layer, mine = make(None), parameters(x.shape)
        setattr(layer, name, mine)
        twin = pickle.loads(pickle.dumps(layer))
        assert layer._pending == (i > 0 or type(layer) is nn.LSTM and name != "weight_ih_l0")
        for found in (layer, twin):
            found(cg.ones(shape))
            assert not found._pending and repr(found) == repr(make(n))
            assert [path for path, _ in found.named_parameters()] == [path for path, _ in make(n).named_parameters()]
        assert getattr(layer, name) is mine and (getattr(twin, name).numpy() == 1).all()


@every_layer
def test_a_parameter_of_another_shape_is_refused(make, shape, n):
    for name, x in make(n).named_parameters():
        rows, *rest = x.shape
        layer, wrong = make(None), parameters((rows + 2, *rest) if len(rest) == 1 else (*x.shape, 1))
        before = dict(vars(layer))
        with pytest.raises(ValueError, match=rf"\.{name} must be \((\?|{rows}),.*got a float32 tensor of shape \("):
            setattr(layer, name, wrong)             # (which has the size, or it is known in the call)
            before = dict(vars(layer))
            layer(cg.ones(shape))
        assert vars(layer) == before and layer._pending
        setattr(layer, name, parameters(x.shape))
        layer(cg.ones(shape))


def test_no_bias():
    for make in (lambda: nn.Linear(None, 7), lambda: nn.Conv1d(None, 2, 1), lambda: nn.BatchNorm1d(None)):
        layer = make()
        layer.bias = None
        twin = copy.deepcopy(layer)
        for found in (layer, twin):
            found(cg.ones((3, 4, 4)))
            assert found.bias is None and "bias" not in found.state_dict() and "bias=False" in repr(found)
        layer = make()
        layer.register_parameter("bias", None)
        layer(cg.ones((3, 4, 4)))
        assert layer.bias is None
        layer = make()
        del layer.bias
        with pytest.raises(AttributeError, match="bias"):
            layer(cg.ones((3, 4, 4)))


@pytest.mark.parametrize("first", [0, 1])
def test_two_that_wait_are_tied(first):
    """The first one that is called gives both their size, and each draws its other parameters."""
    a, b = layers = [nn.Linear(None, 7, generator=cg.random.Generator(1)), nn.Linear(None, 7)]
    b.register_parameter("weight", a.weight)
    weight, bias = a.weight, b.bias
    assert b.weight is weight and [name for name, _ in nn.Sequential(a, b).named_parameters()] == [
        "0.weight", "0.bias", "1.bias"]
    layers[first](cg.ones((1, 4)))
    assert a.in_features == b.in_features == 4 and not a._pending and not b._pending
    assert a.weight is b.weight is weight and weight.shape == (7, 4) and b.bias is bias and a.bias is not bias
    a.weight = nn.Parameter(cg.ones((7, 4)))
    assert b.weight is weight


def test_two_biases_are_tied():
    a, b = nn.Linear(None, 7), nn.Linear(None, 7)
    b.bias = a.bias
    a(cg.ones((1, 4)))
    assert b._pending and b.bias is a.bias and b.bias.shape == (7,)
    b(cg.ones((1, 3)))
    assert b.bias is a.bias and b.weight.shape == (7, 3)


def test_a_sized_layer_is_tied_to_one_that_waits():
    """In either direction the one that waits gets the size."""
    a, b = nn.Linear(4, 7), nn.Linear(None, 7)
    weight = b.weight
    a.weight = b.weight
    assert a.weight is b.weight is weight and b.in_features == 4 and weight.shape == (7, 4)
    a, b = nn.Linear(4, 7), nn.Linear(None, 7)
    b.weight = a.weight
    assert a.weight is b.weight and b.in_features == 4
    e, o = nn.Embedding(7, 4), nn.Linear(None, 7)
    e.weight = o.weight
    assert o.in_features == 4 and e.weight is o.weight


def test_shapes_of_tied_parameters_must_agree():
    a, b = nn.Linear(None, 7), nn.Linear(None, 8)
    with pytest.raises(ValueError, match=r"Linear.weight must be \(8, \?\), got Linear.weight of shape \(7, \?\)"):
        b.weight = a.weight
    with pytest.raises(ValueError, match=r"Linear.bias must be \(8,\), got Linear.bias of shape \(7,\)"):
        b.bias = a.bias
    with pytest.raises(ValueError, match=r"Linear.weight must be \(5, 4\), got Linear.weight of shape \(7, \?\)"):
        nn.Linear(4, 5).weight = a.weight
    with pytest.raises(ValueError, match="Linear.weight must be float64, got Linear.weight of shape .* float32"):
        nn.Linear(None, 7, dtype="float64").weight = a.weight
    g = nn.Conv1d(None, 6, 3, groups=2)
    h = nn.Conv1d(None, 6, 3, groups=3)
    h.weight = g.weight
    u = nn.Conv1d(None, 6, 3)
    u.weight = g.weight
    g(cg.ones((1, 12, 5)))
    assert (g.in_channels, h.in_channels, u.in_channels) == (12, 18, 6)
    v, w = nn.LSTM(None, 2), nn.LSTM(None, 2)
    w.weight_ih_l0, w.weight_hh_l0 = v.weight_ih_l0, v.weight_hh_l0
    w(cg.ones((1, 5)))
    assert v.input_size == 5 and v.weight_hh_l0 is w.weight_hh_l0


def test_two_that_need_different_shapes_in_the_first_call():
    """Both are named, and nothing changes."""
    norm, other = nn.BatchNorm1d(None), nn.BatchNorm1d(None)
    other.weight, other.bias = norm.bias, norm.weight
    line = nn.LayerNorm(None)
    line.weight = norm.weight
    square = nn.ConvTranspose1d(None, 2, 1)
    plain = nn.Conv1d(None, 2, 1)
    plain.weight = square.weight                    # (in, 2, 1) and (2, in, 1)
    with pytest.raises(ValueError, match=r"Conv1d\(None, 2, .*\).weight must be \(2, 2, 1\), but ConvTranspose1d\(None"
                                         r", 2, .*\).weight, which is the same parameter, must be \(3, 2, 1\); tie"):
        square(cg.ones((1, 3, 4)))
    assert square._pending and plain._pending and is_waiting(plain.weight) and is_waiting(square.bias)
    norm(cg.ones((2, 4)))
    assert other.num_features == 4 and line.normalized_shape == (4,)


def test_assigned_buffers():
    layer, mean = nn.BatchNorm1d(None), cg.ones(4)
    layer.running_mean = mean
    assert layer.num_features == 4 and layer.running_mean is mean and list(layer._buffers)[0] == "running_mean"
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    layer = nn.BatchNorm1d(None)
    with pytest.raises(TypeError, match="is a buffer and cannot become 3"):
        layer.running_mean = 3
    layer.register_buffer("running_var", cg.ones(4), persistent=False)
    layer(cg.ones((2, 4)))
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "num_batches_tracked"]


@every_layer
def test_an_assignment_with_failing_allocations(make, shape, n):
    """Either nothing has happened, or the layer has everything."""
    name, x = next(make(n).named_parameters())
    x, k = parameters(x.shape), 1
    while True:
        layer = make(None)
        try:
            with cg.testing.fail_allocation(k): setattr(layer, name, x)
        except MemoryError:
            assert layer._pending and all(map(is_waiting, (*layer.parameters(), *layer.buffers())))
            k += 1
        else: break
    assert not layer._pending and k == sum(y.nbytes > 0 for y in (*layer.parameters(), *layer.buffers()))


def test_a_state_is_loaded_into_what_was_assigned():
    found, bias = nn.Linear(None, 7), parameters((7,))
    found.bias = bias
    state = {name: x.copy() for name, x in nn.Linear(4, 7).state_dict().items()}
    with pytest.raises(ValueError, match="missing: 'weight'"):
        found.load_state_dict({"bias": state["bias"]})
    assert found.load_state_dict({"bias": state["bias"]}, strict=False) == (["weight"], [])
    np.testing.assert_array_equal(bias.numpy(), state["bias"].numpy())
    found.load_state_dict(state)
    assert found.bias is bias
    np.testing.assert_array_equal(found.weight.numpy(), state["weight"].numpy())


def test_gradients_of_what_was_assigned_become_none():
    found, bias = nn.Linear(None, 7), parameters((7,))
    found.bias = bias
    with cg.record(): y = (bias * 2).sum()
    y.backward()
    found.zero_grad()
    assert bias.grad is None


# ---- astype and freeze -----------------------------------------------------------------------------------------------

@every_layer
def test_astype_is_as_the_argument(make, shape, n):
    found = nn.Sequential(make(None, generator=cg.random.Generator(3)) if "generator" in make_options(make)
                          else make(None))
    twin = copy.copy(found[0])
    assert found.astype("float64") is found
    found(cg.ones(shape, dtype="float64"))
    expected = make(n, dtype="float64", **({"generator": cg.random.Generator(3)} if "generator" in make_options(make)
                                           else {}))
    for x, y in zip(found[0].parameters(), expected.parameters(), strict=True):
        assert x.dtype == cg.float64
        np.testing.assert_array_equal(x.numpy(), y.numpy())
    assert [x.dtype for x in found[0].buffers()] == [x.dtype for x in expected.buffers()]
    twin(cg.ones(shape))
    assert {x.dtype for x in twin.parameters()} == {cg.float32}


def make_options(make):
    return {} if "Norm" in repr(make(None)) else {"generator"}


def test_astype_converts_what_was_assigned():
    found = nn.Linear(None, 7)
    found.bias = parameters((7,))
    with cg.testing.fail_allocation(1), pytest.raises(MemoryError): found.astype("float64")
    found(cg.ones((1, 2)))
    assert found.weight.dtype == cg.float32
    found = nn.Linear(None, 7)
    found.bias = parameters((7,))
    found.astype("float64")(cg.ones((1, 2), dtype="float64"))
    assert found.bias.dtype == found.weight.dtype == cg.float64
    with pytest.raises(TypeError, match="astype: a module can be float32 or float64, got int64"):
        nn.Linear(None, 7).astype("int64")


@every_layer
@pytest.mark.parametrize("by", ["call", "state", "assignment"])
def test_freeze_holds_for_what_is_made(make, shape, n, by):
    layer = make(None)
    net = nn.Sequential(copy.deepcopy(layer.freeze()))
    state = make(n).state_dict()
    first, x = next(make(n).named_parameters())
    if by == "call": net(cg.ones(shape))
    elif by == "state": net[0].load_state_dict(state)
    else: setattr(net[0], first, parameters(x.shape))
    assert [x.requires_grad for x in net.parameters()] == [by == "assignment"] + [False] * (len(layer._parameters) - 1)
    net.unfreeze()
    assert all(x.requires_grad and x.grad_req == "add" for x in net.parameters())


def test_freeze_of_some():
    net = nn.Sequential(nn.Linear(None, 3), nn.Linear(3, 2))
    net.freeze("0").unfreeze("0.bias").freeze("1.weight")
    net(cg.ones((1, 4)))
    assert [name for name, x in net.named_parameters() if not x.requires_grad] == ["0.weight", "1.weight"]
    shared = nn.Linear(None, 3)
    net = nn.Sequential(shared, nn.Sequential(shared)).freeze("1")
    shared(cg.ones((1, 3)))
    assert not shared.weight.requires_grad
    net = nn.Sequential(nn.Linear(None, 3, bias=False), nn.Linear(3, 2))
    with pytest.raises(ValueError, match="freeze: no parameter is '0.bias' or below it"):
        net.freeze("1", "0.bias")
    assert net[1].weight.requires_grad
    net.freeze(lambda name, x: x.ndim == 2)
    net(cg.ones((1, 4)))
    assert [name for name, x in net.named_parameters() if x.requires_grad] == ["1.bias"]
