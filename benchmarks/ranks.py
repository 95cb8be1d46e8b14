"""python -m benchmarks.ranks: sums over ranks, and training steps on one and two ranks, with a model of more ranks.

all_reduce is timed at several sizes on two ranks of this machine. A training step (perceptron 784-1024-1024-10, Sgd,
one thread and one batch per rank) is timed without communication, with all_reduce after backward, and with the sums
while backward runs; the three take turns in one job. A line alpha + beta bytes is fitted to the times of all_reduce,
from which a model extrapolates to more ranks. Last, one of two ranks fails while the other one waits for it, and the
time until the job has ended is taken. The tables are written to ranks.md, the picture to ranks.svg."""

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.timing import busy_seconds

ALONE, AFTER, DURING = "without communication", "all_reduce after backward", "sums during backward"
SPEC = {"bytes": [4, 256, 4096, 65536, 1 << 20, 1 << 22, 1 << 24], "rounds": 21, "calls": 100,
        "hidden": 1024, "batch": 256, "pack": 1 << 18, "ends": 7}
RANKS = (1, 2, 4, 8, 16, 32, 64)
ENDS = ("exception", "SIGKILL")
BUSY = 0.1          # CPUs that other programs may use before the tables say so


# ---- in the processes of a job ---------------------------------------------------------------------------------------

def child(spec):
    """Measure on all ranks. Rank 0 writes the figures in seconds to the file spec["out"]."""
    import cygrad as cg

    comm = cg.comm.Communicator()
    if "end" in spec: end(comm, spec)
    found = {"sums": sums(comm, spec), "steps": steps(comm, spec)}
    if comm.rank == 0: Path(spec["out"]).write_text(json.dumps(found))
    comm.barrier()


