"""python -m benchmarks.replay: training steps in eager code and as captured nets, for chapter 15 of the walkthrough.

The steps are those of rows B and C: one step on one batch, on one thread, in one process, beside PyTorch and jax.jit if
they are installed. Before timing, all of them must give equal losses for five steps. The tables are written to nets.md:
times as ratios to eager cygrad, which chapter 15 shows, and the medians."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import digits, machine, small_mlp, work
from benchmarks.models import Trainer, cygrad_trainer, losses, timed_steps, trainers
from benchmarks.timing import Others, interleave, ratios
from benchmarks.work import agree

EAGER, NET, FED = "cygrad, eager", "captured net: Workspace.run", "feed and Workspace.run"
CALLS = "its program alone: Program.run"
SIZES = {"rounds": 21, "seconds": 0.1}
BUSY = 0.1          # CPUs that other programs may use before the tables say so


def captured_trainer(problem, fed=False):
    """The step of `problem` as a net, which runs on the batch of the first call; `fed`: on that of each call."""
    import cygrad as cg

    eager, workspace, net = cygrad_trainer(problem), cg.graph.Workspace(), None

    def step(x, target):
        nonlocal net
        if net is None or fed:
            workspace.feed("x", x)
            workspace.feed("target", target)
        if net is None: net = cg.graph.Net.capture(eager.step, x, target)
        workspace.run(net)
        return net

    return Trainer(step, cg.tensor, lambda net: workspace.fetch(net.outputs[0]).item())


def program_trainer(problem):
    """The same without a workspace."""
    from cygrad.core.execute.program import Program

    eager, program = cygrad_trainer(problem), None

    def step(x, target):
        nonlocal program
        if program is None: program = Program(eager.step, x, target)
        return program.run(x, target)

    return Trainer(step, eager.tensor, eager.read)


def peers(libraries, problem):
    """By name, a function that makes a new trainer."""
    wanted = trainers(libraries, problem)
    made = {EAGER: wanted["cygrad"], NET: lambda: captured_trainer(problem),
            FED: lambda: captured_trainer(problem, fed=True), CALLS: lambda: program_trainer(problem)}
    return made | {name: wanted[name] for name in ("PyTorch", "jax.jit") if name in wanted}


def workloads():
    """name -> (problem, inputs, targets)."""
    x, labels = (part[: digits.PROBLEM.batch] for part in digits.load())
    return {"MLP 2-16-16-1, batch 100, Sgd": (small_mlp.PROBLEM, *small_mlp.PROBLEM.data()),
            "MLP 64-128-64-10, batch 64, Adam": (digits.PROBLEM, x, labels)}


def child(spec):
    """Check and time all steps on one thread. Returns the samples in seconds by workload and name."""
    libraries = work.installed(["cygrad", "PyTorch", "jax.jit"])
    work.set_threads(libraries, 1)
    found = {}
    for name, (problem, x, target) in workloads().items():
        agree(name, {peer: losses(make, x, target) for peer, make in peers(libraries, problem).items()}, 1e-4)
        slow = peers(libraries, replace(problem, lr=1e-6))      # so that the model hardly changes
        found[name], _ = interleave({peer: timed_steps(make, x, target) for peer, make in slow.items()},
                                    spec["rounds"], spec["seconds"])
    return found


def ask(spec):
    """The answer of a separate process, whose libraries have one thread."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.replay", "--child", json.dumps(spec)],
                          capture_output=True, text=True, env=os.environ | work.environment(1))
    if done.returncode:
        raise RuntimeError(f"benchmarks.replay: the process ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def tables(found, others):
    """The ratios and the medians as Markdown. `others`: CPUs that other programs used meanwhile, or None."""
    names = list(found)
    columns = "|".join(f" {name} " for name in names)
    ruler = "|---|" + "---:|" * len(names)
    ratio, median = [], []
    for peer in found[names[0]]:
        times = [statistics.median(ratios(found[name][peer], found[name][EAGER])) for name in names]
        ratio.append(f"| {peer} | " + " | ".join(f"{t:.2f}" for t in times) + " |")
        times = [statistics.median(found[name][peer]) * 1e6 for name in names]
        median.append(f"| {peer} | " + " | ".join(f"{t:.1f} us" for t in times) + " |")
    busy = others is not None and others > BUSY
    note = f"Other programs used {others:.1f} CPUs meanwhile; measure again on a quiet machine.\n\n" if busy else ""
    return (f"| time of a step / eager cygrad, {machine.cpu_name()} |{columns}|\n{ruler}\n" + "\n".join(ratio) +
            f"\n\n{note}| median |{columns}|\n{ruler}\n" + "\n".join(median) + "\n")


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__.split("\n")[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is "
                        "written (default %(default)s; make bench writes benchmarks/results)")
    args = parser.parse_args(argv)
    if args.child:
        json.dump(child(json.loads(args.child)), sys.stdout)
        return
    with Others() as others: found = ask(SIZES)
    spare = None if others.processors is None else max(others.processors - 1, 0.0)      # (without the process asked)
    text = tables(found, spare)
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "nets.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
