"""A small convolutional network and one block of a larger one, float32, made-up data.

The network is LeNet's: 1x28x28, 5x5 to 6 channels with padding 2, relu, maxima of 2x2, 5x5 to 16, relu, maxima of 2x2,
layers of 120, 84 and 10; batch 64. A step is forward, cross-entropy, backward and the update of plain SGD. Before
timing, five steps must give equal losses. The block is 3x3, 32 to 64 channels, padding 1, of 32x32 images, batch 32,
with bias; its backward computes the gradients of images, weights and bias. The machine's limit is the time of the
multiply-adds: of the block 1.21 GFLOP forward, twice that backward."""

from dataclasses import dataclass

import numpy as np

from benchmarks import limits
from benchmarks.models import losses, timed_steps
from benchmarks.parts import Trainer
from benchmarks.work import LAYERS, LIMITS, Case, library

THREADS = None
LIBRARIES = ("cygrad", "PyTorch", LIMITS)
BLOCK = 2 * 32 * 64 * 32 * 9 * 32 * 32              # operations


@dataclass(frozen=True)
class Network:
    """The network and its data, with the methods of models.Problem."""

    lr: float
    batch: int = 64

    def layers(self):
        rng = np.random.default_rng(0)
        shapes = (6, 1, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84)
        return [(rng.normal(0, (2 / np.prod(s[1:])) ** 0.5, s).astype(np.float32),
                 rng.normal(0, 0.01, s[0]).astype(np.float32)) for s in shapes]

    def data(self):
        rng = np.random.default_rng(1)
        return rng.normal(0, 1, (self.batch, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, self.batch)

    def cygrad(self, fresh_gradients=False):
        """cygrad's Trainer."""
        import cygrad as cg

        (w1, b1), (w2, b2), (w3, b3), (w4, b4), (w5, b5) = layers = [
            (cg.tensor(w), cg.tensor(b)) for w, b in self.layers()]
        parameters = [p for layer in layers for p in layer]
        for p in parameters:
            p.attach_grad()
        solver = cg.optim.Sgd(self.lr)
        solver.set_parameters(parameters)

        def step(x, target):
            if fresh_gradients:
                for p in parameters:
                    p.grad = None
            with cg.record():
                h = cg.max_pool2d(cg.conv2d(x, w1, b1, padding=2, activation="relu"), 2)
                h = cg.max_pool2d(cg.conv2d(h, w2, b2, activation="relu"), 2)
                h = cg.linear(h.reshape((len(x), 400)), w3, b3, activation="relu")
                loss = cg.cross_entropy(cg.linear(cg.linear(h, w4, b4, activation="relu"), w5, b5), target)
            loss.backward()
            solver.update()
            return loss

        return Trainer(step, cg.tensor, lambda loss: loss.item())

    def torch(self):
        """PyTorch's Trainer."""
        import torch
        from torch.nn import functional as F

        (w1, b1), (w2, b2), (w3, b3), (w4, b4), (w5, b5) = layers = [
            (torch.from_numpy(w), torch.from_numpy(b)) for w, b in self.layers()]
        optimizer = torch.optim.SGD([p.requires_grad_() for layer in layers for p in layer], lr=self.lr)

        def step(x, target):
            optimizer.zero_grad()
            h = F.max_pool2d(F.relu(F.conv2d(x, w1, b1, padding=2)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, w2, b2)), 2)
            h = F.relu(F.linear(h.reshape((len(x), 400)), w3, b3))
            loss = F.cross_entropy(F.linear(F.relu(F.linear(h, w4, b4)), w5, b5), target)
            loss.backward()
            optimizer.step()
            return loss

        return Trainer(step, torch.tensor, lambda loss: loss.item())


def block():
    """Images, weights, bias and the gradient of the result."""
    rng = np.random.default_rng(2)
    return [rng.normal(0, scale, shape).astype(np.float32) for scale, shape in (
        (1, (32, 32, 32, 32)), (0.06, (64, 32, 3, 3)), (0.01, (64,)), (1, (32, 64, 32, 32)))]


@dataclass(frozen=True)
class Block:
    """The block with the methods of models.Problem. A step is its forward and backward without an update; the images
    count as parameters, because they have a gradient. It returns the first element of the result."""

    def layers(self):
        images, weights, bias, _ = block()
        return [(weights, bias), (images, images[:0])]

    def data(self):
        images, _, _, head = block()
        return head, images

    def cygrad(self, fresh_gradients=False):
        import cygrad as cg

        variables = [cg.tensor(a).attach_grad() for a in block()[:3]]

        def step(head, _):
            if fresh_gradients:
                for v in variables: v.grad = None
            with cg.record(): y = cg.conv2d(*variables, padding=1)
            y.backward(head)
            return y.detach()[0, 0, 0, 0]

        return Trainer(step, cg.tensor, lambda loss: loss.item())

    def torch(self):
        import torch
        from torch.nn import functional as F

        variables = [torch.from_numpy(a).requires_grad_() for a in block()[:3]]

        def step(head, _):
            for v in variables: v.grad = None
            y = F.conv2d(*variables, padding=1)
            y.backward(head)
            return y.detach()[0, 0, 0, 0]

        return Trainer(step, torch.tensor, lambda loss: loss.item())


def cygrad_block():
    """Functions that compute the result and the three gradients."""
    import cygrad as cg

    *inputs, head = (cg.tensor(a) for a in block())
    variables = [cg.tensor(a) for a in block()[:3]]
    for v in variables:
        v.attach_grad()
    with cg.record():
        y = cg.conv2d(*variables, padding=1)
    return (lambda: cg.conv2d(*inputs, padding=1)), lambda: cg.autograd.grad(y, variables, head, retain_graph=True)


def torch_block():
    import torch
    from torch.nn import functional as F

    *inputs, head = (torch.from_numpy(a) for a in block())
    variables = [torch.from_numpy(a).requires_grad_() for a in block()[:3]]
    y = F.conv2d(*variables, padding=1)
    return (lambda: F.conv2d(*inputs, padding=1)), lambda: torch.autograd.grad(y, variables, head, retain_graph=True)


def repeated(f):
    def run(n):
        for _ in range(n):
            f()
    return run


def cases(libraries, quick):
    """The machine's rate of multiply-adds, the step, and the block forward and backward."""
    from benchmarks.layers import layers_trainer

    x, target = Network(0.01).data()
    ways = {"cygrad": (Network.cygrad, cygrad_block), LAYERS: (layers_trainer, None),
            "PyTorch": (Network.torch, torch_block)}
    steps, values, blocks = {}, {}, {}
    for name, (make, made) in ways.items():
        if library(name) not in libraries:
            continue
        steps[name] = timed_steps(lambda make=make: make(Network(1e-6)), x, target)
        values[name] = lambda make=make: losses(lambda: make(Network(0.01)), x, target)
        if made: blocks[name] = made()
    forward, backward = ({name: fs[i] for name, fs in blocks.items()} for i in (0, 1))
    return limits.cases(libraries, ("fma",)) + [
        Case("step", "ms", steps, values),
        Case("conv block, forward", "ms", {name: repeated(f) for name, f in forward.items()},
             {name: lambda f=f: [np.asarray(f())] for name, f in forward.items()},
             details=dict(limit="fma", amount=BLOCK)),
        Case("conv block, backward", "ms", {name: repeated(f) for name, f in backward.items()},
             {name: lambda f=f: [np.asarray(g) for g in f()] for name, f in backward.items()},
             tolerance=1e-3, details=dict(limit="fma", amount=2 * BLOCK))]
