"""python -m benchmarks.fused: training steps whose gradients are never stored.

The first table is how much live memory grows during a step of a perceptron of 12 layers of 1024 without biases, batch
1, as a share of the bytes of its parameters. The activations are 0.0011 of that; the rest are gradients. `stored` is
the usual step. `fused` is solver.fuse_into_backward(), in PyTorch a hook for each parameter that runs its own optimizer
and sets .grad to None. `four passes` sums the gradients of four batches first, which PyTorch's hooks cannot do, so it
stores them.

The second is the peak of a step of a GPT (6 layers, width 256, 256 tokens, batch 4, vocabulary 8,192, SGD) above its
parameters, and its time, beside plain PyTorch. `head` is linear_cross_entropy, PyTorch's own and cygrad's; the budgets
are those of memory.budget() around the step, whose extra work is shown. The losses of all are equal within rounding.
cygrad's bytes are its exact counters, PyTorch's the running sum of the memory events of its profiler. The tables are
written to fused.md."""

import argparse
import gc
import statistics
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import machine, work
from benchmarks.gpt import Gpt
from benchmarks.peaks import torch_most

LAYERS, WIDTH, BATCH = 12, 1024, 1
RULES = {"SGD": ("Sgd", "SGD", {}), "momentum": ("Momentum", "SGD", {"momentum": 0.9}), "AdamW": ("AdamW", "AdamW", {})}
ROUNDS = 5


# ---- gradients of a perceptron ---------------------------------------------------------------------------------------

