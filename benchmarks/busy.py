"""Two threads on a busy machine: the same work alone and next to processes that spin.

Threads synchronize at the end of a parallel loop. If another program uses a CPU, the last thread arrives milliseconds
late. Each figure is the mean over a second, because a median would miss rare delays. The libraries run in processes of
their own, in turn: *alone*, *beside one* process that spins, and beside one for *every* CPU. Not part of a quick
run."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
from time import perf_counter

import numpy as np

from benchmarks.work import Gathered, agree, environment, set_threads

THREADS = 2
LIBRARIES = ("cygrad", "PyTorch", "NumPy")
ROUNDS, SECONDS = 3, 1.0
ALONE = "cygrad one thread"      # for comparison: two threads should not be much slower
SPINNERS = {"alone": 0, "beside one that spins": 1, "beside one for every CPU": os.cpu_count() or 1}


def works(name):
    """name -> a function that does the work with a library and returns the result."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 1 << 20)).astype(np.float32)
    m = rng.uniform(-1, 1, (512, 512)).astype(np.float32)
    if name == "PyTorch":
        import torch as library

        x, y, w = (library.from_numpy(v) for v in (a, b, m))
        total = library.sum
    elif name == "cygrad":
        import cygrad as library

        x, y, w = (library.asarray(v) for v in (a, b, m))
        total = library.sum
    elif name == "NumPy":
        library, x, y, w, total = np, a, b, m, np.sum
    else:
        raise ValueError(f"benchmarks.busy: {name!r} is none of {', '.join(LIBRARIES)}")
    return {"add, 1M numbers": lambda: x + y, "exp, 1M numbers": lambda: library.exp(x),
            "sum, 1M numbers": lambda: total(x), "matmul 512": lambda: w @ w}


def child(name, seconds):
    """Microseconds of each work, in this process."""
    name, threads = ("cygrad", 1) if name == ALONE else (name, THREADS)
    set_threads([name], threads)
    made = works(name)
    agree(name, {"NumPy": [np.asarray(f()) for f in works("NumPy").values()],
                 name: [np.asarray(f()) for f in made.values()]}, 1e-3)
    taken = {}
    for work, f in made.items():
        n, start = 0, perf_counter()
        while (now := perf_counter()) < start + seconds:
            f()
            n += 1
        taken[work] = (now - start) / n * 1e6
    return taken


@contextlib.contextmanager
def spinning(n):
    """A scope during which `n` processes use one CPU each."""
    code = "print(flush=True)\nwhile True: pass"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(n)]
    try:
        for process in started: process.stdout.readline()
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def ask(name, seconds):
    """The answer of a fresh process of a library."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.busy", name, str(seconds)], capture_output=True, text=True,
                          env=os.environ | environment(1 if name == ALONE else THREADS))
    if done.returncode:
        raise RuntimeError(f"benchmarks: the process of {name} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def gather(libraries, quick, say):
    """Rounds over all libraries, each alone and next to spinning processes."""
    if quick: return []
    samples, peers = {}, [*libraries[:1], ALONE, *libraries[1:]]
    for i in range(ROUNDS):
        say(f"busy: {', '.join(peers)}, {i + 1} of {ROUNDS}")
        for beside, n in SPINNERS.items():
            for name in peers:
                with spinning(n): taken = ask(name, SECONDS)
                for work, us in taken.items(): samples.setdefault((work, beside), {}).setdefault(name, []).append(us)
    alone = {work: of for (work, beside), of in samples.items() if beside == "alone"}
    return [Gathered(f"{work}, {beside}", "us", of,
                     {"times alone": {name: statistics.median(taken) / statistics.median(alone[work][name])
                                      for name, taken in of.items()}})
            for (work, beside), of in samples.items()]


if __name__ == "__main__":
    json.dump(child(sys.argv[1], float(sys.argv[2])), sys.stdout)
