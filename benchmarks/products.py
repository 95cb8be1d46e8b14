"""python -m benchmarks.products: 144 matrix products, beside NumPy (OpenBLAS) and PyTorch (MKL and oneDNN).

48 shapes: those of the layers of rows B to G, 1 to 64 rows, few columns and few terms, squares, and batches. Each has
three products, as a linear layer with weights W (n, k) and images x (m, k): forward x W', the gradient of the images
g W, and the gradient of the weights g' x. All are float32. The figures are GFLOP/s (2 m n k operations), the share of
the machine's rate of multiply-adds in the same run, and the ratio to the faster one of NumPy and PyTorch in the same
rounds. The page is products.md, with one and with two threads."""

import math
import os
import statistics

import numpy as np

from benchmarks import limits, machine, work
from benchmarks.separate import ask, command
from benchmarks.timing import Others, interleave, repeat

PEERS = ("cygrad", "NumPy", "PyTorch")
SIZES = {"rounds": 7, "seconds": 0.008}
WAYS = ("forward", "dX", "dW")
GEOMETRIC, LEAST, FEW, SMALL = 1.15, 0.9, 1.1, 2.0      # the goals: all; each; 1 to 64 rows; squares up to 64
REST = 0.12         # seconds between two libraries on several threads: idle threads of OpenBLAS spin for 0.1 and those
                    # of OpenMP for 0.01, on a CPU that the next library needs
BUSY = 0.1          # CPUs that other programs may use before the page says so

# By family, (batch, m, n, k) of the forward product: a batch of (m, k) times (k, n).
SHAPES = {
    "rows B, C": [(1, 100, 16, 2), (1, 100, 16, 16), (1, 64, 128, 64), (1, 64, 64, 128), (1, 64, 10, 64)],
    "row D": [(1, 256, 1024, 784), (1, 256, 1024, 1024), (1, 256, 10, 1024)],
    "row E": [(1, 64, 120, 400), (1, 64, 84, 120), (1, 64, 10, 84)],
    "row F": [(1, 1024, 384, 128), (1, 1024, 128, 128), (1, 1024, 512, 128), (1, 1024, 128, 512), (1, 1024, 96, 128),
              (32, 128, 128, 32), (32, 128, 32, 128)],
    "row G": [(1, 3200, 512, 128), (1, 32, 512, 128), (1, 32, 2048, 512)],
    "few rows": [(1, m, 1024, 1024) for m in (1, 2, 4, 8, 16, 32, 64)],
    "few columns or terms": [(1, 1024, n, k) for n, k in ((1, 1024), (4, 1024), (16, 1024), (64, 1024), (1024, 4),
                                                          (1024, 16), (1024, 64))],
    "squares": [(1, n, n, n) for n in (16, 32, 48, 64, 128, 256, 512, 1024, 2048)],
    "batches": [(1024, 16, 16, 16), (256, 32, 32, 32), (64, 64, 64, 64), (64, 128, 128, 128)],
}


def title(shape):
    """(1, 2, 3, 4) -> "2 x 3 x 4": rows, columns and terms."""
    batch, *sizes = shape
    return (f"{batch} of " if batch > 1 else "") + " x ".join(map(str, sizes))


# ---- in a process with one number of threads -------------------------------------------------------------------------

def operands(shape):
    """way -> (A, B) with the strides of a linear layer."""
    batch, m, n, k = shape
    rng = np.random.default_rng(0)
    lead = (batch,) if batch > 1 else ()
    x, w, g = (rng.standard_normal((*lead, *size), np.float32) for size in ((m, k), (n, k), (m, n)))
    return {"forward": (x, w.swapaxes(-1, -2)), "dX": (g, w), "dW": (g.swapaxes(-1, -2), x)}


def product(peer, a, b):
    """A function that multiplies once."""
    if peer == "NumPy": return lambda: a @ b
    if peer == "cygrad":
        import cygrad

        a, b = cygrad.asarray(a), cygrad.asarray(b)
    else:
        import torch

        a, b = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: a @ b


