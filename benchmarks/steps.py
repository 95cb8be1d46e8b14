"""python -m benchmarks.steps: how a kernel becomes fast, step by step, for chapter 21 of the walkthrough.

Each step does the same work in a better way. It is compared with the step before it in the same process or, if the
kernels themselves differ, in processes of each kind in turn. Before timing, a process compares its results with NumPy
and checks the level of its kernels. The table is written to steps.md."""

import importlib.util
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks import machine
from benchmarks.separate import ask, command
from benchmarks.timing import interleave, repeat
from benchmarks.work import agree

# Numbers that fit into the first-level cache, numbers that fit into no cache, and the shape of a matrix.
FULL = {"small": 1 << 12, "large": 1 << 24, "shape": (4096, 1024), "rounds": 9, "seconds": 0.02}
PROCESSES = 3
EVERYWHERE = ["exp, small", "neg, small"]
TWO_THREADS = ["exp, large", "softmax in one"]


@dataclass
class Step:
    """A timed step: `compute()` must return `wanted()`, with this number of elements."""
    compute: Callable
    wanted: Callable
    elements: int


def steps(small, large, shape):
    """name -> Step, with the kernels and threads of this process."""
    import cygrad as cg

    rng = np.random.default_rng(0)
    a, b, m = (rng.uniform(-1, 1, size).astype(np.float32) for size in (small, large, shape))
    x, y, z = (cg.asarray(v) for v in (a, b, m))
    out = np.empty_like(a)

    def softmax_in_steps():
        shifted = cg.exp(z - cg.max(z, axis=1, keepdims=True))
        return shifted / cg.sum(shifted, axis=1, keepdims=True)

    def softmax():
        e = np.exp(m - m.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return {
        "exp, small": Step(lambda: cg.exp(x), lambda: np.exp(a), a.size),
        "exp, small, NumPy": Step(lambda: np.exp(a, out=out), lambda: np.exp(a), a.size),
        "neg, small": Step(lambda: cg.neg(x), lambda: -a, a.size),
        "exp, large": Step(lambda: cg.exp(y), lambda: np.exp(b), b.size),
        "neg, large": Step(lambda: cg.neg(y), lambda: -b, b.size),
        "softmax in five operations": Step(softmax_in_steps, softmax, m.size),
        "softmax in one": Step(lambda: cg.softmax(z), softmax, m.size),
    }


def child(spec):
    """Time the requested steps (None: all). Returns the seconds per element by name. Raises ValueError if a result
    differs from NumPy's, and RuntimeError if the kernels have another level."""
    import cygrad as cg
    from cygrad.kernels import driver

    if driver.level() != spec["level"]:
        raise RuntimeError(f"benchmarks.steps: wanted kernels for {spec['level']}, these are for {driver.level()}")
    cg.set_num_threads(spec["threads"])
    made = steps(spec["small"], spec["large"], spec["shape"])
    made = {name: made[name] for name in spec["names"] or made}
    for name, step in made.items():
        agree(name, {"NumPy": [step.wanted()], "cygrad": [np.asarray(step.compute())]}, 1e-6)
    samples, _ = interleave({name: repeat(step.compute) for name, step in made.items()}, spec["rounds"],
                            spec["seconds"], spec["threads"])
    return {name: statistics.median(taken) / made[name].elements for name, taken in samples.items()}


def built():
    """The levels that are built and that this machine supports, the best last."""
    from cygrad.kernels import cpu

    return [level for level in cpu.LEVELS[: cpu.LEVELS.index(cpu.best_level()) + 1]
            if importlib.util.find_spec(f"cygrad.kernels._{level}")]


def measure(levels, size=FULL):
    """level or "two threads" -> nanoseconds per element by name: medians over processes."""
    best = levels[-1]
    kinds = {level: dict(level=level, threads=1, names=EVERYWHERE if level != best else None) for level in levels}
    kinds["two threads"] = dict(level=best, threads=2, names=TWO_THREADS)
    answers = {who: [] for who in kinds}
    for _ in range(PROCESSES):
        for who, kind in kinds.items():
            answers[who].append(ask("benchmarks.steps", kind | size, {"CYGRAD_LEVEL": kind["level"]}))
    return {who: {name: statistics.median(a[name] for a in taken) * 1e9 for name in taken[0]}
            for who, taken in answers.items()}


def table(found, levels):
    """The steps as a Markdown table."""
    best, two = found[levels[-1]], found["two threads"]
    rows = [(f"exp of 4,096 numbers, {level} kernels", found[level]["exp, small"]) for level in levels]
    rows += [("the same by NumPy", best["exp, small, NumPy"]),
             ("negation of 4,096 numbers", best["neg, small"]),
             ("negation of 16 million", best["neg, large"]), ("exp of 16 million", best["exp, large"]),
             ("the same with two threads", two["exp, large"]),
             ("softmax of 4,096 rows of 1,024 in five operations", best["softmax in five operations"]),
             ("softmax in one", best["softmax in one"]),
             ("the same with two threads", two["softmax in one"])]
    lines = [f"| float32, {machine.cpu_name()} | ns per element |", "|---|---:|"]
    return "\n".join(lines + [f"| {name} | {ns:.3f} |" for name, ns in rows]) + "\n"


def report():
    levels = built()
    return table(measure(levels), levels)


def main(argv=None):
    command("benchmarks.steps", __doc__, argv, report, "steps.md", child)


if __name__ == "__main__":
    main()
