"""Nets of models and random ones: their values and gradients are those of eager code, their memory that of the plan."""

import numpy as np
import pytest
from rows import same_bits
from typed_nets import arrays_for, eager_run, typed_net

import cygrad as cg
from cygrad.graph import Net, Workspace


def mlp():
    net, x = Net("mlp"), "x"
    for k in range(4): x = net.relu(net.linear([x, f"w{k}", f"b{k}"]))
    net.cross_entropy([net.linear([x, "w4", "b4"]), "t"], "loss")
    widths = (16, 32, 32, 24, 24, 5)
    shapes = {"x": (8, 16), "t": ((8,), "int64")}
    for k in range(5): shapes |= {f"w{k}": (widths[k + 1], widths[k]), f"b{k}": (widths[k + 1],)}
    return net, shapes


def cnn():
    net = Net("cnn")
    net.training = True
    x, channels, shapes = "x", (1, 8, 12), {"x": (4, 1, 12, 12), "t": ((4,), "int64")}
    for k in (0, 1):
        x = net.conv2d([x, f"w{k}", None], padding=1)
        x = net.batch_norm([x, None, None, f"g{k}", f"b{k}"], training=True)
        x = net.max_pool2d(net.relu(x), kernel_size=2)
        shapes |= {f"w{k}": (channels[k + 1], channels[k], 3, 3), f"g{k}": (channels[k + 1],),
                   f"b{k}": (channels[k + 1],)}
    net.cross_entropy([net.linear([net.reshape(x, shape=(4, -1)), "w", "b"]), "t"], "loss")
    return net, shapes | {"w": (5, 108), "b": (5,)}


def lstm():
    """A cell for each step, of single operators."""
    net, h, c, n = Net("lstm"), "h0", "c0", 6
    for k in range(5):
        z = net.linear([net.concat([net.getitem("x", index=(k,)), h], axis=1), "w", "b"])
        i, f, g, o = (net.getitem(z, index=(slice(None), slice(j * n, (j + 1) * n))) for j in range(4))
        c = net.add([net.mul([net.sigmoid(f), c]), net.mul([net.sigmoid(i), net.tanh(g)])])
        h = net.mul([net.sigmoid(o), net.tanh(c)])
    net.cross_entropy([net.linear([h, "v", "d"]), "t"], "loss")
    return net, {"x": (5, 4, 3), "h0": (4, n), "c0": (4, n), "w": (4 * n, 3 + n), "b": (4 * n,), "v": (5, n),
                 "d": (5,), "t": ((4,), "int64")}


def transformer():
    net, n, heads, steps, batch = Net("transformer"), 16, 2, 6, 3
    shapes = {"x": (batch, steps, n), "t": ((batch * steps,), "int64")}
    y = net.layer_norm(["x", "g1", "b1"], axes=-1)
    split = []
    for name in "qkv":
        part = net.reshape(net.linear([y, f"w{name}", f"b{name}"]), shape=(batch, steps, heads, n // heads))
        split.append(net.permute(part, axes=(0, 2, 1, 3)))
        shapes |= {f"w{name}": (n, n), f"b{name}": (n,)}
    y = net.permute(net.scaled_dot_product_attention(split, is_causal=True), axes=(0, 2, 1, 3))
    y = net.add(["x", net.linear([net.reshape(y, shape=(batch, steps, n)), "wo", "bo"])])
    z = net.linear([net.gelu(net.linear([net.layer_norm([y, "g2", "b2"], axes=-1), "wi", "bi"])), "wj",
                    "bj"])
    z = net.linear([net.reshape(net.add([y, z]), shape=(batch * steps, n)), "v", "d"])
    net.cross_entropy([z, "t"], "loss")
    return net, shapes | {
        **dict.fromkeys(("g1", "b1", "g2", "b2", "bo", "bj"), (n,)), "wo": (n, n), "wi": (32, n), "bi": (32,),
        "wj": (n, 32), "v": (5, n), "d": (5,)}


MODELS = [mlp, cnn, lstm, transformer]


def numbers(shapes, dtype="float32"):
    """Inputs of a model: labels below 5 and random numbers."""
    r = np.random.default_rng(0)
    return {name: r.integers(0, 5, shape[0]) if shape[1:] == ("int64",) else
            r.normal(0, 0.5, shape).astype(dtype) for name, shape in shapes.items()}


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
    """The first run takes what was planned and keeps it, with the head of ones, which is a constant; later ones take
    nothing. (While the first run prepares, results that have no memory are counted too.)"""
    workspace = Workspace()
    for name, a in arrays.items(): workspace.feed(name, a)
    before = cg.memory.stats()["live_bytes"]
    workspace.run(net)
    assert cg.memory.stats()["live_bytes"] - before == plan.peak_bytes + workspace.fetch("loss").nbytes
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
