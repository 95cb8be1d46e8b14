"""A small multilayer perceptron: 2-16-16-1 with relu, batch 100, float32, made-up data.

One step is forward, mean squared error, backward and the update of plain SGD. The data is a tensor that exists before.
PyTorch's optimizer is torch.optim.SGD, with default settings and with foreach=True. NumPy's forward and backward are
written by hand, without a graph. jax.jit compiles the whole step. HIPS autograd traces the loss written in NumPy. The
learning rate is 1e-6 during timing, so that thousands of steps do not change the model much. Before timing, five steps
at 0.05 must give equal losses in all libraries."""

from dataclasses import replace

from benchmarks.models import Problem, losses, timed_steps, trainers
from benchmarks.work import TRAINERS, Case

THREADS = None
LIBRARIES = (*TRAINERS, "HIPS")
PROBLEM = Problem((2, 16, 16, 1), 100, "mse", "sgd", 0.05)
VARIANTS = (("foreach", dict(foreach=True)),)


def cases(libraries, quick):
    """The step."""
    x, target = PROBLEM.data()
    checked = trainers(libraries, PROBLEM, VARIANTS)
    slow = trainers(libraries, replace(PROBLEM, lr=1e-6), VARIANTS)
    return [Case("step", "us", {peer: timed_steps(make, x, target) for peer, make in slow.items()},
                 {peer: lambda make=make: losses(make, x, target) for peer, make in checked.items()})]
