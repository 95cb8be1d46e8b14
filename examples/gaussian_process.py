"""A Gaussian process: a curve with its uncertainty, from noisy points.

    pip install 'cygrad[demo]'
    python examples/gaussian_process.py --output out/gaussian_process

The values of a curve are taken as jointly normal. Their covariance is a^2 exp(-(s - t)^2 / 2 l^2) between the places s
and t, and a point has noise of variance n^2. The three numbers a, l and n are not known. They are learned by maximizing
the likelihood of the points, whose gradient goes through a Cholesky decomposition and a triangular solve (Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and section 5.4). After that the mean and the
standard deviation everywhere are linear algebra.

The program compares likelihood and gradient with SciPy's at the start, and at the end the curve with points that were
held out: nine of ten or more should lie within two standard deviations, and the learned noise should be that of the
points. It takes a second, writes picture.png, memory.txt and memory.html, and ends with status 1 if one of these
fails."""

import math
import sys

import job
import matplotlib
import numpy as np
from scipy.linalg import cho_factor, cho_solve

import cygrad as cg

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

POINTS, HELD_OUT, NOISE, RATE = 80, 400, 0.15, 0.05
START = math.log(0.5), math.log(2.0), math.log(0.5)         # log a, log l, log n
BLUE, RED, GREY = "#30638e", "#d1495b", "#94a3b8"


def curve(t): return np.sin(2 * t) + 0.4 * np.cos(5 * t) + 0.3 * t


def points(rng, n):
    """n places, and the noisy values of the curve there. There are no places between 4.5 and 6.5."""
    t = rng.uniform(0, 6, n)
    t = np.where(t > 4.5, t + 2, t)
    return t, curve(t) + NOISE * rng.normal(size=n)


def covariance(s, t, log_a, log_l):
    """(len(s), len(t)): the covariance of the values at the places s and t."""
    distance = (s[:, None] - t) * cg.exp(-log_l)
    return cg.exp(2 * log_a - 0.5 * distance * distance)


def decomposition(t, parameters):
    """The lower Cholesky factor of the covariance of the points."""
    log_a, log_l, log_n = parameters
    return cg.linalg.cholesky(covariance(t, t, log_a, log_l) + cg.exp(2 * log_n) * cg.eye(len(t), dtype="float64"))


def loss(parameters, t, y):
    """The negative logarithm of the likelihood, in nats for each point."""
    L = decomposition(t, parameters)
    z = cg.linalg.solve_triangular(L, y[:, None], upper=False)
    log_determinant = 2 * cg.log(cg.linalg.diagonal(L)).sum()
    return 0.5 * ((z * z).sum() + log_determinant + len(t) * math.log(2 * math.pi)) / len(t)


def predict(parameters, t, y, places):
    """The mean and the standard deviation of new points at some places."""
    log_a, log_l, log_n = parameters
    L, k = decomposition(t, parameters), covariance(t, places, log_a, log_l)
    z = cg.linalg.solve_triangular(L, cg.concatenate([y[:, None], k], 1), upper=False)
    mean, v = (z[:, :1] * z[:, 1:]).sum(0), z[:, 1:]
    return mean.numpy(), cg.sqrt(cg.exp(2 * log_a) + cg.exp(2 * log_n) - (v * v).sum(0)).numpy()


def scipy_loss(values, t, y):
    """The same as `loss`, by NumPy and SciPy."""
    a, l, n = np.exp(values)
    factor, lower = cho_factor(a * a * np.exp(-((t[:, None] - t) / l) ** 2 / 2) + n * n * np.eye(len(t)), lower=True)
    fit = y @ cho_solve((factor, lower), y)
    return 0.5 * (fit + 2 * np.log(np.diag(factor)).sum() + len(t) * math.log(2 * math.pi)) / len(t)


def differences(values, t, y, h=1e-5):
    """The gradient of scipy_loss by central differences."""
    steps = h * np.eye(len(values))
    return np.array([(scipy_loss(values + e, t, y) - scipy_loss(values - e, t, y)) / (2 * h) for e in steps])


def draw(path, t, y, places, predictions, history):
    """The picture: the curve before and after training, and the loss."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.4), width_ratios=[1.3, 1.3, 0.8],
                                                 layout="constrained")
    for axes, (title, (mean, deviation)) in zip((left, middle), predictions.items(), strict=True):
        axes.fill_between(places, mean - 2 * deviation, mean + 2 * deviation, color=BLUE, alpha=0.15, lw=0,
                          label="two standard deviations")
        axes.plot(places, curve(places), color=GREY, lw=3, alpha=0.7, label="the curve")
        axes.plot(places, mean, color=BLUE, label="mean")
        axes.plot(t, y, ".", color=RED, ms=4, label="points")
        axes.set(xlabel="t", title=title, ylim=(-3, 5))
    left.legend(frameon=False, loc="upper left")
    if history: right.plot(np.arange(len(history)) + 1, history, color=BLUE)
    right.set(xlabel="step", title="negative log likelihood of a point, nats")
    job.save_figure(figure, path)


def main():
    options = job.options(__doc__, "out/gaussian_process", steps=200)
    rng = np.random.default_rng(0)
    (t, y), (test_t, test_y) = points(rng, POINTS), points(rng, HELD_OUT)
    parameters = [cg.tensor(value, "float64", requires_grad=True) for value in START]
    inputs, places = (cg.asarray(t), cg.asarray(y)), np.linspace(-0.5, 8.5, 200)

    with cg.record(): start = loss(parameters, *inputs)
    gradient = np.array([g.item() for g in cg.autograd.grad(start, parameters)])
    wanted = scipy_loss(np.array(START), t, y), differences(np.array(START), t, y)
    agrees = math.isclose(start.item(), wanted[0], rel_tol=1e-10) and np.allclose(gradient, wanted[1], rtol=1e-6)
    predictions = {"before training": predict(parameters, *inputs, cg.asarray(places))}

    updater = cg.trainers.Updater(cg.optim.Adam(parameters, lr=RATE), lambda: loss(parameters, *inputs))
    history = []
    for i in range(options.steps):
        updater.update(i)
        history.append(updater.last_loss.item())
    predictions["after"] = predict(parameters, *inputs, cg.asarray(places))
    with cg.memory.profile() as profile: updater.update(options.steps)

    mean, deviation = predict(parameters, *inputs, cg.asarray(test_t))
    within = (abs(test_y - mean) < 2 * deviation).mean()
    error = np.sqrt(np.mean((mean - curve(test_t)) ** 2))
    a, l, n = (math.exp(p.item()) for p in parameters)
    draw(options.output / "picture.png", t, y, places, predictions, history)
    wrong = [] if agrees else [f"likelihood and gradient are {start.item()} and {gradient}; SciPy has {wanted}"]
    if not 0.9 < within < 0.99: wrong.append(f"{within:.1%} of the held-out points are within two standard deviations; "
                                             "it should be 90 to 99 %")
    if not abs(n / NOISE - 1) < 0.3: wrong.append(f"the noise is {n:.3f}; it should be within 30 % of {NOISE}")
    if not error < 0.1: wrong.append(f"the mean is off by {error:.3f}; it should be less than 0.1")
    lines = [f"a = {a:.3f}, l = {l:.3f}, n = {n:.3f} (the noise of the points is {NOISE})",
             f"{within:.1%} of {HELD_OUT} held-out points are within two standard deviations",
             f"the mean is off by {error:.3f} (root mean square)"]
    memory = [f"the matrix of covariances has {POINTS * POINTS * 8:,} bytes"]
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