def weights():
    rng = np.random.default_rng(0)
    return [rng.normal(0, WIDTH ** -0.5, (WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)]


def growth_of(rule, way):
    """cygrad's growth of live bytes in the second step of a way, as a share of the parameters."""
    import cygrad as cg

    parameters = [cg.tensor(w).attach_grad() for w in weights()]
    solver = getattr(cg.optim, RULES[rule][0])(1e-3)
    solver.set_parameters(parameters)
    fused = solver.fuse_into_backward() if way != "stored" else None
    x = cg.tensor(np.ones((BATCH, WIDTH), np.float32))
    growth = 0

    def passes(n):
        nonlocal growth
        before = cg.memory.stats()["live_bytes"]
        for _ in range(n):
            with cg.record():
                h = x
                for w in parameters: h = cg.linear(h, w, activation="tanh")
                loss = h.sum()
            cg.memory.reset_peak()
            loss.backward()
            growth = max(growth, cg.memory.stats()["peak_bytes"] - before)
            del loss, h

    for _ in range(2):
        growth = 0
        for w in parameters: w.grad = None
        if way == "four passes":
            with fused.accumulate(): passes(4)
        else: passes(1)
        solver.update()
    return growth / sum(w.nbytes for w in parameters)


def torch_growth_of(rule, way):
    """PyTorch's: the peak of a step's memory events in backward."""
    import torch

    parameters = [torch.nn.Parameter(torch.from_numpy(w)) for w in weights()]
    _, name, options = RULES[rule]
    make = getattr(torch.optim, name)
    x = torch.ones(BATCH, WIDTH)
    if way == "fused":
        solvers = {p: make([p], lr=1e-3, **options) for p in parameters}

        def hook(p):
            solvers[p].step()
            p.grad = None

        for p in parameters: p.register_post_accumulate_grad_hook(hook)
    solver = make(parameters, lr=1e-3, **options)

    def step(n=1):
        for _ in range(n):
            h = x
            for w in parameters: h = torch.tanh(torch.nn.functional.linear(h, w))
            h.sum().backward()
            del h
        if way != "fused":
            solver.step()
            solver.zero_grad()

    step()
    peak, _, _ = torch_most(lambda: lambda: step(4 if way == "four passes" else 1))
    return peak / sum(w.nbytes for w in weights())


# ---- a step of a GPT -------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class WithHead(Gpt):
    """The same GPT, whose logits are never whole: linear_cross_entropy of each library."""

    def loss_of_features(self, x, head, target, linear, on):
        if on.__name__ == "cygrad": return on.linear_cross_entropy(x, head, target)
        from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

        return on.linear_cross_entropy(x, head, target, options=LinearCrossEntropyOptions())


SIZES = dict(layers=6, width=256, heads=4, length=256, batch=4, vocabulary=8192)
GPT, WITH_HEAD = Gpt("sgd", 1e-2, **SIZES), WithHead("sgd", 1e-2, **SIZES)


def cygrad_step(net, fused):
    import cygrad as cg

    parameters = [cg.tensor(a).attach_grad() for a in net.arrays()]
    solver = cg.optim.Sgd(net.lr)
    solver.set_parameters(parameters)
    if fused: solver.fuse_into_backward()
    loss_of = net.cygrad_loss(parameters)
    x, target = map(cg.tensor, net.data())

    def step():
        if not fused:
            for p in parameters: p.grad = None
        with cg.record(): loss = loss_of(x, target)
        loss.backward()
        solver.update()
        return loss.item()

    return step


def torch_step(net, fused):
    import torch

    parameters = [torch.nn.Parameter(torch.from_numpy(a)) for a in net.arrays()]
    loss_of = net.torch_loss(parameters)
    x, target = map(torch.from_numpy, net.data())
    if fused:
        solvers = {p: torch.optim.SGD([p], lr=net.lr) for p in parameters}

        def hook(p):
            solvers[p].step()
            p.grad = None

        for p in parameters: p.register_post_accumulate_grad_hook(hook)
    solver = torch.optim.SGD(parameters, lr=net.lr)

    def step():
        loss = loss_of(x, target)
        loss.backward()
        if not fused:
            solver.step()
            solver.zero_grad()
        return loss.item()

    return step


def peak_of(step, beside):
    import cygrad as cg

    step()
    gc.collect()
    cg.memory.reset_peak()
    step()
    return cg.memory.stats()["peak_bytes"] - beside


def measure_gpt(shares):
    """{variant: (peak, extra work, a function that takes a step)}; plain PyTorch first."""
    import cygrad as cg

    found = {}
    for name, net, fused in (("PyTorch", GPT, False), ("PyTorch, head, hooks", WITH_HEAD, True)):
        step = torch_step(net, fused)
        step()
        peak, _, values = torch_most(lambda step=step: lambda: [step()])
        found[name] = peak, 0.0, step
    plain = found["PyTorch"][0]
    for name, net, fused in (("cygrad", GPT, False), ("cygrad, head", WITH_HEAD, False),
                             ("cygrad, head, fused", WITH_HEAD, True)):
        step = cygrad_step(net, fused)
        base = cg.memory.stats()["live_bytes"]
        found[name] = peak_of(step, base), 0.0, step
    live = cg.memory.stats()["live_bytes"]
    for share in shares:
        bytes_ = live + int(share * plain)
        work_ = []

        def bounded(step=step, bytes_=bytes_, work_=work_):
            with cg.memory.budget(bytes_) as b: value = step()
            work_.append(b.recomputed.share)
            return value

        try: peak = peak_of(bounded, live)
        except cg.MemoryLimitError: continue
        found[f"cygrad, head, fused, budget of {share:.2f}"] = peak, work_[-1], bounded
    return found


def in_turns(found):
    times = {name: [] for name in found}
    for _ in range(ROUNDS):
        for name, (_, _, step) in found.items():
            start = perf_counter()
            step()
            times[name].append(perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def gradient_table():
    ways = ("stored", "fused", "four passes")
    lines = ["| rule | " + " | ".join(f"cygrad, {w} | PyTorch, {w}" for w in ways) + " |",
             "|---|" + "---:|" * (2 * len(ways))]
    for rule in RULES:
        cells = []
        for way in ways: cells += [f"{growth_of(rule, way):.4f}", f"{torch_growth_of(rule, way):.4f}"]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def gpt_table(shares=(0.31, 0.2, 0.1)):
    found = measure_gpt(shares)
    times, plain = in_turns(found), found["PyTorch"][0]
    lines = ["| step | peak above the parameters, MB | of PyTorch's | work that runs again | time, of PyTorch's |",
             "|---|---:|---:|---:|---:|"]
    lines += [f"| {name} | {peak / 1e6:.1f} | {peak / plain:.3f} | {again:.1%} | {times[name] / times['PyTorch']:.2f} |"
              for name, (peak, again, _) in found.items()]
    return "\n".join(lines) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fused", description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="directory of what is written "
                        "(default %(default)s; make bench writes benchmarks/results)")
    output = parser.parse_args(argv).output
    work.set_threads(["cygrad", "PyTorch"], 1)
    text = f"{machine.cpu_name()}, one thread.\n\n{gradient_table()}\n{gpt_table()}"
    output.mkdir(parents=True, exist_ok=True)
    (output / "fused.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
