"""Peaks of a training step in bytes above data and parameters, beside the least that the step can have live at once
(liveness.py). `.grad` is None before a step, as after PyTorch's zero_grad; one thread.

All three are exact. cygrad's is the peak of its counters, which its events must confirm; PyTorch's the highest running
sum of the allocations and frees that its profiler notes (profile_memory); the bound comes from shapes alone."""

from benchmarks import peaks
from benchmarks.memory import liveness
from benchmarks.models import Problem

PROBLEMS = {
    "2-16-16-1, batch 100, SGD": Problem((2, 16, 16, 1), 100, "mse", "sgd", 1e-3),
    "64-128-64-10, batch 64, SGD": Problem((64, 128, 64, 10), 64, "mse", "sgd", 1e-3),
    "64-128-64-10, batch 64, Adam": Problem((64, 128, 64, 10), 64, "cross_entropy", "adam", 1e-3),
    "784-1024-1024-10, batch 256, Adam": Problem((784, 1024, 1024, 10), 256, "cross_entropy", "adam", 1e-3),
    "16 layers of 512, batch 512, SGD": Problem((512,) * 17, 512, "mse", "sgd", 1e-6),
}


def cygrad_peak(problem):
    return peaks.cygrad_peak(problem, True, liveness.parameter_bytes(problem))[0]


def torch_peak(problem):
    return peaks.torch_peak(problem)[0]
