"""python -m benchmarks.instructions: the instructions of an operation on one element, and where they go.

Valgrind's tool callgrind counts them, so the figures are exact and the same at each run; it has no AVX-512, so the
kernels are those of a lower level, which do not matter for one element. An operation is `y = y * c` in a chain of
1,000: without a graph, recorded, and with its backward pass. Another one is `(x * x).sum()` of four numbers with its
backward pass, in an open scope. The loop around it is counted alone and subtracted. A part is a folder of the package,
by the names of the functions, so cygrad must be built with CYGRAD_SYMBOLS=1. The table is written to
instructions.md."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.separate import command

CHAIN, REPEATED = 1000, 20
LOOP, PLAIN, RECORDED, BACKWARD, SUM = (
    "the loop", "not recorded", "recorded", "forward + backward", "(x * x).sum(), forward + backward")
PARTS = {                                           # name of a part -> what its functions or their file have in them
    "kernels: the loop over the elements": r"kernels/_|_6cygrad_7kernels_",
    "core/store: memory, buffers and layouts": r"_6cygrad_4core_5store_",
    "core/graph: tensors, nodes, slots and the tape": r"_6cygrad_4core_5graph_",
    "core/execute: operands, the executor, recording": r"_6cygrad_4core_7execute_",
    "core/backward: the walk and the turns of the nodes": r"_6cygrad_4core_8backward_",
    "ops: shapes and dtypes, what backward reads, the call of the kernel": r"_6cygrad_3ops_",
    "the rest of cygrad": r"cygrad/_modules|_6cygrad_",
    "Python: its interpreter, arguments, objects": r"",
}
LEAST_NAMED = 0.5           # of cygrad's own instructions, or it was built without symbols


def workloads():
    """name -> (a function, the operations that it makes)."""
    import numpy as np

    import cygrad as cg

    c, x = cg.tensor(np.ones(1, "float32")), cg.tensor(np.ones(1, "float32")).attach_grad()
    v = cg.tensor(np.ones(4, "float32")).attach_grad()

    def loop():
        for _ in range(CHAIN): pass

    def chain():
        y = x
        for _ in range(CHAIN): y = y * c
        return y

    def recorded():
        with cg.record(): return chain()

    def sums():
        with cg.record():
            for _ in range(CHAIN): (v * v).sum().backward()

    return {LOOP: loop, PLAIN: chain, RECORDED: recorded, BACKWARD: lambda: recorded().backward(), SUM: sums}


def child(spec):
    """Run a workload under callgrind: the counts begin after it has run once."""
    import gc

    import cygrad as cg

    cg.set_num_threads(1)
    f = workloads()[spec["name"]]
    f()
    gc.collect()
    gc.disable()
    control("on")
    for _ in range(REPEATED): f()
    control("off")


def control(state):
    """Switch the counting of this process on or off."""
    subprocess.run(["callgrind_control", f"--instr={state}", str(os.getpid())], check=True, capture_output=True)


def counts(text):
    """(instructions by part, whether the functions of cygrad have names), from what callgrind_annotate prints."""
    found, named, own = Counter(), 0, 0
    for number, what in re.findall(r"^ *([\d,]+) +\([^)]*\) +(.+)$", text, re.MULTILINE):
        if "PROGRAM TOTALS" in what: continue
        n = int(number.replace(",", ""))
        found[next(part for part, pattern in PARTS.items() if re.search(pattern, what))] += n
        if "cygrad/_modules" in what:
            own += n
            named += n * ("_6cygrad_" in what)
    return found, named >= LEAST_NAMED * own


def measured(name):
    """The instructions of a workload by part, for one operation. Raises RuntimeError without the tools or symbols."""
    if shutil.which("valgrind") is None:
        raise RuntimeError("benchmarks.instructions: valgrind counts the instructions and is not installed; install it "
                           "with the package manager of the system, such as apt-get install valgrind")
    with TemporaryDirectory() as directory:
        out = Path(directory, "out")
        tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        code = f"from benchmarks.instructions import child; child({{'name': {name!r}}})"
        done = subprocess.run([*tool, sys.executable, "-c", code], capture_output=True, text=True,
                              env=os.environ | {"PYTHONHASHSEED": "0"})
        if done.returncode:
            raise RuntimeError(f"benchmarks.instructions: the process ended with {done.returncode}:\n"
                               f"{done.stderr[-3000:]}")
        text = subprocess.run(["callgrind_annotate", "--threshold=100", out], check=True, capture_output=True,
                              text=True).stdout
    found, named = counts(text)
    if not named:
        raise RuntimeError("benchmarks.instructions: the functions of cygrad have no names; build it with "
                           "CYGRAD_SYMBOLS=1 make build")
    return {part: n / (CHAIN * REPEATED) for part, n in found.items()}


def table(found):
    """The counts by workload as Markdown, without those of the loop."""
    names = [name for name in found if name != LOOP]
    lines = ["| instructions of an operation | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    rest = {name: {part: n - found[LOOP].get(part, 0) for part, n in found[name].items()} for name in names}
    for part in PARTS:
        lines.append(f"| {part} | " + " | ".join(f"{max(rest[name].get(part, 0), 0):,.0f}" for name in names) + " |")
    lines.append("| all | " + " | ".join(f"{sum(rest[name].values()):,.0f}" for name in names) + " |")
    return "\n".join(lines) + "\n"


def report():
    return table({name: measured(name) for name in (LOOP, PLAIN, RECORDED, BACKWARD, SUM)})


def main(argv=None):
    command("benchmarks.instructions", __doc__, argv, report, "instructions.md")


if __name__ == "__main__":
    main()
