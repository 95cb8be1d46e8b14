"""A pendulum fitted to what was seen of it: gradients of a differential equation by its adjoint.

    pip install 'cygrad[demo,linalg]'
    python examples/pendulum.py --output out/pendulum

A pendulum obeys a'' = -k sin a - c a'. Its angle was observed forty times, with noise; k, c and the angle at the start
are not known. The equation y' = f(y, p) is solved by the fourth-order method of Runge and Kutta. The gradient of a loss
by p needs no record of the steps: the adjoint v = dloss/dy obeys v' = -v df/dy, and dloss/dp grows by v df/dp
(Pontryagin 1962; Chen et al., Neural Ordinary Differential Equations, 2018). Both are solved backwards in time,
together with y itself, by products that vjp() has. So the memory does not depend on the number of steps.

The program compares the solution with SciPy's, the gradient with that of all steps, recorded one by one, and prints the
bytes of both. The difference of the gradients is an error of the method, which falls with the fourth power of the step.
Then BFGS of scipy.optimize fits the three numbers. It takes some seconds, writes picture.png, memory.txt and
memory.html, and ends with status 1 if a gradient or a number is wrong."""

import sys

import job
import matplotlib
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import cygrad as cg
from cygrad.func import vjp

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

TRUE = {"k": 4.0, "c": 0.25, "start": 2.0}
GUESS = {"k": 3.0, "c": 0.1, "start": 1.5}
OBSERVATIONS, END, NOISE, STEPS = 40, 8.0, 0.03, 5          # steps between two observations
COUNTS = 2, 5, 10, 20
BLUE, RED, GREY = "#30638e", "#d1495b", "#94a3b8"


def field(y, p):
    """y' of y = (angle, speed)."""
    return cg.stack([y[1], -p["k"] * cg.sin(y[0]) - p["c"] * y[1]])


def moved(y, dy, h):
    """y + h dy, of tensors and containers of them."""
    if isinstance(y, dict): return {name: moved(y[name], dy[name], h) for name in y}
    return tuple([moved(*pair, h) for pair in zip(y, dy, strict=True)]) if isinstance(y, tuple) else y + h * dy


def runge_kutta(f, y, h, steps):
    """y after some steps of y' = f(y)."""
    for _ in range(steps):
        k1 = f(y)
        k2 = f(moved(y, k1, h / 2))
        k3 = f(moved(y, k2, h / 2))
        k4 = f(moved(y, k3, h))
        for k, weight in ((k1, 1), (k2, 2), (k3, 2), (k4, 1)): y = moved(y, k, h * weight / 6)
    return y


def states(y, p, times, steps):
    """The states (len(times), 2), from y at times[0] on."""
    found = [y]
    for h in np.diff(times) / steps:
        found.append(runge_kutta(lambda y: field(y, p), found[-1], float(h), steps))
    return cg.stack(found)


class Solution(cg.autograd.Function):
    """states(), with the gradient by the adjoint."""

    @staticmethod
    def forward(ctx, y, times, steps, *p):
        found = states(y, dict(zip(TRUE, p, strict=False)), times, steps)
        ctx.times, ctx.steps = times, steps
        ctx.save_for_backward(found, *p)
        return found

    @staticmethod
    def backward(ctx, g):
        found, *p = ctx.saved_tensors
        p = dict(zip(TRUE, p, strict=False))

        def backwards(state):                       # in time that runs back: y' = -f, v' = v df/dy, dp' = v df/dp
            y, v, _ = state
            dy, pull = vjp(field, y, p)
            return -dy, *pull(v)

        v, dp = g[-1], {name: cg.zeros_like(value) for name, value in p.items()}
        for i in range(len(ctx.times) - 1, 0, -1):
            h = float(ctx.times[i] - ctx.times[i - 1]) / ctx.steps
            _, v, dp = runge_kutta(backwards, (found[i], v, dp), h, ctx.steps)
            v = v + g[i - 1]
        return v, None, None, *dp.values()


def angles(p, times, steps=STEPS, adjoint=True):
    """The angles of the pendulum that begins at rest."""
    y, rest = cg.stack([p["start"], 0 * p["start"]]), (p["k"], p["c"])
    found = Solution.apply(y, times, steps, *rest) if adjoint else states(y, p, times, steps)
    return found[:, 0]


def gradient(seen, times, steps, adjoint):
    """The gradient of the mean square error at the guess, and the peak of live bytes."""
    p = {name: cg.tensor(np.float64(value), requires_grad=True) for name, value in GUESS.items()}
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as tracked:
        with cg.record(): loss = ((angles(p, times, steps, adjoint) - seen) ** 2).mean()
        found = cg.autograd.grad(loss, [*p.values()])
    return np.array([g.item() for g in found]), tracked.peak_bytes - before


