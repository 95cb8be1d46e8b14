"""python -m benchmarks: measure, write results.json, results.md and the pictures."""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter

from benchmarks import collect, machine, stored, work
from benchmarks.compare import entries, moved, settings
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
        raise argparse.ArgumentTypeError(f"wanted integers of at least 1, with commas; got {text!r}")
    return [int(part) for part in got]


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="cygrad, PyTorch, NumPy, jax and "
                                     "HIPS autograd on the same work; the docstrings of the modules describe the rows")
    names = list(work.ROWS)
    parser.add_argument("--rows", type=comma_list(names), default=names, help="of " + ",".join(names))
    parser.add_argument("--threads", type=thread_list, default=[1, 2], help="thread counts, for rows that use "
                        "threads (default 1,2)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller work, jax and HIPS "
                        "autograd only for imports; takes two minutes")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="output directory "
                        "(default %(default)s; make bench writes benchmarks/results)")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="list the changes since these results")
    parser.add_argument("--render", action="store_true", help="measure nothing; write tables and pictures from the "
                        "existing results.json")
    return parser.parse_args(argv)


def say(text):
    print(text, file=sys.stderr, flush=True)


def results_of(option, path):
    """The results of an earlier run. Ends the program if there are none."""
    try:
        results = json.loads(path.read_text())
        entries(results), settings(results)
    except FileNotFoundError:
        sys.exit(f"{option}: there is no file {path}; measure first")
    except (OSError, ValueError, KeyError, TypeError) as e:
        sys.exit(f"{option}: {path} has no results of python -m benchmarks: {type(e).__name__}: {e}")
    return results


def main(argv=None):
    args = arguments(argv)
    path = args.output / "results.json"
    old = results_of("--compare", args.compare) if args.compare else None
    if args.render:
        results = results_of("--render", path)
    else:
        try:                                        # check before measuring for minutes
            args.output.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=args.output).close()
        except OSError as e:
            sys.exit(f"--output: nothing can be written into {args.output}: {e}")
        start, load = perf_counter(), machine.load()
        measured = collect.run(args.rows, args.threads, args.quick, say)
        results = {"machine": machine.describe(), "quick": args.quick, "seconds": round(perf_counter() - start),
                   "load": [load, machine.load()], "results": measured}
        path.write_text(stored.text_of(results))
        results = stored.reduced(results)
    pictures = draw(results, args.output)
    text = write(results, pictures)
    (args.output / "results.md").write_text(text)
    print(text)
    if old:
        print(moved(old, results))


if __name__ == "__main__":
    main()
