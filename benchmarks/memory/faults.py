"""Minor page faults of a training step in the steady state: `python -m benchmarks.memory.faults PEER NAME`.

A process for each library and model takes 30 steps, then counts the faults (getrusage) of 30 more. The table has the
smallest and the largest figure of three processes: if a library leaves memory to the C library, the figure varies. A
fault is a page of 4 KiB that the system has to provide and clear again."""

import json
import resource
import subprocess
import sys

from benchmarks import work
from benchmarks.memory.peaks import PROBLEMS, steps

PROCESSES = 3
ROUNDS = 10                                         # of peaks.STEPS steps, after the same number that does not count


def count(peer, problem):
    """Faults of one step."""
    take = steps(peer, problem)
    for _ in range(ROUNDS): take()
    before, taken = faults(), 0
    for _ in range(ROUNDS): taken += len(take())
    return (faults() - before) / taken


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def ask(peer, name):
    """The same, from several processes."""
    command = [sys.executable, "-m", "benchmarks.memory.faults", peer, name]
    return [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(PROCESSES)]


if __name__ == "__main__":
    work.set_threads([sys.argv[1]], 1)
    json.dump(count(sys.argv[1], PROBLEMS[sys.argv[2]]), sys.stdout)
