"""Nets other than the perceptron. Each is written once, for cygrad, PyTorch and liveness.Shapes.

A net is a function of a library, its parameters and a batch, and returns the output. The loss is the mean of (output -
target) squared, and the solver is SGD."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

WIDTH, HEADS = 64, 4


class Net(NamedTuple):
    """`f(on, parameters, x)`, and the shapes of its parameters, of a batch and of the output."""

    f: Callable
    parameters: tuple
    batch: tuple
    output: tuple

    def arrays(self):
        """The parameters, a batch and its target: float32, the same for all libraries."""
        rng = np.random.default_rng(0)
        made = [rng.normal(0, s[-1] ** -0.5, s).astype(np.float32) for s in self.parameters]
        return made, *(rng.normal(0, 1, s).astype(np.float32) for s in (self.batch, self.output))


class Cygrad:
    """The functions that the nets need, in cygrad."""

    def __init__(self):
        import cygrad as cg

        self.cg = cg
        self.linear, self.layer_norm, self.gelu, self.tanh = cg.linear, cg.layer_norm, cg.gelu, cg.tanh
        self.relu, self.sigmoid, self.square, self.mean = cg.relu, cg.sigmoid, cg.square, cg.mean
        self.softmax, self.stack, self.concat, self.pad = cg.softmax, cg.stack, cg.concat, cg.pad
        self.split, self.topk = cg.split, cg.topk

    def trainer(self, net):
        """A function that takes one step and returns the loss. `.grad` is None before a step."""
        arrays, x, target = net.arrays()
        parameters = [self.cg.tensor(a).attach_grad() for a in arrays]
        solver = self.cg.optim.Sgd(1e-3)
        solver.set_parameters(parameters)
        x, target = self.cg.asarray(x), self.cg.asarray(target)

        def step():
            for p in parameters: p.grad = None
            with self.cg.record(): loss = loss_of(self, net, parameters, x, target)
            loss.backward()
            solver.update()
            return loss.item()

        return step


class PyTorch:
    """The same in PyTorch."""

    def __init__(self):
        import torch
        from torch.nn import functional

        self.torch, self.functional = torch, functional
        self.linear, self.gelu, self.tanh, self.relu = functional.linear, functional.gelu, torch.tanh, torch.relu
        self.sigmoid, self.square, self.mean = torch.sigmoid, torch.square, torch.mean
        self.stack, self.concat = torch.stack, torch.concat

    def layer_norm(self, x, w, b): return self.functional.layer_norm(x, (WIDTH,), w, b)

    def softmax(self, x): return self.torch.softmax(x, -1)

    def pad(self, x, widths): return self.functional.pad(x, [n for pair in reversed(widths) for n in pair])

    def split(self, x, n, axis): return self.torch.chunk(x, n, axis)

    def topk(self, x, k): return self.torch.topk(x, k)

    def trainer(self, net):
        arrays, x, target = net.arrays()
        parameters = [self.torch.from_numpy(a).requires_grad_() for a in arrays]
        solver = self.torch.optim.SGD(parameters, 1e-3)
        x, target = self.torch.from_numpy(x), self.torch.from_numpy(target)

        def step():
            solver.zero_grad()
            loss = loss_of(self, net, parameters, x, target)
            loss.backward()
            solver.step()
            return loss.item()

        return step


def loss_of(on, net, parameters, x, target):
    return on.mean(on.square(net.f(on, parameters, x) - target))


# ---- the nets. A name is bound again if its old value is not needed any more, so that it is freed --------------------

def side_by_side(on, w, x):
    """Two 3 x 3 convolutions: nine slices of the padded image, concatenated, times a matrix."""
    for v in w:
        n, _, h, width = x.shape
        x = on.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        x = on.stack([x[:, :, i:i + h, j:j + width] for i in range(3) for j in range(3)], 1)
        x = on.relu(v @ x.reshape((n, -1, h * width))).reshape((n, -1, h, width))
    return x


def one_by_one(on, w, x):
    """The same with channels last: the sum of each slice times a matrix of its own."""
    for v in w:
        _, h, width, _ = x.shape
        x = on.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        y = on.linear(x[:, :h, :width], v[0])
        for k in range(1, 9):
            i, j = divmod(k, 3)
            y = y + on.linear(x[:, i:i + h, j:j + width], v[k])
        x = on.relu(y)
    return x


def attend(on, q, k, v):
    """Softmax attention of (n, heads, t, size), as (n, t, width)."""
    n, _, t, size = q.shape
    p = on.softmax(q @ k.permute((0, 1, 3, 2)) * size ** -0.5)
    return (p @ v).permute((0, 2, 1, 3)).reshape((n, t, -1))


def feed_forward(on, x, scale, shift, up, down):
    return x + on.linear(on.gelu(on.linear(on.layer_norm(x, scale, shift), up)), down)


def packed(on, w, x):
    """A transformer layer whose queries, keys and values are one projection."""
    qkv, out, scale, shift, *rest = w
    n, t, d = x.shape
    h = on.linear(on.layer_norm(x, scale, shift), qkv).reshape((n, t, 3, HEADS, -1)).permute((2, 0, 3, 1, 4))
    return feed_forward(on, x + on.linear(attend(on, h[0], h[1], h[2]), out), *rest)


def heads_last(on, w, x):
    """Attention alone, with heads on the last axis: BLAS cannot use such strides."""
    qkv, out = w
    n, t, d = x.shape
    h = on.linear(x, qkv).reshape((n, t, 3, -1, HEADS)).permute((2, 0, 4, 1, 3))
    return on.linear(attend(on, h[0], h[1], h[2]), out)


def heads(on, x, w):
    return on.linear(x, w).reshape((*x.shape[:2], HEADS, -1)).permute((0, 2, 1, 3))


def apart(on, w, x):
    """A transformer layer with three projections."""
    wq, wk, wv, out, scale, shift, *rest = w
    h = on.layer_norm(x, scale, shift)
    h = attend(on, heads(on, h, wq), heads(on, h, wk), heads(on, h, wv))
    return feed_forward(on, x + on.linear(h, out), *rest)


def lstm(on, w, x):
    """A cell over the first axis of x. Its gates are one product, split in four. Returns all states, stacked."""
    wx, wh = w
    states, h, c = [], None, None
    for t in range(x.shape[0]):
        z = on.linear(x[t], wx) if h is None else on.linear(x[t], wx) + on.linear(h, wh)
        i, f, g, o = on.split(z, 4, 1)
        c = on.sigmoid(i) * on.tanh(g) if c is None else on.sigmoid(f) * c + on.sigmoid(i) * on.tanh(g)
        h = on.sigmoid(o) * on.tanh(c)
        states.append(h)
    return on.stack(states, 0)


def residual(on, w, x):
    """Blocks x + b relu(a x)."""
    for a, b in zip(w[::2], w[1::2], strict=True): x = x + on.linear(on.relu(on.linear(x, a)), b)
    return x


def outputs(on, w, x):
    """A layer split in four, the largest elements of each part, and its rows one by one."""
    a, b = w
    parts = [on.tanh(part) for part in on.split(on.linear(x, a), 4, 1)]
    best = on.concat([on.topk(part, 16)[0] for part in parts], 1)
    return on.stack([on.tanh(row) for row in on.linear(best, b)], 0)


LAYER = ((WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH))
SQUARE = (WIDTH, WIDTH)
NETS = {
    "windows side by side, 8 images of 32 x 32": Net(side_by_side, ((16, 36), (16, 144)), (8, 4, 32, 32),
                                                     (8, 16, 32, 32)),
    "windows one by one, 8 images of 32 x 32": Net(one_by_one, ((9, 16, 4), (9, 16, 16)), (8, 32, 32, 4),
                                                   (8, 32, 32, 16)),
    "transformer layer, qkv packed": Net(packed, ((3 * WIDTH, WIDTH), SQUARE, *LAYER[:2], *LAYER),
                                         (4, 64, WIDTH), (4, 64, WIDTH)),
    "transformer layer, q, k, v apart": Net(apart, (*[SQUARE] * 4, *LAYER[:2], *LAYER), (4, 64, WIDTH), (4, 64, WIDTH)),
    "attention, qkv packed, heads last": Net(heads_last, ((768, 256), (256, 256)), (2, 128, 256), (2, 128, 256)),
    "LSTM, 12 steps of 32": Net(lstm, ((4 * WIDTH, WIDTH),) * 2, (12, 32, WIDTH), (12, 32, WIDTH)),
    "8 residual blocks, batch 256": Net(residual, (SQUARE,) * 16, (256, WIDTH), (256, WIDTH)),
    "split, topk and rows, batch 64": Net(outputs, ((256, WIDTH), SQUARE), (64, WIDTH), (64, WIDTH)),
}
