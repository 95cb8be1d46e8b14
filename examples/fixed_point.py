"""A layer that is a fixed point, and its gradient without the way there.

    pip install 'cygrad[demo,sklearn]'
    python examples/fixed_point.py --output out/fixed_point

The layer solves z = tanh(W z + U x + b) for z, by iteration (Bai, Kolter and Koltun, Deep Equilibrium Models, 2019).
Its gradient follows from the equation alone, by the implicit function theorem: with J = df/dz at the solution, the
gradient g of z becomes u = g + J'u, and the gradients of x, W, U and b are those of one call of f with u. u is a fixed
point too, which is found by products with J', as vjp() has them. So nothing of the iterations is kept: the memory is
that of one call, however many there were.

The program compares this gradient with that of all iterations, recorded one by one, and with finite differences, and
prints the bytes of both. Then it trains a classifier of handwritten digits whose middle is such a layer. The rows of W
have a sum of absolute values below 1, so there is one solution, and the iteration converges. It takes some seconds,
writes picture.png, memory.txt and memory.html, and ends with status 1 if a gradient is wrong or more than 5 % of the
test digits are."""

import sys
from functools import partial

import job
import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import cygrad as cg
from cygrad import nn
from cygrad.func import vjp

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

WIDTH, BATCH, RATE, SLOPE, MOST = 48, 64, 5e-3, 0.8, 500
TOLERANCE = {"float32": 1e-6, "float64": 1e-13}
DEPTHS = 5, 10, 20, 40, 80
BLUE, RED, GREY = "#30638e", "#d1495b", "#94a3b8"


def solved(f, z):
    """The fixed point of f, by iteration from z until it changes by TOLERANCE at most."""
    enough = TOLERANCE[z.dtype.name]
    for _ in range(MOST):
        before, z = z, f(z)
        if float(cg.abs(z - before).max()) <= enough: return z
    raise RuntimeError(f"no fixed point after {MOST} iterations")


class FixedPoint(cg.autograd.Function):
    """z = f(z, *inputs), from z = 0 of the shape of `like`."""

    @staticmethod
    def forward(ctx, f, like, *inputs):
        z = solved(lambda z: f(z, *inputs), cg.zeros_like(like))
        ctx.f = f
        ctx.save_for_backward(z, *inputs)
        return z

    @staticmethod
    def backward(ctx, g):
        z, *inputs = ctx.saved_tensors
        _, pull = vjp(ctx.f, z, *inputs)
        u = solved(lambda u: g + pull(u)[0], g)
        return None, None, *pull(u)[1:]


def step(z, x, w, b):
    """One iteration. Row sums of abs(w) above SLOPE are scaled to it, so two z come closer by that factor at least."""
    w = w * cg.minimum(SLOPE / cg.abs(w).sum(axis=1, keepdims=True), 1.0)
    return cg.tanh(z @ w.T + x + b)


def unrolled(x, w, b, depth):
    """The iterations, recorded."""
    z = cg.zeros_like(x)
    for _ in range(depth): z = step(z, x, w, b)
    return z


class Equilibrium(nn.Module):
    """Scores (n, 10) of digits (n, 64): a linear layer, the fixed point, a linear layer."""

    def __init__(self):
        self.into, self.out = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 10)
        self.w = nn.Parameter(cg.random.normal((WIDTH, WIDTH)) / WIDTH)
        self.b = nn.Parameter(cg.zeros(WIDTH))

    def forward(self, x):
        x = self.into(x)
        return self.out(FixedPoint.apply(step, x, x, self.w, self.b))


def data():
    """(training digits, labels), (test digits, labels): rows of 64 numbers from 0 to 1."""
    digits = load_digits()
    images, labels = (digits.data / 16).astype("float32"), digits.target
    order = np.random.default_rng(0).permutation(len(labels))
    cut = len(labels) * 4 // 5
    return [(images[rows], labels[rows]) for rows in (order[:cut], order[cut:])]


def gradients(z_of, arguments):
    """The gradients of the sum of z^3, and the peak of live bytes beside the arguments."""
    xs = [cg.tensor(a, requires_grad=True) for a in arguments]
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as tracked:
        with cg.record(): y = (z_of(*xs) ** 3).sum()
        found = cg.autograd.grad(y, xs)
    return [g.numpy() for g in found], tracked.peak_bytes - before


