"""A convolutional network on scikit-learn's digits, with a Trainer, checkpoints and an evaluation in each epoch.

    pip install 'cygrad[demo]'
    python examples/digits_cnn.py --output out/digits_cnn

1,797 handwritten digits of 8 x 8 pixels are divided: four fifths for training, one fifth for the test. The network has
three convolutions and 26,000 parameters. A run takes some seconds. If it is interrupted, `--resume` goes on from the
last checkpoint, bit for bit as without the interruption. The picture shows the errors, the filters of the first layer,
and the digits that the network is least certain of. The program writes picture.png, memory.txt, memory.html,
history.csv and the checkpoints, and ends with status 1 if more than 4 % of the test digits are wrong."""

import sys

import job
import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import cygrad as cg
from cygrad import nn

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

BATCH, RATE, LIMIT = 64, 3e-3, 0.04
BLUE, RED = "#30638e", "#d1495b"


def data():
    """(training images, labels), (test images, labels): images (n, 1, 8, 8) from 0 to 1."""
    digits = load_digits()
    images, labels = (digits.images[:, None] / 16).astype("float32"), digits.target
    order = np.random.default_rng(0).permutation(len(labels))
    cut = len(labels) * 4 // 5
    return [(images[rows], labels[rows]) for rows in (order[:cut], order[cut:])]


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(256, 10))


def trainer(model, training, test, folder, epochs):
    """A Trainer of the model with Adam, whose rate falls along a cosine."""
    solver = cg.optim.Adam(model.parameters(), lr=RATE)
    train_data, test_data = cg.data.DataLoader(training, BATCH, shuffle=True, seed=0), cg.data.DataLoader(test, 120)
    schedule = cg.optim.CosineAnnealingLR(solver, max(1, epochs * len(train_data)))

    def loss(x, labels): return cg.cross_entropy(model(x), labels)

    def error(x, labels): return (model(x).argmax(-1) != labels).astype("float32").mean()

    updater = cg.trainers.Updater(solver, loss, train_data.next, update_callback_on_finish=lambda i: schedule.step())
    return cg.trainers.Trainer(
        updater, cg.trainers.Evaluator([loss, error], test_data.next, names=["test_loss", "error"]), folder / "run",
        epochs, state={"model": model, "schedule": schedule}, history_path=folder / "history.csv")


def draw(path, history, filters, images, labels, p):
    """The picture: losses and errors by epoch, the filters of the first layer, the digits whose label has the smallest
    probability p (n, 10)."""
    figure = plt.figure(figsize=(14, 4.4), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.2, 0.8, 1])
    axes = left.subplots()
    if history.rows:
        axes.semilogy(history["epoch"], history["loss"], "o-", color=BLUE, label="training loss, with dropout")
        axes.semilogy(history["epoch"], history["test_loss"], "o--", color=BLUE, alpha=0.5, label="test loss")
        axes.semilogy(history["epoch"], np.maximum(history["error"], 1e-3), "s-", color=RED, label="test error")
        axes.legend(frameon=False)
    axes.set(xlabel="epoch", title="digits: loss and error")
    middle.suptitle("the filters of the first layer")
    for kernel, cell in zip(filters, middle.subplots(4, 4).flat, strict=True):
        cell.imshow(kernel, cmap="RdBu", vmin=-1, vmax=1)
    right.suptitle("the least certain test digits:\nlabel, its probability, prediction")
    certainty = p[np.arange(len(labels)), labels]
    for i, cell in zip(np.argsort(certainty), right.subplots(3, 4).flat, strict=False):
        cell.axis("off")
        cell.imshow(images[i, 0], cmap="gray_r")
        cell.set_title(f"{labels[i]}, {certainty[i]:.0%}, {p[i].argmax()}", fontsize=9,
                       color=RED if p[i].argmax() != labels[i] else "black")
    for cell in middle.axes: cell.axis("off")
    job.save_figure(figure, path)


def main():
    options = job.options(__doc__, "out/digits_cnn", "resume", epochs=12)
    cg.random.seed(0)
    training, test = data()
    model = network()
    run = trainer(model, training, test, options.output, options.epochs)
    run.train(options.output / "run" if options.resume else None)
    with cg.predict_mode(): p = cg.softmax(model(test[0])).numpy()
    error = (p.argmax(1) != test[1]).mean()
    with cg.memory.profile() as profile: run.updater[0].update(run.iteration)
    weights = model[0].weight.numpy()[:, 0]
    draw(options.output / "picture.png", run.history, weights / abs(weights).max(), *test, p)
    lines = [f"test error {error:.2%} after {run.epoch} epochs",
             f"checkpoints: {', '.join(sorted(p.name for p in (options.output / 'run').glob('checkpoint*')))}"]
    wrong = [f"{error:.2%} of the test digits are wrong; it should be at most {LIMIT:.0%}"] if error > LIMIT else []
    memory = [f"one batch of {BATCH}, by layer:", *str(model.summary(cg.zeros((BATCH, 1, 8, 8)))).splitlines()]
    return job.finish(options.output, lines, profile, memory, wrong)


if __name__ == "__main__": sys.exit(main())
