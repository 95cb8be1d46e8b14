"""Handwritten digits: a perceptron 64-128-64-10 with relu, batch 64, float32, scikit-learn's digits.

*step*: forward, cross-entropy, backward and the update of Adam, on one fixed batch. *epoch of 28 batches*: 28 steps
over the first 1,792 digits, where slicing the batches out of the data is timed too. PyTorch's optimizer is
torch.optim.Adam, with default settings and with fused=True. NumPy's is written by hand. jax's is a function of its
state, compiled with the step. The learning rate is 1e-6 during timing, so that thousands of steps do not change the
model much. Before timing, five steps at 1e-3 must give equal losses in all libraries."""

from dataclasses import replace

import numpy as np

from benchmarks.models import Problem, losses, timed_steps, trainers
from benchmarks.work import TRAINERS, Case

THREADS = None
LIBRARIES = TRAINERS
BATCHES = 28
PROBLEM = Problem((64, 128, 64, 10), 64, "cross_entropy", "adam", 1e-3)
VARIANTS = (("fused", dict(fused=True)),)


def load():
    """The pixels (1797, 64), scaled to 0..1, and the labels (1797,)."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return (digits.data / 16).astype(np.float32), digits.target.astype(np.int64)


def timed_epoch(make, x, labels):
    trainer = make()
    x, labels = trainer.tensor(x), trainer.tensor(labels)
    n = PROBLEM.batch

    def run(epochs):
        for _ in range(epochs):
            for i in range(0, BATCHES * n, n):
                loss = trainer.step(x[i : i + n], labels[i : i + n])
        trainer.read(loss)

    return run


def cases(libraries, quick):
    """The step and, if not quick, the epoch."""
    x, labels = load()
    bx, bl = x[: PROBLEM.batch], labels[: PROBLEM.batch]
    checked = trainers(libraries, PROBLEM, VARIANTS)
    slow = trainers(libraries, replace(PROBLEM, lr=1e-6), VARIANTS)
    values = {peer: lambda make=make: losses(make, bx, bl) for peer, make in checked.items()}
    steps = {peer: timed_steps(make, bx, bl) for peer, make in slow.items()}
    epochs = {peer: timed_epoch(make, x, labels) for peer, make in slow.items()}
    made = [Case("step", "us", steps, values)]
    return made if quick else made + [Case(f"epoch of {BATCHES} batches", "ms", epochs, values)]
