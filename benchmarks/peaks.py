"""The peak of a training step is the largest number of bytes that are live at once above data and parameters, with
`.grad` None before the step: gradients, tensors saved for backward, solver states, workspace. The page of memory
compares it with its liveness bound.

Everything counts from the construction of the optimizer, over three steps of a perceptron with relu or of the nets of
other rows. Data and parameters are allocated before. cygrad's figure is its own exact count of requested bytes, at the
moment when most were live, by category. PyTorch's is exact too: the highest running sum of the [memory] events of its
profiler; its zero_grad sets `.grad` to None. So do *cygrad (.grad None)*, which is the line of the peak, and
*cygrad.nn*, the model in layers, by the solver's zero_grad() before a step. In the line *cygrad* nothing does: each
backward overwrites the gradients of the step before, which stay allocated and are in the figure. Resident: the highest
resident memory during the steps minus that before and minus the parameters, in a separate pass without profiler. It is
omitted where it would be noise.
"""

import gc
import os
from dataclasses import replace
from pathlib import Path

from benchmarks import gpt, sequences, table
from benchmarks.convolutions import Block, Network
from benchmarks.million import resident_bytes
from benchmarks.models import Problem
from benchmarks.nets import Net
from benchmarks.work import FRESH, LAYERS, library

THREADS = 1
LIBRARIES = ("cygrad", "PyTorch")
STEPS = 3
CATEGORIES = ("optimizer", "gradients", "saved", "workspace", "other")
PEERS = ("cygrad", FRESH, LAYERS, "PyTorch")
SMALL = Problem((64, 32, 10), 8, "cross_entropy", "adam", 1e-3)
PROBLEMS = {
    "B: 2-16-16-1, batch 100, SGD": Problem((2, 16, 16, 1), 100, "mse", "sgd", 1e-3),
    "C: 64-128-64-10, batch 64, Adam": Problem((64, 128, 64, 10), 64, "cross_entropy", "adam", 1e-3),
    "D: 784-1024-1024-10, batch 256, Adam": Problem((784, 1024, 1024, 10), 256, "cross_entropy", "adam", 1e-3),
    "E: LeNet, 28x28, batch 64, SGD": Network(1e-3),
    "E: conv block, 32 to 64 channels": Block(),
    "64 layers of 1024, batch 512, SGD": Problem((1024,) * 65, 512, "mse", "sgd", 1e-6),
    "F: GPT, Adam": gpt.NET,
    "G: LSTM": sequences.NET,
    "G: LSTM of cells": replace(sequences.NET, cells=True),
    "L: table, dense gradient": table.NET,
    "L: table, sparse gradient": replace(table.NET, sparse=True),
}
FULL = tuple(PROBLEMS)
QUICK = FULL[:1]


def parts(libraries, quick):
    """Each problem for each peer. The block of row E has no layers."""
    return [(peer, name) for name in (QUICK if quick else FULL) for peer in PEERS
            if library(peer) in libraries and (peer != LAYERS or not isinstance(PROBLEMS[name], Block))]


def measure(peer, name, quick):
    """The peaks of one problem, and the losses of its steps."""
    problem = PROBLEMS[name]
    parameters = parameter_bytes(problem)
    if peer == "PyTorch":
        resident = resident_peak(torch_steps, problem, parameters)
        peak, details, values = torch_peak(problem)
    else:
        resident = resident_peak(lambda p: cygrad_steps(p, peer), problem, parameters)
        peak, details, values = cygrad_peak(problem, peer, parameters)
    if peak > 8 << 20:
        details["resident"] = resident
    return {name: {"unit": "B", "figure": peak, "details": details}}, [values]


def parameter_bytes(problem):
    if isinstance(problem, Net): return problem.parameter_bytes()
    return sum(w.nbytes + b.nbytes for w, b in problem.layers())


# ---- resident memory -------------------------------------------------------------------------------------------------

def resident_peak(prepare, problem, parameters):
    """The highest resident memory during the steps, minus that before and minus the parameters. None if the system
    cannot reset its peak."""
    prepare(SMALL)()
    gc.collect()
    before = resident_bytes()
    steps = prepare(problem)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    steps()
    status = Path("/proc/self/status").read_text()
    highest = int(status.partition("VmHWM:")[2].split()[0]) << 10
    return max(0, highest - before - parameters)


def cygrad_steps(problem, peer="cygrad"):
    import cygrad as cg

    if peer == LAYERS:
        from benchmarks.layers import layers_trainer as make
    else:
        def make(problem): return problem.cygrad(peer == FRESH)

    return steps_of(make(problem), map(cg.asarray, problem.data()))


def torch_steps(problem):
    import torch

    return steps_of(problem.torch(), map(torch.from_numpy, problem.data()))


def steps_of(trainer, data):
    """A function that takes the steps and returns their losses."""
    x, target = data
    return lambda: [trainer.step(x, target).item() for _ in range(STEPS)]


# ---- exact bytes -----------------------------------------------------------------------------------------------------

def cygrad_peak(problem, peer, parameters):
    """The bytes that are live at the peak without the parameters, in all and by category, and the losses. The data is
    NumPy's memory and is not counted."""
    return cygrad_most(lambda: cygrad_steps(problem, peer), parameters)


def cygrad_most(prepare, parameters):
    """The same for the steps that prepare() returns. A listener reads the counters after every event. The maximum must
    be the peak that the library reports."""
    import cygrad as cg

    gc.collect()
    if cg.memory.stats()["live_bytes"]:
        raise RuntimeError("peaks: bytes are live before the first step; run this part in a process of its own")
    highest = {"live_bytes": 0}

    def look(_):
        nonlocal highest
        now = cg.memory.stats()
        if now["live_bytes"] > highest["live_bytes"]:
            highest = now

    with cg.memory.track() as watched, cg.memory.events(look):
        values = prepare()()
    if watched.peak_bytes != highest["live_bytes"]:
        raise RuntimeError(f"peaks: the counters' peak is {watched.peak_bytes} bytes, that of the events "
                           f"{highest['live_bytes']}")
    categories = highest["by_category"]
    categories["parameters"] -= parameters
    categories["other"] += categories.pop("parameters")
    return watched.peak_bytes - parameters, {"by_category": categories}, values


def torch_peak(problem):
    return torch_most(lambda: torch_steps(problem))


def torch_most(prepare):
    """The highest running sum of the profiler's memory events."""
    import torch

    os.environ["KINETO_LOG_LEVEL"] = "5"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiled:
        values = prepare()()
    events = [(e.start_ns(), e.nbytes()) for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = peak = 0
    for _, nbytes in sorted(events, key=lambda event: event[0]):
        live += nbytes
        peak = max(peak, live)
    return peak, {}, values
