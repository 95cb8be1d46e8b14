"""Peaks of a training step in bytes above data and parameters, compared with the least that the step can have live at
once (liveness.py, shapes.py). `.grad` is None before a step, as after PyTorch's zero_grad. One thread.

All three figures are exact. cygrad's is the peak of its counters, checked against its events. PyTorch's is the highest
running sum of the allocations and frees that its profiler reports (profile_memory). The bound is computed from shapes
alone."""

from benchmarks import peaks
from benchmarks.memory import liveness, nets
from benchmarks.memory.shapes import Shapes
from benchmarks.models import Problem
from benchmarks.work import FRESH

PROBLEMS = {
    "2-16-16-1, batch 100, SGD": Problem((2, 16, 16, 1), 100, "mse", "sgd", 1e-3),
    "64-128-64-10, batch 64, SGD": Problem((64, 128, 64, 10), 64, "mse", "sgd", 1e-3),
    "64-128-64-10, batch 64, Adam": Problem((64, 128, 64, 10), 64, "cross_entropy", "adam", 1e-3),
    "784-1024-1024-10, batch 256, Adam": Problem((784, 1024, 1024, 10), 256, "cross_entropy", "adam", 1e-3),
    "16 layers of 512, batch 512, SGD": Problem((512,) * 17, 512, "mse", "sgd", 1e-6),
    **nets.NETS,
}


def bound(problem):
    if isinstance(problem, Problem): return liveness.bound(problem)
    return liveness.most_live(Shapes().program(problem))


def steps(peer, problem):
    """A function that runs some steps and returns their losses."""
    if isinstance(problem, Problem):
        return peaks.cygrad_steps(problem, FRESH) if peer == "cygrad" else peaks.torch_steps(problem)
    step = {"cygrad": nets.Cygrad, "PyTorch": nets.PyTorch}[peer]().trainer(problem)
    return lambda: [step() for _ in range(peaks.STEPS)]


def cygrad_peak(problem):
    """The peak, and the workspace in it."""
    parameters = (liveness.parameter_bytes(problem) if isinstance(problem, Problem)
                  else sum(a.nbytes for a in problem.arrays()[0]))
    peak, details, _ = peaks.cygrad_most(lambda: steps("cygrad", problem), parameters)
    return peak, details["by_category"]["workspace"]


def torch_peak(problem):
    return peaks.torch_most(lambda: steps("PyTorch", problem))[0]


def measure():
    """By step: the bound, both peaks, and the workspace in cygrad's."""
    found = {}
    for name, problem in PROBLEMS.items():
        peak, workspace = cygrad_peak(problem)
        found[name] = {"bound": bound(problem), "cygrad": peak, "PyTorch": torch_peak(problem), "workspace": workspace}
    return found
