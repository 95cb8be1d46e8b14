"""The multilayer perceptron that several rows train: in cygrad, in PyTorch, and by hand in NumPy. functional.py has it
for jax and HIPS autograd.

Layers are linear with relu between them. The loss is cross-entropy or the mean squared error, which is written d = y -
t, (d * d).mean() in cygrad and mse_loss in PyTorch. The solver is SGD, or Adam with default settings. All libraries
build the same model from the same arrays."""

from dataclasses import dataclass

import numpy as np

from benchmarks.functional import hips_step, jax_step
from benchmarks.parts import Trainer
from benchmarks.work import LAYERS


@dataclass(frozen=True)
class Problem:
    """sizes: the widths of the layers. loss: "mse" or "cross_entropy". solver: "sgd" or "adam"."""

    sizes: tuple
    batch: int
    loss: str
    solver: str
    lr: float

    def layers(self):
        """The initial weights (out, in) and biases (out,), float32, the same for all libraries."""
        rng = np.random.default_rng(0)
        return [(rng.normal(0, (2 / a) ** 0.5, (b, a)).astype(np.float32), rng.normal(0, 0.01, b).astype(np.float32))
                for a, b in zip(self.sizes, self.sizes[1:], strict=False)]

    def data(self):
        """A batch of made-up inputs and targets (labels for cross-entropy)."""
        rng = np.random.default_rng(1)
        x = rng.normal(0, 1, (self.batch, self.sizes[0])).astype(np.float32)
        if self.loss == "cross_entropy":
            return x, rng.integers(0, self.sizes[-1], self.batch)
        return x, rng.normal(0, 1, (self.batch, self.sizes[-1])).astype(np.float32)

    def cygrad(self, fresh_gradients=False):
        """cygrad's Trainer."""
        return cygrad_trainer(self, fresh_gradients)

    def torch(self):
        """PyTorch's Trainer."""
        return torch_trainer(self)


def cygrad_trainer(problem, fresh_gradients=False, tensor=None):
    """cygrad's. fresh_gradients: set every .grad to None before a step instead of overwriting it."""
    import cygrad as cg

    tensor = tensor or cg.tensor
    layers = [(tensor(w), tensor(b)) for w, b in problem.layers()]
    parameters = [p for layer in layers for p in layer]
    for p in parameters:
        p.attach_grad()
    solver = cg.optim.Sgd(problem.lr) if problem.solver == "sgd" else cg.optim.Adam(problem.lr)
    solver.set_parameters(parameters)
    entropy = problem.loss == "cross_entropy"
    *hidden, (last_w, last_b) = layers

    def loss_of(x, target):
        for w, b in hidden:
            x = cg.relu(cg.linear(x, w, b))
        if entropy:
            return cg.cross_entropy(cg.linear(x, last_w, last_b), target)
        d = cg.linear(x, last_w, last_b) - target
        return (d * d).mean()

    def step(x, target):
        if fresh_gradients:
            for p in parameters:
                p.grad = None
        with cg.record():
            loss = loss_of(x, target)
        loss.backward()
        solver.update()
        return loss

    return Trainer(step, cg.tensor, lambda loss: loss.item())


def torch_trainer(problem, **options):
    """PyTorch's. `options` are those of its optimizer (foreach, fused)."""
    import torch
    from torch.nn import functional as F

    layers = [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in problem.layers()]
    parameters = [p.requires_grad_() for layer in layers for p in layer]
    make = torch.optim.SGD if problem.solver == "sgd" else torch.optim.Adam
    optimizer = make(parameters, lr=problem.lr, **options)
    compute = F.cross_entropy if problem.loss == "cross_entropy" else F.mse_loss
    *hidden, (last_w, last_b) = layers

    def step(x, target):
        optimizer.zero_grad()
        h = x
        for w, b in hidden:
            h = F.relu(F.linear(h, w, b))
        loss = compute(F.linear(h, last_w, last_b), target)
        loss.backward()
        optimizer.step()
        return loss

    return Trainer(step, torch.tensor, lambda loss: loss.item())


def numpy_trainer(problem):
    """By hand in NumPy: the computations of a graph, without a graph."""
    layers = [(w.copy(), b.copy()) for w, b in problem.layers()]
    adam = problem.solver == "adam"
    states = [[(np.zeros_like(p), np.zeros_like(p)) for p in layer] for layer in layers] if adam else None
    lr, beta1, beta2, eps = np.float32(problem.lr), np.float32(0.9), np.float32(0.999), np.float32(1e-8)
    entropy = problem.loss == "cross_entropy"
    count = 0

    def update(p, g, state):
        if not adam:
            p -= lr * g
            return
        m, v = state
        m *= beta1
        m += (1 - beta1) * g
        v *= beta2
        v += (1 - beta2) * (g * g)
        rate = np.float32(problem.lr * (1 - 0.999**count) ** 0.5 / (1 - 0.9**count))
        p -= rate * m / (np.sqrt(v) + eps)

    def step(x, target):
        nonlocal count
        count += 1
        kept, h = [], x
        for k, (w, b) in enumerate(layers):
            kept.append(h)
            h = h @ w.T
            h += b
            if k < len(layers) - 1:
                np.maximum(h, 0, out=h)
        if entropy:
            h -= h.max(1, keepdims=True)
            e = np.exp(h)
            total = e.sum(1, keepdims=True)
            rows = np.arange(len(h))
            loss = (np.log(total[:, 0]) - h[rows, target]).mean()
            g = e / total
            g[rows, target] -= 1
            g /= len(h)
        else:
            g = h - target
            loss = (g * g).mean()
            g *= np.float32(2 / g.size)
        for k in range(len(layers) - 1, -1, -1):
            w, b = layers[k]
            dw, db = g.T @ kept[k], g.sum(0)
            if k:
                g = g @ w
                g *= kept[k] > 0
            update(w, dw, states and states[k][0])
            update(b, db, states and states[k][1])
        return loss

    return Trainer(step, np.array, float)


def trainers(libraries, problem, variants=()):
    """By peer, a function that makes a new trainer: for each library, for cygrad's layers, and for PyTorch's `variants`
    (name, options)."""
    made = {}
    if "cygrad" in libraries:
        from benchmarks.layers import layers_trainer

        made["cygrad"] = lambda: cygrad_trainer(problem)
        made[LAYERS] = lambda: layers_trainer(problem)
    if "PyTorch" in libraries:
        made["PyTorch"] = lambda: torch_trainer(problem)
        for name, options in variants:
            made[f"PyTorch {name}"] = lambda options=options: torch_trainer(problem, **options)
    if "NumPy" in libraries:
        made["NumPy"] = lambda: numpy_trainer(problem)
    if "jax.jit" in libraries:
        made["jax.jit"] = lambda: Trainer(*jax_step(problem), float)
    if "HIPS" in libraries:
        made["HIPS autograd"] = lambda: Trainer(*hips_step(problem), float)
    return made


def timed_steps(make, x, target):
    """f(n) takes n steps of a new trainer on one batch. It waits for the last loss, because jax returns before it has
    computed it."""
    trainer = make()
    x, target = trainer.tensor(x), trainer.tensor(target)

    def run(n):
        for _ in range(n):
            loss = trainer.step(x, target)
        trainer.read(loss)

    return run


def losses(make, x, target, steps=5):
    """The losses of a new trainer's first steps. Equal losses mean equal gradients and updates."""
    trainer = make()
    x, target = trainer.tensor(x), trainer.tensor(target)
    return [np.array([trainer.read(trainer.step(x, target)) for _ in range(steps)])]
