"""python -m benchmarks.plans: how close planned arenas come to the liveness bound, for chapter 26 of the walkthrough.

The nets are the training steps of rows B to G, captured, and 200 random nets with gradients, whose blobs share memory.
*held* is what the first run takes from the system at most, in whole pages: the arena, and the .grad of variables, of
which none has memory before. Nothing runs, so the figures are exact and the same on every machine whose pages have 4
KiB. The table is written to plans.md."""

import random
import statistics

import numpy as np

from benchmarks.replay import workloads
from benchmarks.separate import command

RANDOM = 200
UNARY, BINARY = ("exp", "tanh", "relu", "square", "sigmoid", "sin"), ("add", "mul", "maximum")


def random_net(seed):
    """From 20 to 80 operators on matrices of different widths, and their gradients."""
    import cygrad as cg

    dice, net = random.Random(seed), cg.graph.Net(f"random_{seed}")
    widths, shapes = {"x": 32}, {"x": (64, 32)}
    for k in range(dice.randint(20, 80)):
        x = dice.choice([*widths][-8:])
        kind, n = dice.randrange(5), dice.choice([8, 16, 32, 64, 100])
        same = [y for y in widths if widths[y] == widths[x]]
        if kind == 0: widths[net.add_operator(dice.choice(UNARY), x)] = widths[x]
        elif kind <= 2: widths[net.add_operator(dice.choice(BINARY), [x, dice.choice(same)])] = widths[x]
        elif kind == 3:
            shapes[f"w{k}"] = n, widths[x]
            widths[net.linear([x, f"w{k}"])] = n
        else:
            y = dice.choice([*widths][-8:])
            widths[net.concat([x, y], axis=1)] = widths[x] + widths[y]
    last = [*widths][-1]
    net.sum(last, "loss")
    net.add_gradient_operators(["loss"])
    net.share_blobs()
    return net, shapes


def ratio(plan):
    return plan.peak_bytes / plan.bound_bytes


def most_held(peak):
    """The most bytes that a plan may need from the system: its arena and gradients are `peak` bytes."""
    return 1.005 * peak + (64 << 10)


def models():
    """name -> (the plan of the captured training step when no variable has a .grad, and the bytes of all of these)."""
    import cygrad as cg

    found = {}
    for name, (problem, x, target) in sorted(workloads().items()):
        net = cg.graph.Net.capture(problem.cygrad().step, x, target)
        variables = [x for x in net.bindings.values() if x.requires_grad]
        for x in variables: x.grad = None
        found[name] = net.plan(), sum(x.nbytes for x in variables)
    return found


def table(plans, ratios):
    """The plans, and the ratios of random nets, as Markdown."""
    rows = [(name, f"{p.peak_bytes:,}", f"{p.bound_bytes:,}", f"{ratio(p):.3f}", f"{p.peak_bytes + gradients:,}",
             f"{p.held_bytes:,}") for name, (p, gradients) in plans.items()]
    q = np.quantile(ratios, [0.5, 0.9, 1.0])
    exact = sum(r == 1 for r in ratios)
    rows.append((f"{len(ratios)} random nets: median, 90 %, worst", "", "", ", ".join(f"{x:.3f}" for x in q), "", ""))
    rows.append(("of them at the bound", "", "", f"{exact}, on average {statistics.mean(ratios):.3f}", "", ""))
    lines = ["| net, with gradients | arena, bytes | bound, bytes | ratio | with .grad, bytes | held, bytes |",
             "|---|---:|---:|---:|---:|---:|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def report():
    return table(models(), [ratio(net.plan(shapes)) for net, shapes in map(random_net, range(RANDOM))])


def main(argv=None):
    command("benchmarks.plans", __doc__, argv, report, "plans.md")


if __name__ == "__main__":
    main()
