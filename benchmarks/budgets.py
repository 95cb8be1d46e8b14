"""python -m benchmarks.budgets: what a step costs with less memory than its intermediate results need.

`planned` is the captured step with a share of the bytes of its arena, as net.plan(budget=...) and Workspace(budget=...)
have it; the work that runs again is known before, and the time is measured in turns with the step without a budget.
`first` is the same step as eager code in memory.budget(), whose rule is that of dynamic tensor rematerialization
(Kirisame et al., 2021), which does not know the future. `later` are the same steps after it in that scope, which follow
a plan if it costs less. Their times are compared with eager code without a budget. `bound` is what binomial
checkpointing of the chain costs with a checkpoint for each buffer (Griewank and Walther, 2000); no plan can cost less.
A dash means that the error says that more memory is needed. The table is written to budgets.md, the picture to
budgets.svg."""

import argparse
import statistics
from math import comb
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import machine, work
from benchmarks.gpt import Gpt
from benchmarks.memory.nets import Cygrad, lstm
from benchmarks.pictures import INK, MINE, PEER, REFERENCE, SECOND, plot

SHARES = (0.7, 0.5, 0.3, 0.2, 0.1)
ROUNDS = 7
WARM = 4                                            # steps, after which no step is planned any more
CHAIN = 100


# ---- the models: functions that return a step ------------------------------------------------------------------------

def step_of(variables, loss_of):
    import cygrad as cg

    for v in variables: v.attach_grad()

    def step():
        with cg.record(): loss = loss_of()
        loss.backward()
        return loss

    return step


def random(*shapes, scale=1.0):
    import cygrad as cg

    rng = np.random.default_rng(0)
    return [cg.tensor(rng.normal(0, scale, shape).astype(np.float32)) for shape in shapes]


def chain():
    import cygrad as cg

    x, = random((256, 256))

    def loss():
        y = x
        for _ in range(CHAIN): y = cg.tanh(y)
        return y.sum()

    return step_of([x], loss)


def gpt():
    import cygrad as cg

    net = Gpt("adam", 1e-3, layers=8)
    parameters = [cg.tensor(a) for a in net.arrays()]
    loss, (x, target) = net.cygrad_loss(parameters), map(cg.tensor, net.data())
    return step_of(parameters, lambda: loss(x, target))


def normed(x, weight, scale, shift, stride=1):
    import cygrad as cg

    return cg.batch_norm(cg.conv2d(x, weight, padding=1, stride=stride), None, None, scale, shift, training=True)


def parameters_of(channels):
    """A convolution with scale and shift for each pair of numbers of channels."""
    made = []
    for a, b in channels:
        made += [*random((b, a, 3, 3), scale=(2 / (9 * a)) ** 0.5), *random((b,), (b,), scale=0.1)]
    return made


def resnet(blocks=8, width=16):
    import cygrad as cg

    x, = random((8, width, 32, 32))
    w = parameters_of([(width, width)] * (2 * blocks))

    def loss():
        y = x
        for k in range(0, len(w), 6): y = cg.relu(y + normed(cg.relu(normed(y, *w[k:k + 3])), *w[k + 3:k + 6]))
        return (y * y).mean()

    return step_of(w, loss)


def unet(width=8, depth=3):
    """Two convolutions at each size, on the way down and, with what was there, on the way up."""
    import cygrad as cg

    x, = random((4, width, 64, 64))
    sizes = [width << k for k in range(depth + 1)]
    down = parameters_of([(a, b) for a, b in zip([width, *sizes], sizes, strict=False) for a, b in ((a, b), (b, b))])
    up = parameters_of([(a, b) for s, t in zip(sizes[:-1], sizes[1:], strict=True) for a, b in ((s + t, s), (s, s))])

    def loss():
        y, kept = x, []
        for k in range(depth + 1):
            for j in (0, 3): y = cg.relu(normed(y, *down[6 * k + j:6 * k + j + 3]))
            if k < depth:
                kept.append(y)
                y = cg.max_pool2d(y, 2)
        for k in reversed(range(depth)):
            n, c, h, w = y.shape
            y = cg.broadcast_to(y.reshape((n, c, h, 1, w, 1)), (n, c, h, 2, w, 2)).reshape((n, c, 2 * h, 2 * w))
            y = cg.concat([kept[k], y], 1)
            for j in (0, 3): y = cg.relu(normed(y, *up[6 * k + j:6 * k + j + 3]))
        return (y * y).mean()

    return step_of([*down, *up], loss)


def recurrent(steps=60, width=96):
    on = Cygrad()
    x, wx, wh = random((steps, 32, width), (4 * width, width), (4 * width, width), scale=width ** -0.5)
    return step_of([wx, wh], lambda: on.mean(on.square(lstm(on, (wx, wh), x))))


