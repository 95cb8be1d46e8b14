"""python -m benchmarks.memory: measure, write memory.json, memory.md and the pictures."""

import argparse
import importlib.util
import sys
from pathlib import Path

from benchmarks import machine, stored, work
from benchmarks.memory import faults, kept, overhead, page, peaks, varying


def measure():
    """All figures, by section and name. The exact peaks come first, while nothing else is live."""
    work.set_threads(["cygrad", "PyTorch"], 1)
    by_problem = peaks.measure()
    least = kept.least()
    by_operator = {name: {"cygrad": kept.cygrad_bytes(n, mine), "least": least[name][0], "needs": least[name][1],
                          "PyTorch": None if theirs is None else kept.torch_bytes(n, theirs)}
                   for name, (n, mine, theirs) in kept.samples().items()}
    again = {name: {peer: faults.ask(peer, name) for peer in ("cygrad", "PyTorch")} for name in peaks.PROBLEMS}
    return {"machine": machine.describe(), "peaks": by_problem, "kept": by_operator,
            "left out": kept.left_out(), "more": kept.MORE, "faults": again, "varying": varying.measure(),
            "overhead": overhead.gather()}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="cygrad's memory beside PyTorch's")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks/memory"), help="directory of what is "
                        "written (default %(default)s; make bench writes benchmarks/results/memory)")
    output = parser.parse_args(argv).output
    if importlib.util.find_spec("torch") is None:
        sys.exit("benchmarks.memory compares with PyTorch, which is not installed: pip install 'cygrad[bench]'")
    results = measure()
    output.mkdir(parents=True, exist_ok=True)
    (output / "memory.json").write_text(stored.text_of(results))
    results = stored.reduced(results)
    text = page.write(results, page.draw(results, output))
    (output / "memory.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
