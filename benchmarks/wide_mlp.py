"""A perceptron of wide layers: 784-1024-1024-10 with relu, batch 256, float32, made-up data.

One step is forward, cross-entropy, backward and the update of plain SGD. Seven matrix products take nearly all of the
time, so the machine's limit is the time of their multiply-adds, 2.45 GFLOP. The gradient of the data is not computed.
The learning rate is 1e-6 during timing. Before timing, five steps at 0.01 must give equal losses in all libraries."""

from dataclasses import replace

from benchmarks import limits
from benchmarks.models import Problem, losses, timed_steps, trainers
from benchmarks.work import LIMITS, TRAINERS, Case

THREADS = None
LIBRARIES = (*TRAINERS, LIMITS)
PROBLEM = Problem((784, 1024, 1024, 10), 256, "cross_entropy", "sgd", 0.01)


def flops(problem):
    """The multiplications and additions in the matrix products of a step: one product per layer in forward, and two in
    backward, except for one in the first layer."""
    products = [2 * problem.batch * a * b for a, b in zip(problem.sizes, problem.sizes[1:], strict=False)]
    return 3 * sum(products) - products[0]


def cases(libraries, quick):
    """The machine's rate of multiply-adds, and the step."""
    x, target = PROBLEM.data()
    checked = trainers(libraries, PROBLEM)
    slow = trainers(libraries, replace(PROBLEM, lr=1e-6))
    step = Case("step", "ms", {peer: timed_steps(make, x, target) for peer, make in slow.items()},
                {peer: lambda make=make: losses(make, x, target) for peer, make in checked.items()},
                details=dict(limit="fma", amount=flops(PROBLEM)))
    return limits.cases(libraries, ("fma",)) + [step]