def exact(p, times):
    """The angles by SciPy's method of order 8."""
    def f(t, y): return [y[1], -p["k"] * np.sin(y[0]) - p["c"] * y[1]]

    return solve_ivp(f, (0, times[-1]), [p["start"], 0], "DOP853", times, rtol=1e-10, atol=1e-12).y[0]


def draw(path, times, seen, curves, peaks):
    """The picture: the observations and the curves, and the bytes of a gradient."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.4), width_ratios=[1.6, 1], layout="constrained")
    fine = np.linspace(0, END, 300)
    for (label, p), (colour, style, width) in zip(curves.items(), ((GREY, "-", 5), (RED, "--", 1.5), (BLUE, "-", 1.5)),
                                                  strict=True):
        left.plot(fine, exact(p, fine), style, color=colour, lw=width, label=label)
    left.plot(times, seen, "k.", label="observations")
    left.set(xlabel="t", ylabel="angle", title="a'' = -k sin a - c a'")
    left.legend(frameon=False, loc="upper right")
    for label, colour, values in (("steps, recorded", RED, peaks[False]), ("adjoint", BLUE, peaks[True])):
        right.plot(np.array(COUNTS) * (OBSERVATIONS - 1), np.array(values) / 1e3, "o-", color=colour, label=label)
    right.set(xlabel="steps", ylabel="kB", title="bytes of a gradient", ylim=(0, None))
    right.legend(frameon=False)
    job.save_figure(figure, path)


def main():
    options = job.options(__doc__, "out/pendulum", steps=100)
    rng = np.random.default_rng(0)
    times = np.linspace(0, END, OBSERVATIONS)
    seen = exact(TRUE, times) + NOISE * rng.normal(size=OBSERVATIONS)

    off = abs(angles({name: cg.tensor(np.float64(value)) for name, value in TRUE.items()}, times).numpy()
              - exact(TRUE, times)).max()
    errors, peaks = [], {True: [], False: []}
    for steps in COUNTS:
        found = {adjoint: gradient(seen, times, steps, adjoint) for adjoint in peaks}
        for adjoint, (_, peak) in found.items(): peaks[adjoint].append(peak)
        errors.append(np.linalg.norm(found[True][0] - found[False][0]) / np.linalg.norm(found[False][0]))

    flat = cg.func.scipy(lambda p: ((angles(p, times) - seen) ** 2).mean(),
                         {name: np.float64(value) for name, value in GUESS.items()})
    fitted = flat.unflatten(minimize(flat.value_and_grad, flat.x0, jac=True, method="BFGS",
                                     options={"maxiter": options.steps}).x)
    fitted = {name: float(value) for name, value in fitted.items()}
    with cg.memory.profile() as profile: flat.value_and_grad(flat.x0)
    draw(options.output / "picture.png", times, seen,
         {"exact": TRUE, "first guess": GUESS, "fitted": fitted}, peaks)

    wrong = []
    if not off < 1e-4: wrong.append(f"the solution is off by {off:.1e}; it should be below 1e-4")
    if not errors[-1] < 1e-6: wrong.append(f"the gradients differ by {errors[-1]:.1e}; it should be below 1e-6")
    order = np.log(errors[1] / errors[2]) / np.log(COUNTS[2] / COUNTS[1])
    if not order > 3.5: wrong.append(f"the difference falls with power {order:.1f} of the step; it should be 4")
    if not max(peaks[True]) < 1.01 * min(peaks[True]): wrong.append(f"the adjoint takes {peaks[True]} bytes")
    for name, value in fitted.items():
        if not abs(value / TRUE[name] - 1) < 0.05:
            wrong.append(f"{name} is {value:.3f}; it should be within 5 % of {TRUE[name]}")
    lines = [f"{name} = {value:.4f}, exact {TRUE[name]}" for name, value in fitted.items()]
    lines += [f"largest difference to SciPy's solution: {off:.1e}"]
    counts = [n * (OBSERVATIONS - 1) for n in COUNTS]
    lines += [f"difference of the gradients, {n} steps: {error:.1e}, relative"
              for n, error in zip(counts, errors, strict=True)]
    memory = [f"bytes of a gradient, {n} steps: recorded {recorded:,}, by the adjoint {adjoint:,}"
              for n, recorded, adjoint in zip(counts, peaks[False], peaks[True], strict=True)]
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
