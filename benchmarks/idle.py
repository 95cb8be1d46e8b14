"""python -m benchmarks.idle: the first call after idleness and the calls that follow it, with two threads.

The threads of a library spin for a while after a job (OpenMP's for 10 ms, OpenBLAS's for 100) and then sleep. The next
job has to wake them up. cygrad must not take this for a busy machine (docs/decisions/0012-threads-back-off.md), so the
same is measured on a busy one: next to a process that spins for every CPU. The libraries have processes of their own,
in turn. The tables are written to idle.md, the picture to idle.svg."""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import busy, machine, work
from benchmarks.goals import IDLE
from benchmarks.ranks import BUSY, micro, used
from benchmarks.separate import ask
from benchmarks.timing import busy_seconds

WORKS = ("matmul 512", "add, 1M numbers")       # of busy.py
ALONE, BESIDE = "alone", "beside one for every CPU"
SPEC = {"idle": [0, 1, 10, 60, 300], "rounds": 3, "seconds": 0.03}
PROCESSES = 2


# ---- in the process of a library -------------------------------------------------------------------------------------

def child(spec):
    """Measure one library. Returns the kernels of OpenBLAS, and the calls: work -> milliseconds of idleness -> for each
    round the seconds of the first call, of those that follow, and their number."""
    name = spec["library"]
    work.set_threads([name], busy.THREADS)
    runs = {key: f for key, f in busy.works(name).items() if key in WORKS}
    work.agree(name, {"NumPy": [np.asarray(busy.works("NumPy")[key]()) for key in WORKS],
                      name: [np.asarray(runs[key]()) for key in WORKS]}, 1e-3)
    for run in runs.values(): following(run, spec["seconds"])
    calls = {key: {str(idle): [] for idle in spec["idle"]} for key in WORKS}
    for _ in range(spec["rounds"]):
        for key, run in runs.items():
            for idle in spec["idle"]:
                if idle: time.sleep(idle / 1e3)
                start = perf_counter()
                run()
                first = perf_counter() - start
                calls[key][str(idle)].append([first, *following(run, spec["seconds"])])
    return {"kernels": kernels(), "calls": calls}


def following(run, seconds):
    """Call it for so many seconds. Returns the time that it took, and the number of calls."""
    n, start = 0, perf_counter()
    while (now := perf_counter()) < start + seconds or not n:
        run()
        n += 1
    return now - start, n


def kernels():
    """The kernels that each OpenBLAS in this process has selected for the CPU."""
    from threadpoolctl import threadpool_info

    return sorted({pool["architecture"] for pool in threadpool_info() if pool.get("architecture")})


# ---- the page --------------------------------------------------------------------------------------------------------

def alone(rounds):
    """(first call, those that follow) in seconds, of the rounds of a work: medians."""
    return statistics.median(r[0] for r in rounds), statistics.median(r[1] / r[2] for r in rounds)


def beside(rounds):
    """The same on a busy machine: means over all calls, because medians would miss rare delays."""
    return statistics.mean(r[0] for r in rounds), sum(r[1] for r in rounds) / sum(r[2] for r in rounds)


def figures(found, mode):
    """work -> idleness -> library -> what alone() or beside() returns."""
    middle, calls = alone if mode == ALONE else beside, found["calls"][mode]
    return {key: {idle: {name: middle(calls[name][key][idle]) for name in calls} for idle in times}
            for key, times in next(iter(calls.values())).items()}


