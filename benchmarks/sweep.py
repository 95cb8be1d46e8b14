"""python -m benchmarks.sweep: the time of every operator beside PyTorch's, at five sizes.

The calls are those of sized.py, each forward alone and with backward, with one thread and with two. Each library has a
process of its own, and they take turns: a sample of one, then a sample of the other. PyTorch's allocator keeps its
memory, because otherwise page faults take most of its time at the largest sizes. A ratio is the median of the ratios of
PyTorch's time to cygrad's: above 1, cygrad is faster. A case ends at the size at which a call would take longer than
LONGEST, and a view at the first size. All ends when the minutes are over, which are divided among the thread counts.
The tables are written to sweep.md, and all ratios to sweep.json. With --only, what sweep.json has of other cases
stays."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import machine, work
from benchmarks.timing import calibrate

SIZES = (16, 1 << 10, 1 << 16, 1 << 20, 1 << 24)
MODES = ("forward", "with backward")
LONGEST = 0.15              # seconds of a call
PEERS = ("cygrad", work.KEPT)
FULL, QUICK = dict(rounds=5, seconds=0.0015), dict(rounds=3, seconds=0.0004)


# ---- the process of a library ----------------------------------------------------------------------------------------

def cygrad_run(case, n, backward):
    """f(k), which calls a case k times, and the shape of its result."""
    import cygrad as cg

    args = [cg.tensor(a) if isinstance(a, np.ndarray) else a for a in case.make(n)]
    variables = [a for a in args if isinstance(a, cg.Tensor) and str(a.dtype).startswith("float")]
    first = result_of(case.ours(*args, **case.kwargs))
    shape = list(first.shape)
    if not backward:
        def run(k):
            for _ in range(k): case.ours(*args, **case.kwargs)

        return run, shape
    head = cg.ones_like(first)
    for v in variables[:case.variables]: v.attach_grad()

    def run_backward(k):
        with cg.record():
            for _ in range(k): result_of(case.ours(*args, **case.kwargs)).backward(head)

    return run_backward, shape


def torch_run(case, n, backward):
    """The same for PyTorch."""
    import torch

    args = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in case.make(n)]
    with torch.no_grad(): first = result_of(case.theirs(*args, **case.kwargs))
    shape = list(first.shape)
    if not backward:
        def run(k):
            with torch.no_grad():
                for _ in range(k): case.theirs(*args, **case.kwargs)

        return run, shape
    head = torch.ones_like(first)
    variables = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()][:case.variables]
    for v in variables: v.requires_grad_()

    def run_backward(k):
        for _ in range(k):
            for v in variables: v.grad = None
            result_of(case.theirs(*args, **case.kwargs)).backward(head)

    return run_backward, shape


def result_of(y):
    """The first of several results."""
    return y if hasattr(y, "backward") else y[0]


def serve(library, threads):
    """Answer the questions of measure() on standard input, one JSON value a line."""
    from benchmarks import sized

    work.set_threads(["cygrad", library], threads)
    cases, _ = sized.cases()
    runs, run = {"cygrad": cygrad_run, work.KEPT: torch_run}, None
    for line in sys.stdin:
        verb, *rest = json.loads(line)
        try:
            if verb == "open":
                number, n, mode, seconds = rest
                run = None                          # free the inputs of the case before
                run, answer = runs[library](cases[number], n, mode == MODES[1])
                answer = [answer, calibrate(run, seconds)]
            else:
                count, = rest
                run((count + 1) // 2)               # untimed: caches are cold after the other library
                start = perf_counter()
                run(count)
                answer = (perf_counter() - start) / count
        except Exception as e:
            answer = f"{type(e).__name__}: {e}"
        print(json.dumps(answer), flush=True)


class Process:
    """A worker process; `ask` sends a question and returns the answer. Raises RuntimeError with a text instead."""

    def __init__(self, library, threads):
        env = os.environ | work.environment(threads) | work.ENVIRONMENTS.get(library, {})
        self.process = subprocess.Popen([sys.executable, "-m", "benchmarks.sweep", "--serve", library, str(threads)],
                                        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, str): raise RuntimeError(answer)
        return answer

    def close(self):
        self.process.communicate()


# ---- measuring -------------------------------------------------------------------------------------------------------

def measure(processes, number, n, mode, rounds, seconds):
    """{"ratio", "seconds" (cygrad's)} of one case."""
    opened = [p.ask("open", number, n, mode, seconds) for p in processes]
    if opened[0][0] != opened[1][0]:
        raise RuntimeError(f"the shapes differ: {opened[0][0]}, {opened[1][0]}")
    samples = [[], []]
    for i in range(rounds):
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            samples[k].append(processes[k].ask("run", opened[k][1]))
    return {"ratio": statistics.median(b / a for a, b in zip(*samples, strict=True)),
            "seconds": statistics.median(samples[0])}


def sizes_of(case, mode, sizes):
    """The sizes at which a case is measured."""
    from benchmarks import sized

    return sizes[:1] if mode == MODES[0] and case.label.split(",")[0] in sized.VIEWS else sizes


def sweep(only, sizes, threads, rounds, seconds, minutes, say):
    """A list of measurements, each with label, size, mode and threads; {label: reason} of what failed."""
    from benchmarks import sized

    cases, without = sized.cases()
    found = []
    for count in threads:
        processes = [Process(peer, count) for peer in PEERS]
        deadline = perf_counter() + 60 * minutes / len(threads)
        for number, case in enumerate(cases):
            if only and not any(word in (case.label, case.row) for word in only): continue
            for mode in MODES[:1 + case.backward]:
                for i, n in enumerate(sizes_of(case, mode, sizes)):
                    if perf_counter() > deadline:
                        without[f"{case.label}, {mode}, from {n}, {count} threads"] = "no time was left"
                        break
                    try: got = measure(processes, number, n, mode, rounds, seconds)
                    except RuntimeError as e:
                        without[f"{case.label}, {mode}, {n}"] = str(e).split("\n")[0][:150]
                        continue
                    found.append(got | dict(label=case.label, row=case.row, size=n, mode=mode, threads=count))
                    say(f"{case.label:28} {n:9} {mode:14} {count} {got['ratio']:6.2f}")
                    if i + 1 < len(sizes) and got["seconds"] * sizes[i + 1] / n > LONGEST: break
        for p in processes: p.close()
    return found, without


# ---- the page --------------------------------------------------------------------------------------------------------

def geometric(found):
    return math.exp(statistics.fmean(math.log(f["ratio"]) for f in found)) if found else math.nan


def summary(found):
    """The table of geometric means and of shares below 1, by size, mode and threads."""
    lines = ["| elements | mode | threads | cases | geometric mean | least | below 1 | below 0.5 |",
             "|---:|---|---:|---:|---:|---:|---:|---:|"]
    keys = dict.fromkeys((f["size"], f["mode"], f["threads"]) for f in sorted(
        found, key=lambda f: (f["threads"], f["mode"], f["size"])))
    for n, mode, count in keys:
        some = [f for f in found if (f["size"], f["mode"], f["threads"]) == (n, mode, count)]
        lines.append(f"| {n:,} | {mode} | {count} | {len(some)} | {geometric(some):.2f} | "
                     f"{min(f['ratio'] for f in some):.2f} | {sum(f['ratio'] < 1 for f in some)} | "
                     f"{sum(f['ratio'] < 0.5 for f in some)} |")
    return "\n".join(lines)


def below_one(found):
    """The list of what is below 1, from the worst: the least ratio of each case, and all of its ratios below 1."""
    by_case = {}
    for f in found:
        if f["ratio"] < 1: by_case.setdefault(f["label"], []).append(f)
    lines = ["| case | least | ratios below 1: elements, mode, threads |", "|---|---:|---|"]
    for label, some in sorted(by_case.items(), key=lambda item: min(f["ratio"] for f in item[1])):
        some.sort(key=lambda f: f["ratio"])
        cells = [f"{f['ratio']:.2f} ({f['size']:,}, {f['mode']}, {f['threads']})" for f in some]
        lines.append(f"| {label} | {some[0]['ratio']:.2f} | {', '.join(cells)} |")
    return "\n".join(lines)


def page(found, without, seconds):
    from cygrad.kernels.driver import level

    below = sum(f["ratio"] < 1 for f in found)
    return (f"# Every operator at five sizes\n\n{machine.cpu_name()}, kernels for {level()}, PyTorch "
            f"{machine.version('torch')} told to keep its memory, float32; the last run took {seconds:.0f} seconds. A "
            f"ratio is PyTorch's time divided by cygrad's. The geometric mean of {len(found)} ratios is "
            f"{geometric(found):.2f}; {below} are below 1.\n\n{summary(found)}\n\n## Below 1\n\n"
            f"{below_one(found)}\n\n## Not compared\n\n"
            + "\n".join(f"- {name}: {reason}" for name, reason in without.items()) + "\n")


def merged(old, new):
    """The measurements `old` without those of the cases of `new`, and `new`."""
    again = {(f["label"], f["threads"]) for f in new}
    return [f for f in old if (f["label"], f["threads"]) not in again] + new


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two sizes, one thread, fewer rounds; takes a minute")
    parser.add_argument("--minutes", type=float, default=20, help="after which it ends (default %(default)g)")
    parser.add_argument("--only", help="rows or labels, with semicolons")
    parser.add_argument("--threads", default="1,2", help="thread counts (default %(default)s)")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is written "
                        "(default %(default)s; make bench writes benchmarks/results)")
    args = parser.parse_args(argv)
    if args.serve: return serve(args.serve[0], int(args.serve[1]))
    args.output.mkdir(parents=True, exist_ok=True)
    sizes, threads = (SIZES[1:3], [1]) if args.quick else (SIZES, [int(t) for t in args.threads.split(",")])
    start = perf_counter()
    found, without = sweep(args.only.split(";") if args.only else (), sizes, threads, minutes=args.minutes,
                           **(QUICK if args.quick else FULL), say=lambda text: print(text, file=sys.stderr, flush=True))
    ratios = args.output / "sweep.json"
    if args.only and ratios.exists(): found = merged(json.loads(ratios.read_text()), found)
    text = page(found, without, perf_counter() - start)
    ratios.write_text(json.dumps(found))
    (args.output / "sweep.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
