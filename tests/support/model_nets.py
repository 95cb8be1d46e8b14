"""Nets of models: each function returns the net, with the loss "loss", and the shapes of its inputs."""

import numpy as np

from cygrad.graph import Net


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
