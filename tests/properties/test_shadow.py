"""The shadow allocator agrees with the pool after every event (M1)."""

import gc

import numpy as np
import pytest
from programs import Boom, Program, Refused, run
from shadow import Shadow

import cygrad as cg


def mlp(seed=0, sizes=(6, 16, 16, 4), n=32):
    """Parameters, inputs and labels of a small classifier."""
    rng = np.random.default_rng(seed)
    parameters = {}
    for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
        parameters[f"w{i}"] = cg.tensor(rng.normal(0, a**-0.5, (b, a)).astype("f4")).attach_grad()
        parameters[f"b{i}"] = cg.zeros(b).attach_grad()
    return parameters, cg.tensor(rng.normal(size=(n, sizes[0])).astype("f4")), cg.tensor(rng.integers(0, sizes[-1], n))


def loss_of(parameters, x, labels):
    depth = len(parameters) // 2
    for i in range(depth):
        x = cg.linear(x, parameters[f"w{i}"], parameters[f"b{i}"])
        if i < depth - 1:
            x = cg.relu(x)
    return cg.cross_entropy(x, labels)


def training_steps():
    parameters, x, labels = mlp()
    solver = cg.optim.Adam()
    solver.set_parameters(parameters)
    for _ in range(4):
        solver.zero_grad()
        with cg.record():
            loss = loss_of(parameters, x, labels)
        loss.backward()
        solver.update()


def exceptions():
    x = cg.tensor(np.ones((4, 3))).attach_grad()
    for bad in (lambda y: y @ y, lambda y: y + np.ones(7), lambda y: y.reshape(5),
                lambda y: cg.cross_entropy(y, [9] * 4)):
        with pytest.raises((ValueError, IndexError)), cg.record():
            bad(cg.exp(x) * 2.0)
    with cg.record():
        y = cg.exp(x)
    y.backward()
    with pytest.raises(cg.GraphFreedError):
        y.backward()


def create_graph():
    x = cg.tensor(np.linspace(0.1, 1, 12).reshape(3, 4), requires_grad=True)
    with cg.record():
        y = (cg.tanh(x) * cg.exp(x)).sum()
    y.backward(create_graph=True)
    with cg.record():
        z = (x.grad * x.grad).sum()
    z.backward(create_graph=True)


def inplace():
    x = cg.tensor(np.ones((3, 4))).attach_grad()
    with cg.record():
        h = x * 2.0
        h += x
        h *= 3.0
        h[1:] = 0.5
        h[0] = x[1]
        y = (h * h).sum()
    y.backward()
    with cg.pause():
        x[...] = 1.0
        x -= 0.5


def leases():
    x = cg.tensor(np.arange(12.0)).attach_grad()
    with cg.record():
        h = cg.exp(x)
        y = (h * h).sum()
    held = h.detach().numpy()
    view = held[::3]
    del h
    y.backward()
    kept = x.grad.numpy()
    del x, y, held
    assert view[0] == 1 and kept[0] == 2


def external():
    a = np.linspace(0, 1, 50)
    x = cg.asarray(a).attach_grad()
    with cg.record():
        y = (x * x * cg.asarray(a[::-1])).sum()
    assert cg.memory.stats()["external_bytes"] > 0
    y.backward()


def views_and_detached():
    x = cg.tensor(np.ones((4, 4))).attach_grad()
    d = x.detach()
    with cg.record():
        y = (x.T.reshape(2, 8)[:, ::2] * d[0, 0]).sum()
    y.backward(retain_graph=True)
    y.backward()
    x.drop_grad()
    d.attach_grad("add")
    del x
    d.grad = None


@pytest.mark.parametrize("scene", [training_steps, exceptions, create_graph, inplace, leases, external,
                                   views_and_detached], ids=lambda f: f.__name__)
def test_scenes(scene):
    gc.collect()
    gc.disable()                                    # reference counts alone
    try:
        with Shadow() as shadow:
            scene()
            assert shadow.events > 10
        assert shadow.live == {} and cg.memory.stats()["external_bytes"] == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    with Shadow() as shadow:
        try:
            run(Program(seed))
        except (Boom, MemoryError, Refused):
            pass
    assert shadow.live == {} and shadow.events > 6


def test_the_shadow_can_disagree():
    """Each kind of wrong accounting is detected."""
    def complaints(*events):
        shadow = Shadow()
        for e in events:
            shadow(e)
        return shadow.errors

    assert complaints(("allocate", 1, 64, "other"))                            # the pool has not allocated it
    assert complaints(("free", 1, 64, "other"))                                # never allocated
    pair = [("allocate", 1, 0, "other"), ("allocate", 1, 0, "other")]
    assert any("the buffer was" in e for e in complaints(*pair))               # allocated twice
    with pytest.raises(AssertionError, match="the shadow has"), Shadow() as shadow:
        shadow(("allocate", 1, 64, "saved"))
    x = cg.zeros(3)
    with pytest.raises(AssertionError), Shadow():
        pass
    del x