def child(spec):
    """Check and time the products of the shapes. Returns the rate of multiply-adds in GFLOP/s, and by way and title the
    seconds of the peers by round."""
    peers = work.installed(PEERS)
    work.set_threads(peers, spec["threads"])
    rate = None
    for case in limits.cases(work.installed([work.LIMITS]), ["fma"]):
        samples, _ = interleave(case.runs, 5, 0.02, spec["threads"])
        rate = case.details["amount"] / statistics.median(samples[work.LIMITS]) / 1e9
    found = {}
    for shape in spec["shapes"]:
        for way, (a, b) in operands(shape).items():
            runs = {peer: product(peer, a, b) for peer in peers}
            work.agree(title(shape), {peer: [np.asarray(run())] for peer, run in runs.items()}, 1e-3)
            found.setdefault(title(shape), {})[way], _ = interleave(
                {peer: repeat(run) for peer, run in runs.items()}, spec["rounds"], spec["seconds"], spec["threads"],
                REST if spec["threads"] > 1 else 0)
    return {"rate": rate, "times": found}


# ---- the page --------------------------------------------------------------------------------------------------------

def speed_up(times):
    """The median over rounds of the best other peer's time through ours. The best is the one with the least median."""
    best = min((peer for peer in times if peer != "cygrad"), key=lambda peer: statistics.median(times[peer]))
    return statistics.median(theirs / ours for theirs, ours in zip(times[best], times["cygrad"], strict=True))


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def chosen(found, shapes):
    """The speed-ups of all three products of the shapes."""
    return [speed_up(times) for shape in shapes for times in found["times"][title(shape)].values()]


def summary(found):
    """The goals and what was reached."""
    everything = chosen(found, [shape for shapes in SHAPES.values() for shape in shapes])
    few = chosen(found, SHAPES["few rows"])
    small = chosen(found, [shape for shape in SHAPES["squares"] if shape[1] <= 64])
    rows = [("all: geometric mean", geometric(everything), GEOMETRIC), ("all: the least", min(everything), LEAST),
            ("1 to 64 rows: geometric mean", geometric(few), FEW),
            ("squares up to 64: geometric mean", geometric(small), SMALL)]
    below = sum(ratio < LEAST for ratio in everything)
    return ["| | reached | goal |", "|---|---:|---:|",
            *(f"| {name} | {reached:.2f} | {goal} |" for name, reached, goal in rows),
            f"\n{below} of {len(everything)} are below {LEAST}."]


def table(found, shapes):
    """A row for each shape: for each way the GFLOP/s of the peers, the share of the peak, and the ratio."""
    peers = list(next(iter(found["times"].values()))["forward"])
    head = [f"{way}: {name}" for way in WAYS for name in (*peers, "of the peak", "ratio")]
    lines = ["| m x n x k | " + " | ".join(head) + " |", "|---|" + "---:|" * len(head)]
    for shape in shapes:
        cells, operations = [], 2e-9 * math.prod(shape)
        for way in WAYS:
            times = found["times"][title(shape)][way]
            speeds = {peer: operations / statistics.median(times[peer]) for peer in peers}
            share = f"{speeds['cygrad'] / found['rate']:.0%}" if found["rate"] else ""
            cells += [*(f"{speed:,.3g}" for speed in speeds.values()), share, f"{speed_up(times):.2f}"]
        lines += [f"| {title(shape)} | " + " | ".join(cells) + " |"]
    return lines


def page(by_threads, others):
    lines = [f"# Matrix products\n\nMeasured on {machine.cpu_name()}, float32, kernels for {machine.vector_level()}.",
             "GFLOP/s; the ratio is of the times of the faster one of NumPy and PyTorch through cygrad's.\n",
             "BLAS: " + ", ".join(f"{used} ({name})" for name, used in machine.blas().items()) + ".\n"]
    if others is not None and others > BUSY:
        lines += [f"Other programs used {others:.1f} CPUs meanwhile; measure again on a quiet machine.\n"]
    for threads, found in by_threads.items():
        rate = f" (multiply-adds: {found['rate']:,.0f} GFLOP/s)" if found["rate"] else ""
        lines += [f"## {threads} thread{'s' if threads > 1 else ''}{rate}\n", *summary(found), ""]
        for family, shapes in SHAPES.items(): lines += [f"### {family}\n", *table(found, shapes), ""]
    return "\n".join(lines)


def report():
    shapes, found, used = [shape for group in SHAPES.values() for shape in group], {}, []
    for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
        with Others() as others:
            found[threads] = ask("benchmarks.products", SIZES | {"shapes": shapes, "threads": threads},
                                 work.environment(threads))
        if others.processors is not None: used.append(max(others.processors - threads, 0.0))
    return page(found, max(used, default=None))


def main(argv=None):
    command("benchmarks.products", __doc__, argv, report, "products.md", child)


if __name__ == "__main__":
    main()
