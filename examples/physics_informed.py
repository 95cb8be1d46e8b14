"""A physics-informed fit: a network that satisfies an equation, and the unknown number in it.

    pip install 'cygrad[demo]'
    python examples/physics_informed.py --output out/physics

A mass on a spring obeys u'' + c u' + k u = 0. It starts at u = 1 at rest, k is known, and c is not. It was observed
twenty times, with noise, early in its motion. The network u(t) has three losses: it should pass through the
observations, it should begin as the mass did, and it should satisfy the equation at 60 times, also later than the last
observation. The second derivative u'' comes from `create_graph=True`, and c is a parameter like the weights.

The exact solution is known, so the result can be checked: u everywhere, and c. A second network that sees only the
observations shows what the equation is worth. The program takes some seconds, writes picture.png, memory.txt and
memory.html, and ends with status 1 if c or u is wrong. memory.txt has the bytes of a step with one and with two
derivatives."""

import math
import sys

import job
import matplotlib
import numpy as np

import cygrad as cg
from cygrad import nn

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

C, K, END, OBSERVED, NOISE = 0.6, 6.0, 5.0, 2.0, 0.02       # observations end at t = 2, the equation at t = 5
RATE, POINTS, OBSERVATIONS = 5e-3, 60, 20
BLUE, RED, GREY = "#30638e", "#d1495b", "#94a3b8"


def exact(t):
    """The solution for u(0) = 1, u'(0) = 0 and c^2 < 4 k."""
    w = math.sqrt(K - C * C / 4)
    return np.exp(-C * t / 2) * (np.cos(w * t) + C / (2 * w) * np.sin(w * t))


class Motion(nn.Module):
    """u(t) for t (n, 1), and the unknown c."""

    def __init__(self):
        self.layers = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
        self.c = cg.tensor(0.0, requires_grad=True)

    def forward(self, t): return self.layers(t * (2 / END) - 1)


def slope(u, t):
    """du/dt, as part of the graph. Each u depends on its own t only, so the gradient of the sum has all of them."""
    (du,) = cg.autograd.grad(u.sum(), [t], create_graph=True)
    return du


def losses(motion, t, observed_t, observed_u):
    """The three losses: the observations, the beginning, the equation."""
    u = motion(t)
    du = slope(u, t)
    residual = slope(du, t) + motion.c * du + K * u
    start = (u[0] - 1.0) ** 2 + du[0] ** 2
    return cg.square(motion(observed_t) - observed_u).mean(), start.sum(), cg.square(residual).mean()


def fit(loss, parameters, steps):
    """Minimize with Adam, whose rate falls along a cosine. Returns the losses of the steps."""
    solver = cg.optim.Adam(parameters, lr=RATE)
    schedule = cg.optim.CosineAnnealingLR(solver, max(1, steps), eta_min=RATE / 100)
    updater = cg.trainers.Updater(solver, loss, update_callback_on_finish=lambda i: schedule.step())
    history = []
    for i in range(steps):
        updater.update(i)
        history.append(updater.last_loss.item())
    return history


def draw(path, t, u, alone, observations, history, c):
    """The picture: both networks beside the exact solution, and the losses."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), width_ratios=[1.6, 1], layout="constrained")
    left.axvspan(OBSERVED, END, color="#f1f5f9")
    left.plot(t, exact(t), color=GREY, lw=5, alpha=0.6, label="exact")
    left.plot(t, alone, "--", color=RED, label="network without the equation")
    left.plot(t, u, color=BLUE, label=f"network with the equation, c = {c:.3f} (exact: {C})")
    left.plot(*observations, "k.", label="observations")
    left.set(xlabel="t", ylabel="u", title="u'' + c u' + k u = 0", ylim=(-1.6, 1.6))
    left.legend(frameon=False, loc="lower right")
    if history: right.semilogy(np.arange(len(history)) + 1, history, color=BLUE, lw=0.8)
    right.set(xlabel="step", title="the sum of the losses")
    job.save_figure(figure, path)


def main():
    options = job.options(__doc__, "out/physics", steps=5000)
    cg.random.seed(0)
    rng = np.random.default_rng(0)
    observed_t = np.linspace(0, OBSERVED, OBSERVATIONS)
    observed_u = exact(observed_t) + NOISE * rng.normal(size=OBSERVATIONS)
    t = cg.tensor(np.linspace(0, END, POINTS, dtype="float32")[:, None]).attach_grad()
    observations = [cg.tensor(values.astype("float32")[:, None]) for values in (observed_t, observed_u)]
    motion, alone = Motion(), Motion()

    def loss():
        data, start, equation = losses(motion, t, *observations)
        return 10 * data + 10 * start + equation

    def loss_alone(): return cg.square(alone(observations[0]) - observations[1]).mean()

    history = fit(loss, motion.parameters(), options.steps)
    fit(loss_alone, alone.layers.parameters(), options.steps)

    times = np.linspace(0, END, 201)
    inputs = cg.asarray(times.astype("float32")[:, None])
    u, u_alone = motion(inputs).numpy()[:, 0], alone(inputs).numpy()[:, 0]
    errors = [np.linalg.norm(x - exact(times)) / np.linalg.norm(exact(times)) for x in (u, u_alone)]
    c = motion.c.item()
    draw(options.output / "picture.png", times, u, u_alone, (observed_t, observed_u), history, c)

    peaks = []
    for derivatives in range(3):
        before = cg.memory.stats()["live_bytes"]
        with cg.memory.track() as tracked:
            with cg.record():
                u = motion(t)
                for _ in range(derivatives): u = slope(u, t)
                total = cg.square(u).mean()
            total.backward()
        peaks.append(tracked.peak_bytes - before)
        del u, total
    with cg.memory.profile() as profile:
        with cg.record(): total = loss()
        total.backward()
    wrong = []
    if not abs(c - C) < 0.06: wrong.append(f"c is {c:.3f}; it should be within 0.06 of {C}")
    if not errors[0] < 0.05: wrong.append(f"the relative error of u is {errors[0]:.3f}; it should be below 0.05")
    lines = [f"c = {c:.4f}, exact {C}", f"relative error of u: {errors[0]:.4f}, without the equation {errors[1]:.4f}"]
    memory = [f"bytes of a step whose loss has u alone: {peaks[0]:,}", f"u': {peaks[1]:,}", f"u'': {peaks[2]:,}"]
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
