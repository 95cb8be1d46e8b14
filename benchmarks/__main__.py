"""python -m benchmarks: measure, write results.json, results.md and the pictures."""

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter

from benchmarks import collect, machine, work
from benchmarks.compare import moved
from benchmarks.pictures import draw
from benchmarks.report import write


def comma_list(allowed):
    def read(text):
        got = [part.strip() for part in text.split(",") if part.strip()]
        wrong = [part for part in got if part not in allowed]
        if wrong or not got:
            raise argparse.ArgumentTypeError(f"wanted some of {', '.join(allowed)}, with commas; got {text!r}")
        return got

    return read


def thread_list(text):
    got = text.split(",")
    if not all(part.isdigit() and int(part) > 0 for part in got):
        raise argparse.ArgumentTypeError(f"wanted whole numbers of at least 1, with commas; got {text!r}")
    return [int(part) for part in got]


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="cygrad beside PyTorch, NumPy, jax and "
                                     "HIPS autograd on the same work; the modules' docstrings say what each row does")
    names = list(work.ROWS)
    parser.add_argument("--rows", type=comma_list(names), default=names, help="of " + ",".join(names))
    parser.add_argument("--threads", type=thread_list, default=[1, 2], help="thread counts, for the rows that use "
                        "threads (default 1,2)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller work, jax and HIPS "
                        "autograd only where imports are measured: a look in two minutes")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="directory of what is written")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="say what moved against these results")
    parser.add_argument("--render", action="store_true", help="measure nothing: write tables and pictures from the "
                        "results.json that is there")
    return parser.parse_args(argv)


def say(text):
    print(text, file=sys.stderr, flush=True)


def main(argv=None):
    args = arguments(argv)
    path = args.output / "results.json"
    if args.compare and not args.compare.exists():
        sys.exit(f"--compare: there is no file {args.compare}")
    old = json.loads(args.compare.read_text()) if args.compare else None
    if args.render:
        if not path.exists():
            sys.exit(f"--render: there is no {path}; measure first")
        results = json.loads(path.read_text())
    else:
        start, load = perf_counter(), machine.load()
        measured = collect.run(args.rows, args.threads, args.quick, say)
        results = {"machine": machine.describe(), "quick": args.quick, "seconds": round(perf_counter() - start),
                   "load": [load, machine.load()], "results": measured}
        args.output.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n")
    pictures = draw(results, args.output)
    text = write(results, pictures)
    (args.output / "results.md").write_text(text)
    print(text)
    if old:
        print(moved(old, results))


if __name__ == "__main__":
    main()
