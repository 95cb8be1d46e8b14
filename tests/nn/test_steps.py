"""Training steps of layers: every n-th allocation fails, the memory stays flat, and the package loads late.

STEPS lists a training step for each layer; layers of other files can be added."""

import copy
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn


def numbers(*shape):
    return np.random.default_rng(5).normal(size=shape).astype("float32")


INDICES = np.array([[0, 2, 2], [1, 0, 3]])
CLASSES = np.array([0, 2, 1])

# name: (the model, the inputs of a call)
STEPS = {
    "linear": (lambda: nn.Linear(4, 3), lambda: [numbers(5, 4)]),
    "lazy": (lambda: nn.Sequential(nn.Linear(None, 4), nn.Linear(4, 2, bias=False)), lambda: [numbers(5, 4)]),
    "bilinear": (lambda: nn.Bilinear(4, 3, 2), lambda: [numbers(5, 4), numbers(5, 3)]),
    "embedding": (lambda: nn.Embedding(6, 3, padding_idx=1), lambda: [INDICES]),
    "sparse": (lambda: nn.Embedding(6, 3, sparse=True), lambda: [INDICES]),
    "bag": (lambda: nn.EmbeddingBag(6, 3), lambda: [INDICES]),
    "activations": (lambda: nn.Sequential(
        nn.Linear(4, 6), nn.GELU(), nn.PReLU(6), nn.Flatten(), nn.Softplus(), nn.GLU(), nn.LogSoftmax()),
        lambda: [numbers(5, 4)]),
    "random": (lambda: nn.Sequential(
        nn.Linear(4, 6), nn.AlphaDropout(0.3, generator=cg.random.Generator(1)),
        nn.FeatureAlphaDropout(0.3, generator=cg.random.Generator(2)),
        nn.RReLU(generator=cg.random.Generator(3))), lambda: [numbers(5, 4)]),
    "parameters": (lambda: Rows(), lambda: [numbers(5, 4)]),
    "dropout": (lambda: nn.Sequential(
        nn.Linear(4, 6), nn.Dropout(0.3, generator=cg.random.Generator(1)),
        nn.Dropout1d(0.3, generator=cg.random.Generator(2))), lambda: [numbers(5, 4)]),
    "conv": (lambda: nn.Sequential(nn.Conv2d(2, 3, 3, padding_mode="reflect", padding=1), nn.GroupNorm(1, 3),
                                   nn.MaxPool2d(2), nn.ConvTranspose2d(3, 2, 2, 2)), lambda: [numbers(2, 2, 5, 5)]),
    "lstm": (lambda: Last(nn.LSTM(4, 3, 2, bidirectional=True)), lambda: [numbers(5, 2, 4)]),
    "gru": (lambda: Last(nn.GRU(4, 3)), lambda: [numbers(5, 2, 4)]),
    "block": (lambda: nn.TransformerBlock(8, 2, 12, 0.0, "gelu", norm_first=True), lambda: [numbers(5, 2, 8)]),
    "decoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, 0.0), 2),
                lambda: [numbers(5, 2, 8), numbers(4, 2, 8)]),
    "tied": (lambda: tied(), lambda: [numbers(5, 4)]),
    "loss": (lambda: nn.LinearCrossEntropyLoss(4, 3, bias=True), lambda: [numbers(3, 4), CLASSES]),
}


