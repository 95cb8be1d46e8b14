"""A small multilayer perceptron: 2-16-16-1 with relu, batch 100, float32, made-up data.

One step is forward, mean squared error, backward and the update of plain SGD. The data is a tensor that was made
before. PyTorch's optimizer is torch.optim.SGD as installed, and with foreach=True. NumPy's is written by hand,
forward and backward, and is what a machine without a graph does. The learning rate is 1e-6 while timing, so that
thousands of steps leave the model where it was; before, five steps at 0.05 must give every peer the same losses."""

from dataclasses import replace

from benchmarks.models import Problem, losses, trainers
from benchmarks.timing import repeat
from benchmarks.work import Case

THREADS = None
PROBLEM = Problem((2, 16, 16, 1), 100, "mse", "sgd", 0.05)
VARIANTS = (("foreach", dict(foreach=True)),)


def timed(make, x, target):
    trainer = make()
    x, target = trainer.tensor(x), trainer.tensor(target)
    return repeat(lambda: trainer.step(x, target))


def cases(libraries, quick):
    """The step."""
    x, target = PROBLEM.data()
    checked = trainers(libraries, PROBLEM, VARIANTS)
    slow = trainers(libraries, replace(PROBLEM, lr=1e-6), VARIANTS)
    return [Case("step", "us", {peer: timed(make, x, target) for peer, make in slow.items()},
                 {peer: lambda make=make: losses(make, x, target) for peer, make in checked.items()})]