MODELS = {f"chain of {CHAIN}": chain, "GPT, 8 layers": gpt, "ResNet, 8 blocks": resnet, "U-Net, depth 3": unet,
          "LSTM, 60 steps": recurrent}


# ---- measuring -------------------------------------------------------------------------------------------------------

def binomial(n, buffers):
    """How many calls of a chain of n run again at least, with so many checkpoints. (A plan has fewer: backward needs
    one or two of the buffers.)"""
    r = 1
    while comb(buffers + r, buffers) < n + 1: r += 1
    return r * (n + 1) - comb(buffers + r, r - 1) - n


def in_turns(functions):
    """The median time of each function. They run in turns, so that the machine's state is the same for all."""
    times = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, f in functions.items():
            start = perf_counter()
            f()
            times[name].append(perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def measure(make):
    """For each share of memory: the work and the time of the planned step, of a first eager step and of later ones,
    relative to a step without a budget; None where it is impossible."""
    import cygrad as cg
    from cygrad.core.execute.program import Program

    step = make()
    step()
    whole = Program(step)
    planned, eager, scopes = {}, {}, {}
    for share in SHARES:
        try: planned[share] = Program(step, _limit=int(share * whole.arena_bytes))
        except cg.MemoryLimitError: pass
    times = in_turns({None: whole.run, **{share: p.run for share, p in planned.items()}})
    found = {share: [planned[share].recomputed[1], times[share] / times[None] - 1] if share in planned else [None, None]
             for share in SHARES}
    planned.clear()
    del whole
    live = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as t: step()

    def within(share): return cg.memory.budget(live + int(share * (t.peak_bytes - live)))

    def bounded(scope):
        """Run a step. Returns the share of its work that was done again."""
        with scope: step()
        return scope.recomputed.share

    for share in SHARES:
        scopes[share] = within(share)
        try: eager[share] = bounded(scopes[share]), [bounded(scopes[share]) for _ in range(WARM)][-1]
        except cg.MemoryLimitError: pass
    for share in SHARES:
        if share not in eager:
            found[share] += [None] * 4
            continue
        for work_, run in zip(eager[share], (lambda share=share: bounded(within(share)),
                                             lambda share=share: bounded(scopes[share])), strict=True):
            for _ in range(WARM): run()             # (the budget of the last share has other plans)
            times = in_turns({None: step, share: run})
            found[share] += [work_, times[share] / times[None] - 1]
    return found


def bound_of(name, share):
    """The share of the chain's work that runs again at least: its forward pass is half of it, as the planner counts."""
    if not name.startswith("chain"): return None
    return binomial(CHAIN, int(share * (CHAIN - 1)) + 1) / (2 * CHAIN)      # (one value is where .grad will be)


def percent(x):
    return "–" if x is None else f"{x:.0%}" if x >= 0.1 else f"{x:.1%}"


def table(results):
    lines = ["| model | memory | planned: work | time | first: work | time | later: work | time | bound |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name, rows in results.items():
        for share, row in rows.items():
            best = bound_of(name, share)
            lines.append(f"| {name} | {share:.0%} | " + " | ".join(map(percent, row))
                         + f" | {percent(best)} |")
    return "\n".join(lines) + "\n"


def picture(results, path):
    pyplot = plot()
    figure, axes = pyplot.subplots(1, len(results), figsize=(2.6 * len(results), 2.6), sharey=True,
                                   squeeze=False)
    for axis, (name, rows) in zip(axes[0], results.items(), strict=True):
        for i, (label, colour) in enumerate((("planned", MINE), ("first step (DTR)", PEER), ("later steps", SECOND))):
            found = [(100 * share, 100 * row[2 * i]) for share, row in rows.items() if row[2 * i] is not None]
            axis.plot(*zip((100, 0), *found, strict=True), color=colour, marker="o", markersize=3, label=label)
        if name.startswith("chain"):
            found = [(100 * share, 100 * bound_of(name, share)) for share in rows]
            axis.plot(*zip(*found, strict=True), color=REFERENCE, linestyle="--", label="bound")
            axis.set_ylabel("work that runs again, % of a step")
        axis.set_title(name, color=INK)
        axis.set_xlabel("memory, %")
        axis.set_ylim(0, 80)
        axis.set_xlim(103, 0)
    axes[0, 0].legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budgets", description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is written "
                        "(default %(default)s; make bench writes benchmarks/results)")
    output = parser.parse_args(argv).output
    work.set_threads(["cygrad"], 1)
    results = {name: measure(make) for name, make in MODELS.items()}
    text = f"{machine.cpu_name()}, one thread.\n\n{table(results)}"
    output.mkdir(parents=True, exist_ok=True)
    (output / "budgets.md").write_text(text)
    picture(results, output / "budgets.svg")
    print(text)


if __name__ == "__main__":
    main()
