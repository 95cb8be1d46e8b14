"""python -m benchmarks.steps: how a kernel becomes fast, step by step, for chapter 7 of the walkthrough.

Each step is the same work done in a better way, beside the step before it in the same process or, where the kernels
themselves differ, in processes of one round each in turn. Written to benchmarks/results/steps.md."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.timing import interleave

SMALL, LARGE = 1 << 12, 1 << 24     # numbers that fit into the first-level cache, and that fit into none
ROUNDS = 9


def works(threads):
    """name -> f(n), the pieces of work that a process can time, in the kernels that it was started with."""
    import cygrad as cg

    cg.set_num_threads(threads)
    rng = np.random.default_rng(0)
    small, large = (cg.tensor(rng.uniform(-1, 1, n).astype(np.float32)) for n in (SMALL, LARGE))
    matrix = cg.tensor(rng.uniform(-1, 1, (4096, 1024)).astype(np.float32))
    e = np.empty_like(small.numpy())

    def many(f, *args):
        def run(n):
            for _ in range(n): f(*args)
        return run

    def softmax_in_steps(x):
        shifted = cg.exp(x - cg.max(x, axis=1, keepdims=True))
        return shifted / cg.sum(shifted, axis=1, keepdims=True)

    return {
        "exp, 4,096": (many(cg.exp, small), SMALL),
        "exp, 4,096, NumPy": (many(lambda: np.exp(small.numpy(), out=e)), SMALL),
        "neg, 4,096": (many(cg.neg, small), SMALL),
        "exp, 16 million": (many(cg.exp, large), LARGE),
        "neg, 16 million": (many(cg.neg, large), LARGE),
        "softmax in five operations": (many(softmax_in_steps, matrix), matrix.size),
        "softmax in one": (many(cg.softmax, matrix), matrix.size),
    }


def child(spec):
    """Time the works that are asked for; seconds for one element by name."""
    made = works(spec["threads"])
    runs = {name: made[name][0] for name in spec["names"]}
    samples, _ = interleave(runs, spec["rounds"], 0.02, spec["threads"])
    return {name: statistics.median(taken) / made[name][1] for name, taken in samples.items()}


def ask(level, threads, names):
    spec = json.dumps(dict(threads=threads, names=names, rounds=ROUNDS))
    done = subprocess.run([sys.executable, "-m", "benchmarks.steps", "--child", spec], capture_output=True, text=True,
                          env=dict(os.environ, CYGRAD_LEVEL=level), check=True)
    return json.loads(done.stdout)


def measure():
    """level or "threads 2" -> nanoseconds an element by name."""
    from cygrad.kernels import cpu

    here = Path(cpu.__file__).parent
    levels = [level for level in cpu.LEVELS[: cpu.LEVELS.index(cpu.best_level()) + 1]
              if level == "baseline" or (here / level).is_dir()]
    names = list(works(1))
    found = {level: ask(level, 1, names if level == levels[-1] else ["exp, 4,096", "neg, 4,096"]) for level in levels}
    found["two threads"] = ask(levels[-1], 2, ["exp, 16 million", "neg, 16 million", "softmax in one"])
    return {who: {name: seconds * 1e9 for name, seconds in of.items()} for who, of in found.items()}, levels


def table(found, levels):
    """The steps as a Markdown table."""
    best = found[levels[-1]]
    rows = [(f"exp of 4,096 numbers, {level} kernels", found[level]["exp, 4,096"]) for level in levels]
    rows += [("the same by NumPy", best["exp, 4,096, NumPy"]),
             ("negation of 4,096 numbers", best["neg, 4,096"]),
             ("negation of 16 million", best["neg, 16 million"]), ("exp of 16 million", best["exp, 16 million"]),
             ("the same with two threads", found["two threads"]["exp, 16 million"]),
             ("softmax of 4,096 rows of 1,024 in five operations", best["softmax in five operations"]),
             ("softmax in one", best["softmax in one"]),
             ("the same with two threads", found["two threads"]["softmax in one"])]
    lines = ["| float32 | ns an element |", "|---|---:|"]
    return "\n".join(lines + [f"| {name} | {ns:.3f} |" for name, ns in rows]) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__.split("\n")[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    args = parser.parse_args(argv)
    if args.child:
        json.dump(child(json.loads(args.child)), sys.stdout)
        return
    text = table(*measure())
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "steps.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
