"""Nets of models and random ones: their values and gradients are those of eager code, their memory that of the plan."""

import numpy as np
import pytest
from model_nets import MODELS, numbers
from rows import same_bits
from typed_nets import arrays_for, eager_run, typed_net

import cygrad as cg
from cygrad.graph import Net, Workspace


def check_run(net, arrays, heads=("loss",)):
    """The net, differentiated, equals eager code in two runs. Returns its workspace."""
    values, wanted = eager_run(net, arrays, heads)
    found = net.add_gradient_operators([*heads])
    workspace = Workspace()
    for name, a in arrays.items(): workspace.feed(name, a)
    for _ in range(2):
        workspace.run(net)
        for y in heads: same_bits(workspace.fetch(y).numpy(), values[y])
        for name, g in wanted.items():
            assert (found.get(name) in workspace) == (g is not None)
            if g is not None: same_bits(workspace.fetch(found[name]).numpy(), g)
    return workspace


def check_memory(net, arrays, plan):
    """The first run takes what was planned and keeps it; later ones take nothing."""
    workspace = Workspace()
    for name, a in arrays.items(): workspace.feed(name, a)
    before = cg.memory.stats()["live_bytes"]
    workspace.run(net)
    assert cg.memory.stats()["live_bytes"] - before == plan.peak_bytes
    with cg.memory.events() as events:
        for _ in range(3): workspace.run(net)
    assert not events


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS)
def test_a_model_equals_eager_code(model, dtype):
    net, shapes = model()
    check_run(net, numbers(shapes, dtype))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_the_memory_of_a_model_is_that_of_the_plan(model, shared):
    net, shapes = model()
    net.add_gradient_operators(["loss"])
    if shared: net.share_blobs()
    arrays = numbers(shapes)
    plan = net.plan(shapes)
    check_memory(net, arrays, plan)
    assert plan.bound_bytes <= plan.peak_bytes
    if shared: assert plan.peak_bytes <= 1.05 * plan.bound_bytes


@pytest.mark.parametrize("n", [1, 2, 3, 10, 50])
def test_the_arena_of_a_chain_is_its_bound(n):
    net, x = Net(), "x"
    for k in range(n): x = net.add_operator(("exp", "tanh", "relu", "square")[k % 4], x)
    for gradients in (False, True):
        if gradients: net.add_gradient_operators([x])
        net.share_blobs()
        plan = net.plan({"x": (7, 13)})
        assert plan.peak_bytes == plan.bound_bytes > 0


@pytest.mark.parametrize("seed", range(200))
def test_a_random_net_equals_eager_code_and_its_plan(seed):
    net, sizes = typed_net(seed)
    arrays = arrays_for(sizes, seed)
    with np.errstate(all="ignore"):
        check_run(net, arrays)
        net.share_blobs()
        plan = net.plan(sizes)
        check_memory(net, arrays, plan)
    shapes = net.infer(sizes)
    for name in net.kept:
        assert name in shapes


@pytest.mark.parametrize("seed", range(20))
def test_a_random_net_in_immediate_mode_equals_eager_code(seed):
    net, sizes = typed_net(seed)
    arrays = arrays_for(sizes, seed)
    values, wanted = eager_run(net, arrays, ["loss"])
    workspace, again = Workspace(), Net()
    for name, value in net.constants.items(): again.add_constant(value, name)
    for name, a in arrays.items(): workspace.feed(name, a)
    with workspace.immediate():
        for o in net.operators: again.add_operator(o)
        found = again.add_gradient_operators(["loss"])
        for name, y in values.items():
            if name in net: same_bits(workspace.fetch(name).numpy(), y)
        for name, g in wanted.items():
            if g is not None: np.testing.assert_allclose(workspace.fetch(found[name]).numpy(), g, rtol=2e-5, atol=1e-6)
