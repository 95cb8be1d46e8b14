"""Commands that measure in processes of their own: a benchmark asks `python -m benchmarks.<name> --child`."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path


def ask(module, spec, environment):
    """What child(spec) of a benchmark returns in a separate process. `environment`: its further variables."""
    done = subprocess.run([sys.executable, "-m", module, "--child", json.dumps(spec)], capture_output=True, text=True,
                          env=os.environ | environment)
    if done.returncode:
        raise RuntimeError(f"{module}: the process for {spec} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def command(module, doc, argv, report, file, child=None):
    """The command line of a benchmark: write the text of report() to `file` in the directory of --output. child(spec):
    what ask() calls in another process."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=doc.split("\n")[0])
    if child is not None: parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is "
                        "written (default %(default)s; make bench writes benchmarks/results)")
    args = parser.parse_args(argv)
    if child is not None and args.child:
        json.dump(child(json.loads(args.child)), sys.stdout)
        return
    text = report()
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / file).write_text(text)
    print(text)
