"""python -m benchmarks.replay: training steps in eager code and as captured nets, for chapter 27 of the walkthrough.

The steps are those of rows B to G: one step on one batch, on one thread, in one process, beside PyTorch, and for
perceptrons jax.jit, if they are installed. Before timing, all of them must give equal losses for five steps. The tables
are written to nets.md: times as ratios to eager cygrad, which chapter 27 shows, and the medians."""

import statistics
from dataclasses import replace

from benchmarks import convolutions, digits, gpt, machine, sequences, small_mlp, wide_mlp, work
from benchmarks.models import Problem, losses, timed_steps, trainers
from benchmarks.parts import Trainer
from benchmarks.separate import ask, command
from benchmarks.timing import Others, interleave, ratios
from benchmarks.work import agree

EAGER, NET, FED = "eager", "Workspace.run", "feed and Workspace.run"
CALLS = "Program.run"
SIZES = {"rounds": 21, "seconds": 0.1}
BUSY = 0.1          # CPUs that other programs may use before the tables say so


def captured_trainer(problem, fed=False):
    """The step of `problem` as a net, which runs on the batch of the first call; `fed`: on that of each call."""
    import cygrad as cg

    eager, workspace, net = problem.cygrad(), cg.graph.Workspace(), None

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

    eager, program = problem.cygrad(), None

    def step(x, target):
        nonlocal program
        if program is None: program = Program(eager.step, x, target)
        return program.run(x, target)

    return Trainer(step, eager.tensor, eager.read)


def peers(libraries, problem):
    """By name, a function that makes a new trainer."""
    made = {EAGER: problem.cygrad, NET: lambda: captured_trainer(problem),
            FED: lambda: captured_trainer(problem, fed=True), CALLS: lambda: program_trainer(problem)}
    if "PyTorch" in libraries: made["PyTorch"] = problem.torch
    if isinstance(problem, Problem) and "jax.jit" in libraries:
        made["jax.jit"] = trainers(["jax.jit"], problem)["jax.jit"]
    return made


def workloads():
    """name -> (problem, its batch and target)."""
    x, labels = (part[:digits.PROBLEM.batch] for part in digits.load())
    made = {"B. MLP 2-16-16-1, batch 100, Sgd": small_mlp.PROBLEM,
            "D. MLP 784-1024-1024-10, batch 256, Sgd": wide_mlp.PROBLEM,
            "E. LeNet, batch 64, Sgd": convolutions.Network(0.01),
            "F. GPT, 4 layers of 128, batch 8 x 128, Adam": gpt.NET,
            "G. LSTM of 128, 100 steps, batch 32, Sgd": sequences.NET}
    found = {name: (problem, *problem.data()) for name, problem in made.items()}
    return found | {"C. MLP 64-128-64-10, batch 64, Adam": (digits.PROBLEM, x, labels)}


def child(spec):
    """Check and time all steps of a workload on one thread. Returns the samples in seconds by name."""
    libraries = work.installed(["cygrad", "PyTorch", "jax.jit"])
    work.set_threads(libraries, 1)
    problem, x, target = workloads()[spec["name"]]
    agree(spec["name"], {peer: losses(make, x, target) for peer, make in peers(libraries, problem).items()}, 1e-4)
    slow = peers(libraries, replace(problem, lr=1e-6))          # so that the model hardly changes
    found, _ = interleave({peer: timed_steps(make, x, target) for peer, make in slow.items()}, spec["rounds"],
                          spec["seconds"])
    return found


def tables(found, others):
    """The ratios and the medians as Markdown. `others`: CPUs that other programs used meanwhile, or None."""
    names = list(dict.fromkeys(peer for times in found.values() for peer in times))
    columns = "|".join(f" {name} " for name in names)
    ruler = "|---|" + "---:|" * len(names)
    ratio, median = [], []
    for name, times in sorted(found.items()):
        shares = [f"{statistics.median(ratios(times[p], times[EAGER])):.2f}" if p in times else "" for p in names]
        ratio.append(f"| {name} | " + " | ".join(shares) + " |")
        spent = [f"{statistics.median(times[p]) * 1e6:,.1f} us" if p in times else "" for p in names]
        median.append(f"| {name} | " + " | ".join(spent) + " |")
    busy = others is not None and others > BUSY
    note = f"Other programs used {others:.1f} CPUs meanwhile; measure again on a quiet machine.\n\n" if busy else ""
    return (f"| time of a step / eager cygrad, {machine.cpu_name()} |{columns}|\n{ruler}\n" + "\n".join(ratio) +
            f"\n\n{note}| median |{columns}|\n{ruler}\n" + "\n".join(median) + "\n")


def report():
    with Others() as others:
        found = {name: ask("benchmarks.replay", SIZES | {"name": name}, work.environment(1)) for name in workloads()}
    spare = None if others.processors is None else max(others.processors - 1, 0.0)      # (without the process asked)
    return tables(found, spare)


def main(argv=None):
    command("benchmarks.replay", __doc__, argv, report, "nets.md", child)


if __name__ == "__main__":
    main()
