"""python -m benchmarks.functions: transformations of functions beside torch.func, one thread.

Gradients of each of 64 samples of two perceptrons and a LeNet (`vmap(grad(loss))`), the Hessian of a perceptron by 100
arguments, and a tangent (`jvp`) beside the evaluation of its function, of 256 x 100 numbers and of ten. Results are
compared before anything is timed; times are medians of interleaved rounds. The table is written to functions.md."""

import statistics

import numpy as np

from benchmarks import machine
from benchmarks.separate import command
from benchmarks.timing import interleave

ROUNDS, SECONDS, BATCH = 9, 0.1, 64


def perceptron(sizes):
    """Per-sample gradients of a perceptron with tanh: (cygrad's function, PyTorch's), without arguments."""
    import torch
    import torch.nn.functional as F

    import cygrad as cg

    rng = np.random.default_rng(0)
    weights = [rng.normal(0, n ** -0.5, (m, n)).astype("f4") for n, m in zip(sizes, sizes[1:], strict=False)]
    parameters = [p for w in weights for p in (w, np.zeros(len(w), "f4"))]
    x, y = rng.normal(size=(BATCH, sizes[0])).astype("f4"), rng.integers(0, sizes[-1], BATCH)

    def loss(linear, tanh, entropy, p, x, y):
        for k in range(0, len(p) - 2, 2): x = tanh(linear(x, p[k], p[k + 1]))
        return entropy(linear(x, p[-2], p[-1]), y)

    ours = cg.func.vmap(cg.func.grad(lambda *a: loss(cg.linear, cg.tanh, cg.cross_entropy, *a)), (None, 0, 0))
    theirs = torch.func.vmap(torch.func.grad(lambda *a: loss(F.linear, torch.tanh, F.cross_entropy, *a)), (None, 0, 0))
    given = [cg.tensor(p) for p in parameters], cg.tensor(x), cg.tensor(y)
    given_torch = [torch.tensor(p) for p in parameters], torch.tensor(x), torch.tensor(y)
    return lambda: ours(*given), lambda: theirs(*given_torch)


def lenet():
    """Per-sample gradients of a LeNet."""
    import torch
    from torch import nn

    import cygrad as cg

    def model(nn):
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
                             nn.ReLU(), nn.Linear(84, 10))

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(BATCH, 1, 1, 28, 28)).astype("f4"), rng.integers(0, 10, (BATCH, 1))
    net, other = model(cg.nn), model(nn)
    weights = {name: p.detach() for name, p in other.named_parameters()}
    ours = cg.func.vmap(cg.func.grad(lambda p, x, y: cg.cross_entropy(cg.func.functional_call(net, p, x), y)),
                        (None, 0, 0))
    theirs = torch.func.vmap(torch.func.grad(lambda p, x, y: nn.functional.cross_entropy(
        torch.func.functional_call(other, p, (x,)), y)), (None, 0, 0))
    given = {name: cg.tensor(p.numpy()) for name, p in weights.items()}, cg.tensor(x), cg.tensor(y)
    given_torch = weights, torch.tensor(x), torch.tensor(y)
    return (lambda: [*ours(*given).values()]), (lambda: [*theirs(*given_torch).values()])


def hessian():
    """The Hessian of a perceptron 100-64-64-1 by its arguments, in float64."""
    import torch

    import cygrad as cg

    rng = np.random.default_rng(0)
    w, v, u, x = (rng.normal(size=s) / 8 for s in ((64, 100), (64, 64), (64,), (100,)))
    a, b, c, z = map(cg.tensor, (w, v, u, x))
    d, e, f, t = map(torch.tensor, (w, v, u, x))
    ours = cg.func.hessian(lambda x: cg.tanh(b @ cg.tanh(a @ x)) @ c)
    theirs = torch.func.hessian(lambda x: torch.tanh(e @ torch.tanh(d @ x)) @ f)
    return (lambda: [ours(z)]), (lambda: [theirs(t)])


def tangent(n):
    """A tangent, and the evaluation of its function: two layers of `n` rows of 100, or elementwise if n is 0."""
    import cygrad as cg

    rng = np.random.default_rng(0)
    a, b = (cg.tensor(rng.normal(size=s) / 8) for s in ((100, 64), (64, 64)))
    x = cg.tensor(rng.normal(size=(n, 100) if n else 10))
    t = cg.ones_like(x)

    def f(x): return cg.tanh(cg.tanh(x @ a) @ b) if n else cg.tanh(cg.exp(cg.sin(x) * x) + x)

    return (lambda: cg.func.jvp(f, (x,), (t,))), (lambda: f(x))


CASES = {
    f"{BATCH} gradients, perceptron 64-128-128-10": lambda: perceptron((64, 128, 128, 10)),
    f"{BATCH} gradients, perceptron 784-256-256-10": lambda: perceptron((784, 256, 256, 10)),
    f"{BATCH} gradients, LeNet": lenet,
    "Hessian, 100 x 100, float64": hessian,
}
TANGENTS = {"256 x 100, two layers": 256, "10 elements, 5 operations": 0}


def check(ours, theirs):
    """Raise AssertionError if results differ."""
    for one, other in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 5e-3, 1e-4)


def medians(first, second):
    """The median seconds of two functions, timed in turn."""
    def times(f):
        def run(n):
            for _ in range(n): f()
        return run

    samples, _ = interleave({"first": times(first), "second": times(second)}, ROUNDS, SECONDS)
    return [statistics.median(samples[name]) for name in ("first", "second")]


def report():
    import torch

    import cygrad as cg

    threads = cg.get_num_threads(), torch.get_num_threads()
    cg.set_num_threads(1)
    torch.set_num_threads(1)
    try: return measured()
    finally:
        cg.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])


def measured():
    import torch

    where = f"{machine.cpu_name()}, {machine.vector_level()}, one thread, PyTorch {torch.__version__}"
    lines = [f"Measured on {where}.", "", "| | cygrad, ms | torch.func, ms | ratio |", "|---|---:|---:|---:|"]
    for name, make in CASES.items():
        ours, theirs = make()
        check(ours, theirs)
        a, b = medians(ours, theirs)
        lines.append(f"| {name} | {a * 1e3:.3g} | {b * 1e3:.3g} | {b / a:.2f} |")
    lines += ["", "| jvp | evaluation, us | with tangents, us | ratio |", "|---|---:|---:|---:|"]
    for name, n in TANGENTS.items():
        a, b = medians(*tangent(n))
        lines.append(f"| {name} | {b * 1e6:.3g} | {a * 1e6:.3g} | {a / b:.2f} |")
    return "\n".join(lines) + "\n"


def main(argv=None):
    command("benchmarks.functions", __doc__, argv, report, "functions.md")


if __name__ == "__main__":
    main()
