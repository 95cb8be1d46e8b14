"""A variational autoencoder on scikit-learn's digits, with two latent numbers for each image.

    pip install 'cygrad[demo]'
    python examples/vae.py --output out/vae

A pixel of these images is a count from 0 to 16. The decoder maps two numbers z to the logits of 64 binomial
distributions. The encoder maps an image to the mean and the deviation of a normal distribution of z. Both are trained
together to maximize the evidence lower bound (ELBO, Kingma and Welling 2014, equation 10): the log likelihood of the
image for a z drawn from the encoder, less the divergence of the encoder's distribution from the standard normal one.
The draw is a mean plus a deviation times a standard normal number, so that its gradient exists.

The bound is compared, on held-out images, with two models that need no network: the mean image, and a mixture of the
ten mean images of the labels (naive Bayes), which has seen the labels. The program takes about ten seconds and writes
picture.png (digits decoded from a grid of z, held-out images in the plane of z, reconstructions), memory.txt and
memory.html. It ends with status 1 if the bound is not above both, or if its samples are all alike."""

import sys

import job
import matplotlib
import numpy as np
from scipy.special import gammaln, logsumexp, ndtri
from sklearn.datasets import load_digits

import cygrad as cg
from cygrad import nn

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

LEVELS, LATENT, HIDDEN, BATCH, RATE, DRAWS = 16, 2, 256, 64, 2e-3, 100
BLUE, RED = "#30638e", "#d1495b"


class Autoencoder(nn.Module):
    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                                     nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                                     nn.Linear(HIDDEN, 64))

    def encode(self, counts):
        """The mean and the logarithm of the deviation of z, each (n, LATENT), for counts (n, 64)."""
        return cg.split(self.encoder(counts / (LEVELS / 2) - 1), 2, -1)

    def forward(self, counts, coefficients):
        """The ELBO of each image in nats, (n,), for one draw of z. `coefficients` are those of `binomial`."""
        mean, log_deviation = self.encode(counts)
        z = mean + cg.exp(log_deviation) * cg.random.normal(mean.shape)
        divergence = 0.5 * (mean * mean + cg.exp(2 * log_deviation) - 1) - log_deviation
        return binomial(self.decoder(z), counts, coefficients) - divergence.sum(-1)


def binomial(logits, counts, coefficients):
    """The log likelihood of counts (n, 64): counts logits - LEVELS log(1 + e^logits) + log of the coefficients (n,)."""
    return (counts * logits - LEVELS * cg.softplus(logits)).sum(-1) + coefficients


def coefficients(counts):
    """The sums of the logarithms of the binomial coefficients of each image, (n,)."""
    return (gammaln(LEVELS + 1) - gammaln(counts + 1) - gammaln(LEVELS - counts + 1)).sum(1).astype("float32")


def data():
    """(counts, coefficients, labels) of four fifths of the digits, and of the rest."""
    digits = load_digits()
    counts, order = digits.data.astype("float32"), np.random.default_rng(0).permutation(len(digits.target))
    cut = len(order) * 4 // 5
    return [(counts[rows], coefficients(counts[rows]), digits.target[rows]) for rows in (order[:cut], order[cut:])]


def mixture(training, labels, test, test_coefficients):
    """The mean log likelihood of test images in nats, for a mixture of the mean images of the labels."""
    scores = []
    for label in np.unique(labels):
        chosen = training[labels == label]
        p = (chosen.sum(0) + 1) / (LEVELS * len(chosen) + 2)                    # Laplace's rule
        each = (test * np.log(p) + (LEVELS - test) * np.log(1 - p)).sum(1) + test_coefficients
        scores.append(each + np.log(len(chosen) / len(training)))
    return logsumexp(scores, axis=0).mean()


def bound(model, counts, coefficients):
    """The mean ELBO of images in nats, over DRAWS draws for each."""
    with cg.predict_mode(): return np.mean([model(counts, coefficients).mean().item() for _ in range(DRAWS)])


def decode(model, z): return cg.sigmoid(model.decoder(z)).numpy().reshape(-1, 8, 8)