def tables(found, others):
    """The page. `others`: CPUs that other programs used during the part on a quiet machine, or None."""
    lines = [f"# After idleness\n\nMeasured on {machine.cpu_name()}, {os.cpu_count()} CPUs, two threads (NumPy adds on "
             "one): the first call after idleness, and the mean of the calls that follow it.\n",
             "BLAS: " + ", ".join(f"{used} ({name})" for name, used in machine.blas().items()) +
             f"; kernels of OpenBLAS: {', '.join(found['kernels'])}.\n"]
    if others is not None and others > BUSY:
        lines += [f"Other programs used {others:.1f} CPUs meanwhile; measure again on a quiet machine.\n"]
    for mode, heading in ((ALONE, "On a quiet machine (medians)"),
                          (BESIDE, "Next to a process that spins for every CPU (means)")):
        lines += [f"## {heading}\n"]
        for key, times in figures(found, mode).items():
            names = list(next(iter(times.values())))
            lines += [f"| {key}, idle before | " + " | ".join(f"{n}: first | following" for n in names) +
                      " | cygrad / NumPy: first | following | goal | reached |",
                      "|---:|" + "---:|" * (2 * len(names) + 3) + "---|"]
            for idle, of in times.items():
                first, rest = (mine / theirs for mine, theirs in zip(of["cygrad"], of["NumPy"], strict=True))
                reached = rest <= IDLE and (first <= IDLE or mode == BESIDE)
                lines += [f"| {idle} ms | " + " | ".join(micro(t) for pair in of.values() for t in pair) +
                          f" | {first:.2f} | {rest:.2f} | {IDLE} | {'yes' if reached else 'no'} |"]
            lines += [""]
    return "\n".join([*lines, NOTE])


NOTE = """\
The goal is for the first call and for those that follow it; on the busy machine for the latter, because a first call
may be one of the few that try several threads again, and wait for a time slice of another program.

![The time of calls after idleness](idle.svg)
"""


def draw(found, path):
    """A panel for each work and mode: the time over the idleness, by library; dashed: the calls that follow."""
    from benchmarks.pictures import GRID, PEERS, plot

    pyplot = plot()
    figure, panels = pyplot.subplots(2, len(WORKS), figsize=(8, 5.2), sharex=True, sharey="col")
    for row, mode, where in zip(panels, (ALONE, BESIDE), ("quiet machine", "busy machine"), strict=True):
        for axes, (key, times) in zip(row, figures(found, mode).items(), strict=True):
            for name in next(iter(times.values())):
                for k, style in ((0, "-"), (1, "--")):
                    axes.plot(range(len(times)), [of[name][k] * 1e3 for of in times.values()], style, marker="o",
                              markersize=3, color=PEERS[name], label=f"{name}: {'following' if k else 'first'}")
            axes.set_yscale("log")
            axes.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50], ["0.1", "0.2", "0.5", *"125", "10", "20", "50"])
            axes.set_yticks([], minor=True)
            axes.set_ylim(0.05, 100)
            axes.set_xticks(range(len(times)), times)
            axes.set_title(f"{key}, {where}")
            axes.grid(axis="y", color=GRID, linewidth=0.6)
    for axes in panels[1]: axes.set_xlabel("ms of idleness before the first call")
    for row in panels: row[0].set_ylabel("ms per call")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=8)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


# ---- the command -----------------------------------------------------------------------------------------------------

def gather(mode, spec, processes):
    """What child() finds: the kernels of OpenBLAS, the calls by library, and the CPUs that other programs used
    meanwhile (None: unknown). The libraries take turns."""
    kernels, calls = set(), {}
    with busy.spinning(busy.SPINNERS[mode]):
        begun, spent, own = perf_counter(), busy_seconds(), used()
        for _ in range(processes):
            for name in work.installed(busy.LIBRARIES):
                answer = ask("benchmarks.idle", spec | {"library": name}, work.environment(busy.THREADS))
                kernels.update(answer["kernels"])
                for key, times in answer["calls"].items():
                    for idle, pairs in times.items():
                        calls.setdefault(name, {}).setdefault(key, {}).setdefault(idle, []).extend(pairs)
        others = spent and max(0.0, (busy_seconds() - spent - used() + own) / (perf_counter() - begun))
    return sorted(kernels), calls, others


def measure(spec, processes):
    """(kernels and calls in both modes, the CPUs that other programs used on the quiet machine or None)"""
    kernels, alone, others = gather(ALONE, spec, processes)
    return {"kernels": kernels, "calls": {ALONE: alone, BESIDE: gather(BESIDE, spec, processes)[1]}}, others


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__.split("\n")[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is written "
                        "(default %(default)s; make bench writes benchmarks/results)")
    args = parser.parse_args(argv)
    if args.child:
        json.dump(child(json.loads(args.child)), sys.stdout)
        return
    found, others = measure(SPEC, PROCESSES)
    args.output.mkdir(parents=True, exist_ok=True)
    text = tables(found, others)
    (args.output / "idle.md").write_text(text)
    draw(found, args.output / "idle.svg")
    print(text)


if __name__ == "__main__":
    main()
