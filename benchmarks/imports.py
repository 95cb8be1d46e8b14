"""What a program pays before it computes: the time and the resident memory of `import cygrad`, in addition to NumPy's.

Each figure comes from a fresh process that imports NumPy first; the libraries take turns. *import*: the time to import
the library. *first matmul*: the time of the first product of two 2 x 2 matrices. *resident after import* and *after a
first small step*: the memory of the process beyond that after `import numpy`. The step is forward, backward and the
update of a perceptron 2-16-16-1, batch 100; NumPy's is written by hand. *import numpy*: the time of NumPy itself. The
files are in the system's cache and compiled to bytecode, so neither the disk nor the compiler counts."""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.work import Gathered, environment

THREADS = 1
LIBRARIES = ("cygrad", "PyTorch", "HIPS", "jax.jit", "NumPy")
NAMES = {"HIPS": "HIPS autograd", "jax.jit": "jax"}
ROUNDS = {True: 1, False: 15}
CACHE = os.path.join(tempfile.gettempdir(), "benchmarks-bytecode")      # bytecode is compiled once
SHARE = 0.9                     # of its time during which a process must have had a CPU
MEASURES = {"import numpy": ("ms", 1e3), "import": ("ms", 1e3), "first matmul": ("ms", 1e3),
            "resident after import": ("B", 1), "resident after a first small step": ("B", 1)}


def fresh(name):
    """The figures of one fresh process, in seconds and bytes, and the share of its time during which it had a CPU."""
    command = [sys.executable, "-m", "benchmarks.fresh", name]
    settings = os.environ | environment(1) | {"PYTHONPYCACHEPREFIX": CACHE, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"benchmarks: the fresh process of {name} ended with {done.returncode}:\n"
                           f"{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def gather(libraries, quick, say):
    """Rounds over all libraries. A round in which a process had to wait for a CPU is repeated, up to three times the
    number of rounds in all. Then the least disturbed rounds count."""
    rounds, taken = ROUNDS[quick], []
    say(f"import: {rounds} fresh processes for each of {', '.join(libraries)}")
    for name in libraries:
        fresh(name)  # reads the files into the system's cache
    for _ in range(3 * rounds):
        answers = {name: fresh(name) for name in libraries}
        taken.append((min(a["share"] for a in answers.values()), answers))
        if sum(share >= SHARE for share, _ in taken) == rounds:
            break
    kept = sorted(taken, key=lambda pair: -min(pair[0], SHARE))[:rounds]
    disturbed = sum(share >= SHARE for share, _ in kept) < 0.7 * rounds
    made = []
    for name, (unit, scale) in MEASURES.items():
        samples = {NAMES.get(l, l): [answers[l][name] * scale for _, answers in kept if name in answers[l]]
                   for l in libraries}
        samples = {peer: figures for peer, figures in samples.items() if figures}
        made.append(Gathered(name, unit, samples, disturbed=disturbed and unit != "B"))
    return made