class Last(nn.Module):
    """The results of a recurrent layer without its states."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Rows(nn.Module):
    """Products with the parameters of containers."""

    def __init__(self):
        self.w = nn.ParameterList([cg.ones((4, 3)), cg.ones((3, 2))])
        self.more = nn.ParameterDict({"b": cg.ones(2)})

    def forward(self, x):
        for w in self.w: x = cg.matmul(x, w)
        return x + self.more["b"]


def tied():
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    net[2].weight = net[0].weight
    return net


def generators(net):
    return [m.generator for m in net.modules() if isinstance(m, nn.Dropout | nn.RReLU) and m.generator]


def step(net, inputs, solver):
    with cg.record():
        loss = cg.square(net(*inputs)).sum()
    loss.backward()
    solver.update()
    return loss


def prepared(net):
    solver = cg.optim.Sgd(0.05)
    solver.set_parameters(dict(net.named_parameters()))
    return solver


def values(net):
    return {name: x.numpy().copy() for name, x in net.state_dict().items()}


@pytest.mark.parametrize("name", STEPS)
def test_a_failed_allocation_while_building_leaves_nothing(name):
    make, _ = STEPS[name]
    make()
    before = cg.memory.stats()["live_buffers"]
    for n in range(1, 100):
        with cg.testing.fail_allocation(n) as f:
            try: net = make()
            except MemoryError: net = None
        assert f.failed is (net is None)
        if net is not None: break
        assert cg.memory.stats()["live_buffers"] == before
    assert n > 1 or name == "lazy"


@pytest.mark.parametrize("name", STEPS)
def test_a_step_after_a_failed_allocation_is_as_without_it(name):
    make, inputs = STEPS[name]
    net, inputs = make(), inputs()
    net(*inputs)                                    # (a layer may wait for its size)
    wanted = copy.deepcopy(net)
    step(wanted, inputs, prepared(wanted))
    wanted = values(wanted)
    start = values(net)
    for n in range(1, 200):
        twin = copy.deepcopy(net)
        solver, states = prepared(twin), [g.state for g in generators(twin)]
        with cg.testing.fail_allocation(n) as f:
            try: step(twin, inputs, solver)
            except MemoryError: failed = True
            else: failed = False
        assert f.failed is failed
        if not failed: break
        for key, a in values(twin).items(): np.testing.assert_array_equal(a, start[key])
        assert not cg.is_recording() and not cg.is_training()
        twin.zero_grad()
        for g, state in zip(generators(twin), states, strict=True): g.state = state
        step(twin, inputs, solver)
        for key, a in values(twin).items(): np.testing.assert_array_equal(a, wanted[key])
    assert n > 3


@pytest.mark.parametrize("name", STEPS)
def test_memory_is_flat(name):
    make, inputs = STEPS[name]
    net, inputs = make(), inputs()
    net(*inputs)
    solver = prepared(net)
    found = []
    for i in range(60):
        net.zero_grad()
        step(net, inputs, solver)
        if i >= 5:
            stats = cg.memory.stats()
            found.append((stats["live_bytes"], stats["live_buffers"], stats["system_allocations"]))
    assert len(set(found)) == 1


def test_memory_of_ten_thousand_steps_is_flat():
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    loss, x, target, solver = nn.MSELoss(), cg.tensor(numbers(100, 2)), cg.tensor(numbers(100, 1)), prepared(net)

    def run(n):
        for _ in range(n):
            with cg.record():
                y = loss(net(x), target)
            y.backward()
            solver.update()
            net.zero_grad()
        return y.item()

    first = run(100)
    before = cg.memory.stats()
    with cg.memory.track() as t:
        last = run(10_000)
    after = cg.memory.stats()
    assert last < first and t.leaked_bytes == 0
    assert all(after[what] == before[what] for what in ("live_bytes", "live_buffers", "system_allocations"))


def test_the_package_is_loaded_at_first_use():
    program = """
import sys, cygrad
def loaded(): return {name for name in sys.modules if name.startswith("cygrad.nn")}
assert not loaded()
nn = cygrad.nn
first = "answers", "call", "module", "parameter", "state", "waiting"
assert loaded() == {"cygrad.nn", *("cygrad.nn." + n for n in first)}, loaded()
nn.Linear
assert "cygrad.nn.linear" in loaded() and "cygrad.nn.loss" not in loaded()
assert all(hasattr(nn, name) for name in nn.__all__) and set(nn.__all__) <= set(dir(nn))
assert "nn" in dir(cygrad)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