def sums(comm, spec):
    """bytes -> the median of a call of all_reduce, for float32, in rounds of all sizes."""
    import cygrad as cg

    tensors = {n: [cg.ones(n // 4)] for n in spec["bytes"]}
    took = {n: [] for n in tensors}
    for _ in range(spec["rounds"]):
        for n, x in tensors.items():
            calls = max(1, min(spec["calls"], int(spec["calls"] * 4096 / n)))
            comm.all_reduce(x)
            start = time.perf_counter()
            for _ in range(calls): comm.all_reduce(x, division=True)
            took[n].append((time.perf_counter() - start) / calls)
    return {str(n): statistics.median(t) for n, t in took.items()}


def steps(comm, spec):
    """The medians of a step of each kind, of the forward pass, backward pass and update, and the bytes and packs."""
    import cygrad as cg

    h = spec["hidden"]
    net = cg.nn.Sequential(cg.nn.Linear(784, h), cg.nn.ReLU(), cg.nn.Linear(h, h), cg.nn.ReLU(), cg.nn.Linear(h, 10))
    parameters = list(net.parameters())
    comm.bcast(parameters)
    rng = np.random.default_rng(comm.rank)
    x, target = rng.normal(size=(spec["batch"], 784)).astype("f4"), rng.integers(0, 10, spec["batch"])
    solver, marks = cg.optim.Sgd(parameters, lr=1e-3), []

    def mark(i): marks.append(time.perf_counter())

    def updater(**how):
        return cg.trainers.Updater(
            solver, lambda: cg.cross_entropy(net(x), target), forward_callback_on_start=mark,
            forward_callback_on_finish=mark, backward_callback_on_finish=mark, update_callback_on_finish=mark, **how)

    scope = comm.all_reduce_callback(parameters, spec["pack"])
    kinds = {ALONE: updater(), AFTER: updater(comm=comm, grads=parameters), DURING: updater(comm_callback=scope)}
    took, parts = {kind: [] for kind in kinds}, []
    for k in range(spec["rounds"] + 1):             # the first round warms up
        for kind, one in kinds.items():
            comm.barrier()
            marks.clear()
            one.update(0)
            comm.barrier()
            if k: took[kind].append(time.perf_counter() - marks[0])
            if k and kind == ALONE: parts.append(np.diff(marks).tolist())
    forward, backward, update = map(statistics.median, zip(*parts, strict=True))
    return {"took": {kind: statistics.median(t) for kind, t in took.items()}, "forward": forward, "backward": backward,
            "update": update, "bytes": sum(p.nbytes for p in parameters), "packs": len(scope.packs)}


def end(comm, spec):
    """Rank 1 writes the time of the clock that processes share, and fails, rank 0 waits for it."""
    comm.barrier()
    if comm.rank:
        Path(spec["out"]).write_text(json.dumps(time.monotonic()))
        if spec["end"] == "SIGKILL": os.kill(os.getpid(), signal.SIGKILL)
        raise ArithmeticError("to be timed")
    comm.barrier()


# ---- the model -------------------------------------------------------------------------------------------------------

def fit(sums):
    """(alpha in seconds, beta in seconds per byte) of the time 2 alpha + beta bytes on two ranks, with the least sum of
    squared relative errors, neither below 0."""
    n, t = np.array([float(b) for b in sums]), np.array([*sums.values()])
    a = np.stack([2 / t, n / t], 1)
    alpha, beta = np.linalg.lstsq(a, np.ones(len(t)), rcond=None)[0]
    return max(alpha, 0.0), max(beta, 0.0)


def ring(size, nbytes, alpha, beta):
    """Seconds of a ring all-reduce: 2 (size - 1) messages, one after the other, each of 1 / size of the bytes."""
    return 2 * (size - 1) * (alpha + beta * nbytes / size)


def step(size, steps, alpha, beta):
    """Seconds of a step by the model: (sum after backward, sum during backward). The first pack is ready after its
    share of backward, and the last one cannot begin before the end."""
    alone = steps["forward"] + steps["backward"] + steps["update"]
    nbytes, packs = steps["bytes"], steps["packs"]
    each = ring(size, nbytes / packs, alpha, beta)
    end = 0.0
    for k in range(packs): end = max(end, steps["backward"] * (k + 1) / packs) + each
    return alone + ring(size, nbytes, alpha, beta), steps["forward"] + max(end, steps["backward"]) + steps["update"]


# ---- the page --------------------------------------------------------------------------------------------------------

def tables(found, others):
    """The page, from what child() wrote for one and two ranks. `others`: CPUs that other programs used, or None."""
    one, two = found["1"], found["2"]
    alpha, beta = fit(two["sums"])
    lines = [f"# Ranks\n\nMeasured on {machine.cpu_name()}, {os.cpu_count()} CPUs, one machine, one thread per rank, "
             f"MPI over shared memory. Medians.\n"]
    if others is not None and others > BUSY:
        lines += [f"Other programs used {others:.1f} CPUs meanwhile; measure again on a quiet machine.\n"]
    lines += ["| all_reduce of float32, 2 ranks | time | bytes / time | fitted line |", "|---|---:|---:|---:|"]
    for n, t in two["sums"].items():
        lines += [f"| {int(n):,} bytes | {micro(t)} | {int(n) / t / 1e6:,.1f} MB/s | "
                  f"{micro(2 * alpha + beta * int(n))} |"]
    lines += [f"\nThe line is 2 alpha + beta bytes with alpha = {micro(alpha)} and 1 / beta = "
              f"{1e-6 / beta if beta else float('inf'):,.0f} MB/s.\n"]
    steps = two["steps"]
    lines += [f"| training step, {steps['bytes']:,} bytes of gradients in {steps['packs']} packs | 1 rank | 2 ranks |",
              "|---|---:|---:|"]
    for kind in (ALONE, AFTER, DURING):
        lines += [f"| {kind} | {micro(one['steps']['took'][kind])} | {micro(steps['took'][kind])} |"]
    lines += [f"\nOn two ranks without communication: forward {micro(steps['forward'])}, backward "
              f"{micro(steps['backward'])}, update {micro(steps['update'])}.\n"]
    lines += ["| model: ranks | after backward | during backward | share of a rank's speed, after | during |",
              "|---|---:|---:|---:|---:|"]
    alone = step(1, steps, alpha, beta)[0]
    for size in RANKS:
        after, during = step(size, steps, alpha, beta)
        lines += [f"| {size} | {micro(after)} | {micro(during)} | {alone / after:.2f} | {alone / during:.2f} |"]
    ends = [f"{how} {statistics.median(t):.2f} s ({min(t):.2f} .. {max(t):.2f})" for how, t in found["ends"].items()]
    return "\n".join(lines) + "\n\n" + ASSUMED + (
        f"\nFrom the failure of one of two ranks, for which the other one waits, to the end of the job: "
        f"{', '.join(ends)}.\n")


ASSUMED = """\
![Share of one rank's speed over the number of ranks](ranks.svg)

More than two ranks are not measured: the table is a model. It assumes

- a ring all-reduce, 2 (n - 1) messages of 1 / n of the bytes, each of alpha + beta bytes as fitted above. cygrad sends
  the same bytes directly between the ranks, in two rounds, so a real network may be faster for small sums, and slower
  where it cannot take n - 1 messages at a time;
- that each of these messages costs alpha, which is half the fixed cost of a call on two ranks: the comparison of the
  arguments, Python and two messages. For many ranks this is too much, and it is why many packs lose there;
- that each rank has a core for its backward pass and one for its sums, and that every link has the measured speed,
  which is that of shared memory. Between machines alpha and beta are those of the network;
- that each rank has a batch of its own, of a fixed size (weak scaling), and that backward completes packs evenly.

Where the ranks have no core to spare, as two ranks on two CPUs, sums during backward take their time from backward, and
the measured steps show what that costs.
"""


def micro(seconds):
    return f"{seconds * 1e6:,.1f} us" if seconds < 1e-2 else f"{seconds * 1e3:,.1f} ms"


def draw(found, path):
    """The share of one rank's speed over the number of ranks, by the model, with the measured steps as points."""
    from benchmarks.pictures import GRID, MINE, PEER, plot

    pyplot = plot()
    steps, (alpha, beta) = found["2"]["steps"], fit(found["2"]["sums"])
    sizes, alone = range(1, RANKS[-1] + 1), step(1, steps, alpha, beta)[0]
    figure, axes = pyplot.subplots(figsize=(6, 3.2))
    for kind, colour, k in ((AFTER, PEER, 0), (DURING, MINE, 1)):
        axes.plot(sizes, [alone / step(n, steps, alpha, beta)[k] for n in sizes], color=colour, label=f"{kind}, model")
        axes.plot([2], [steps["took"][ALONE] / steps["took"][kind]], "o", color=colour, label=f"{kind}, measured")
    axes.set_xscale("log", base=2)
    axes.set_xticks(RANKS, [str(n) for n in RANKS])
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("ranks")
    axes.set_title("Speed of each rank, as a share of that of one rank alone")
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


# ---- the command -----------------------------------------------------------------------------------------------------

def job(size, spec, out):
    """Run child() on `size` ranks, which write to the file `out`."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    return subprocess.run(
        [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(size), sys.executable, "-m", "benchmarks.ranks",
         "--child", json.dumps(spec | {"out": str(out)})], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, env=os.environ | {"CYGRAD_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})


def ask(size, spec):
    """What child() writes on `size` ranks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        done = job(size, spec, out)
        if done.returncode:
            raise RuntimeError(f"benchmarks.ranks: {size} ranks ended with {done.returncode}:\n{done.stderr[-3000:]}")
        return json.loads(out.read_text())


def failed(how):
    """Seconds from the failure of one of two ranks to the end of the job."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "time.json"
        done = job(2, {"end": how}, out)
        now = time.monotonic()
        if not done.returncode: raise RuntimeError(f"benchmarks.ranks: a job went on without a rank: {done.stdout}")
        return now - json.loads(out.read_text())


def measure(spec):
    """(what child() found for one and two ranks, the CPUs that other programs used meanwhile or None)"""
    found = {"1": ask(1, spec)}
    begun, busy, own = time.perf_counter(), busy_seconds(), used()
    found["2"] = ask(2, spec)
    others = busy and max(0.0, (busy_seconds() - busy - used() + own) / (time.perf_counter() - begun))
    found["ends"] = {how: [failed(how) for _ in range(spec["ends"])] for how in ENDS}
    return found, others


def used():
    """CPU seconds of this process and of those that it has waited for, the ranks among them."""
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(r.ru_utime + r.ru_stime for r in (mine, theirs))


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__.split("\n")[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is written "
                        "(default %(default)s; make bench writes benchmarks/results)")
    args = parser.parse_args(argv)
    if args.child:
        child(json.loads(args.child))
        return
    found, others = measure(SPEC)
    args.output.mkdir(parents=True, exist_ok=True)
    text = tables(found, others)
    (args.output / "ranks.md").write_text(text)
    draw(found, args.output / "ranks.svg")
    print(text)


if __name__ == "__main__":
    main()