def draw(path, model, counts, labels, history, limits):
    """The picture: decoded z, held-out images in the plane of z, reconstructions, the bound."""
    figure = plt.figure(figsize=(16, 4.6), layout="constrained")
    first, second, third, fourth = figure.subfigures(1, 4, width_ratios=[1, 1.15, 0.8, 1])
    n = 14
    quantiles = ndtri((np.arange(n) + 0.5) / n).astype("float32")               # equally likely places
    grid = np.stack(np.meshgrid(quantiles, quantiles[::-1]), -1).reshape(-1, 2)
    axes = first.subplots()
    axes.imshow(decode(model, cg.asarray(grid)).reshape(n, n, 8, 8).swapaxes(1, 2).reshape(8 * n, 8 * n), cmap="gray_r")
    axes.set(title="decoded from a grid of z", xticks=[], yticks=[])
    axes = second.subplots()
    mean = model.encode(counts)[0].numpy()
    points = axes.scatter(*mean.T, c=labels, cmap="tab10", s=8, vmin=-0.5, vmax=9.5)
    second.colorbar(points, ax=axes, ticks=range(10))
    axes.set(title="held-out images, by label", xlabel="$z_0$", ylabel="$z_1$")
    third.suptitle("images and reconstructions")
    again = decode(model, cg.asarray(mean[:12]))
    for i, cell in enumerate(third.subplots(6, 4).flat):
        cell.imshow(counts[i // 2].reshape(8, 8) if i % 2 == 0 else again[i // 2], cmap="gray_r")
        cell.set(xticks=[], yticks=[])
    axes = fourth.subplots()
    if history.rows: axes.plot(history["epoch"], -np.array(history["loss"]), color=BLUE, label="bound, training images")
    if history.rows: axes.plot(history["epoch"], history["bound"], color=RED, label="bound, held-out images")
    for name, limit in limits.items():
        axes.axhline(limit, color="#94a3b8", lw=1)
        axes.annotate(name, (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    axes.set(xlabel="epoch", title="nats for an image")
    if history.rows: axes.legend(frameon=False, loc="center right")
    job.save_figure(figure, path)


def main():
    options = job.options(__doc__, "out/vae", epochs=60)
    cg.random.seed(0)
    (counts, c, labels), (test, test_c, test_labels) = data()
    model = Autoencoder()
    train_data = cg.data.DataLoader((counts, c), BATCH, shuffle=True, seed=0)
    test_data = cg.data.DataLoader((test, test_c), 120)
    solver = cg.optim.Adam(model.parameters(), lr=RATE)
    schedule = cg.optim.CosineAnnealingLR(solver, max(1, options.epochs * len(train_data)))
    updater = cg.trainers.Updater(solver, lambda x, c: -model(x, c).mean(), train_data.next,
                                  update_callback_on_finish=lambda i: schedule.step())
    evaluator = cg.trainers.Evaluator(lambda x, c: model(x, c).mean(), test_data.next, names=["bound"])
    trainer = cg.trainers.Trainer(updater, evaluator, max_epoch=options.epochs)
    history = trainer.train()
    nats = bound(model, test, test_c)
    limits = {"the mean image": mixture(counts, 0 * labels, test, test_c),
              "a mixture of ten": mixture(counts, labels, test, test_c)}
    samples = decode(model, cg.random.normal((500, LATENT)))
    # The share of the variance of the images that the samples have, pixel by pixel in sum.
    variance = samples.var(0).sum() / (test / LEVELS).var(0).sum()
    with cg.memory.profile() as profile: updater.update(trainer.iteration)
    draw(options.output / "picture.png", model, test, test_labels, history, limits)
    wrong = [f"the bound is {nats:.1f} nats; it should be above {limit + 3:.1f}, 3 more than {name} has"
             for name, limit in limits.items() if not nats > limit + 3]
    if not variance > 0.25: wrong.append(f"samples have {variance:.0%} of the images' variance; it should be 25 %")
    lines = [f"bound: {nats:.2f} nats for a held-out image",
             *(f"{name}: {limit:.2f}" for name, limit in limits.items()),
             f"samples have {variance:.0%} of the variance of the images"]
    parameters = sum(p.size for p in model.parameters())
    memory = [f"{parameters:,} parameters: with gradients and Adam's states {16 * parameters:,} bytes"]
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