def implicit(x, w, b): return FixedPoint.apply(step, x, x, w, b)


def differences(arguments, rng, h=1e-5):
    """The derivative of the sum of z^3 along random directions, one for each argument, by central differences."""
    ts = [rng.normal(size=a.shape) for a in arguments]
    def value(scale): return float((implicit(*[cg.tensor(a + scale * t) for a, t in zip(arguments, ts, strict=True)])
                                    ** 3).sum())
    return (value(h) - value(-h)) / (2 * h), ts


def compare(rng):
    """(wrong, lines, bytes by depth, bytes of the fixed point) of the gradients in float64."""
    arguments = [rng.normal(size=(BATCH, WIDTH)), rng.normal(size=(WIDTH, WIDTH)), rng.normal(size=WIDTH)]
    ours, one = gradients(implicit, arguments)
    peaks = [gradients(partial(unrolled, depth=depth), arguments) for depth in DEPTHS]
    error = max(abs(a - b).max() / abs(b).max() for a, b in zip(ours, peaks[-1][0], strict=True))
    slope, ts = differences(arguments, rng)
    along = sum((g * t).sum() for g, t in zip(ours, ts, strict=True))
    wrong = []
    if not error < 1e-6: wrong.append(f"the gradient differs from that of {DEPTHS[-1]} iterations by {error:.1e}")
    if not abs(along - slope) < 1e-6 * abs(slope): wrong.append(f"the slope is {along}, by differences {slope}")
    if not one < peaks[0][1]: wrong.append(f"the fixed point takes {one} bytes, {DEPTHS[0]} iterations {peaks[0][1]}")
    lines = [f"largest difference to the gradient of {DEPTHS[-1]} recorded iterations: {error:.1e}, relative",
             f"slope in a random direction: {along:.8g}; by finite differences {slope:.8g}"]
    return wrong, lines, [peak for _, peak in peaks], one


def draw(path, losses, peaks, one):
    """The picture: the training loss, and the bytes of a gradient."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.4), width_ratios=[1.3, 1], layout="constrained")
    if losses: left.semilogy(np.arange(len(losses)) + 1, losses, color=BLUE, lw=0.8)
    left.set(xlabel="step", title="digits: training loss")
    right.plot(DEPTHS, np.array(peaks) / 1e6, "o-", color=RED, label="iterations, recorded")
    right.axhline(one / 1e6, color=BLUE, label="fixed point, until it converges")
    right.set(xlabel="iterations", ylabel="MB", title="bytes of a gradient", ylim=(0, None))
    right.legend(frameon=False)
    job.save_figure(figure, path)


def main():
    options = job.options(__doc__, "out/fixed_point", epochs=30)
    cg.random.seed(0)
    rng = np.random.default_rng(0)
    wrong, lines, peaks, one = compare(rng)

    (images, labels), (test_images, test_labels) = data()
    model = Equilibrium()
    solver = cg.optim.Adam(model.parameters(), lr=RATE)

    def update(rows):
        solver.zero_grad()
        with cg.record(): loss = cg.cross_entropy(model(cg.asarray(images[rows])), labels[rows])
        loss.backward()
        solver.update()
        return loss.item()

    losses = [update(rows) for _ in range(options.epochs)
              for rows in np.array_split(rng.permutation(len(labels)), len(labels) // BATCH)]
    error = (model(cg.asarray(test_images)).numpy().argmax(1) != test_labels).mean()
    with cg.memory.profile() as profile: update(np.arange(BATCH))
    draw(options.output / "picture.png", losses, peaks, one)
    if not error <= 0.05: wrong.append(f"{error:.1%} of the test digits are wrong; it should be at most 5 %")
    lines += [f"{error:.1%} of the test digits are wrong"]
    memory = [f"bytes of a gradient of {depth} recorded iterations: {peak:,}"
              for depth, peak in zip(DEPTHS, peaks, strict=True)]
    memory.append(f"bytes of the gradient of the fixed point: {one:,}")
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
