"""Tabular regression: cygrad's Regressor beside scikit-learn's Ridge and MLPRegressor, on scikit-learn's diabetes data.

    pip install 'cygrad[demo,sklearn]'
    python examples/tabular.py --output out/tabular

442 patients have ten measurements (age, sex, body mass index, blood pressure, six of blood serum) and one number to
predict, the progress of the disease within a year. The data are few and noisy, so a linear model is hard to beat; the
test is whether a network does as well, and whether it does better than scikit-learn's network of the same size.

The comparison is fair: each model sees the same five folds, standardized in the same way, and chooses the strength of
its weight decay by a cross-validation inside the training rows, on the same three inner folds. The two networks have
the same layers, solver, learning rate, batches and epochs. The program writes table.txt, picture.png, memory.txt and
memory.html into the folder, and ends with status 1 if the network has not learned."""

import argparse
import sys
import time
import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import cygrad as cg
from cygrad.estimators import Regressor

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

HIDDEN, RATE, BATCH, EPOCHS, SEED = (16,), 4e-3, 32, 60, 0
DECAYS = 0.01, 0.03, 0.1
FOLDS, INNER = KFold(5, shuffle=True, random_state=0), KFold(3, shuffle=True, random_state=1)
NETWORK = "cygrad Regressor"
COLORS = {NETWORK: "#d1495b", "MLPRegressor": "#edae49", "Ridge": "#30638e"}


def tuned(model, name, values):
    """The model on standardized inputs, with the best of `values` as its parameter `name`."""
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    return GridSearchCV(pipeline, {f"model__{name}": values}, cv=INNER)


def models():
    """The models by name. MLPRegressor divides alpha by the rows of a batch, and needs a scaler for the target."""
    ours = Regressor(network=HIDDEN, activation="tanh", learning_rate=RATE, batch_size=BATCH, max_epochs=EPOCHS,
                     tolerance=None, random_state=SEED)
    theirs = MLPRegressor(hidden_layer_sizes=HIDDEN, activation="tanh", learning_rate_init=RATE, batch_size=BATCH,
                          max_iter=EPOCHS, tol=0, n_iter_no_change=EPOCHS + 1, random_state=SEED)
    theirs = TransformedTargetRegressor(theirs, transformer=StandardScaler())
    return {"the mean": DummyRegressor(), "Ridge": tuned(Ridge(), "alpha", np.logspace(-1, 3, 9)),
            "MLPRegressor": tuned(theirs, "regressor__alpha", [BATCH * d for d in DECAYS]),
            NETWORK: tuned(ours, "weight_decay", DECAYS)}


def evaluate(model, X, y):
    """(predictions of each row by the model that was not trained on it, R^2 of each fold, seconds)."""
    predicted, scores, start = np.empty_like(y), [], time.perf_counter()
    warnings.simplefilter("ignore", ConvergenceWarning)     # MLPRegressor has one for each fit that ends by max_iter
    for training, test in FOLDS.split(X):
        predicted[test] = clone(model).fit(X[training], y[training]).predict(X[test])
        scores.append(r2_score(y[test], predicted[test]))
    return predicted, np.array(scores), time.perf_counter() - start


def table(results, y):
    """The results as lines."""
    lines = [f"{'model':<18}{'R^2':>8}{'+-':>7}{'RMSE':>8}{'seconds':>9}"]
    for name, (predicted, scores, seconds) in results.items():
        error = root_mean_squared_error(y, predicted)
        lines.append(f"{name:<18}{scores.mean():>8.3f}{scores.std():>7.3f}{error:>8.2f}{seconds:>9.2f}")
    return lines


def measured_fit(X, y, page):
    """Fit the network once more, on all rows, and run one more epoch under a memory profile, which is saved as `page`.
    Returns the network and the lines of the report."""
    X = StandardScaler().fit_transform(X)
    network = Regressor(network=HIDDEN, activation="tanh", learning_rate=RATE, weight_decay=0.03, batch_size=BATCH,
                        max_epochs=EPOCHS, early_stopping=True, patience=20, random_state=SEED)
    before = cg.memory.stats()["live_bytes"]
    network.fit(X, y)
    held = cg.memory.stats()["live_bytes"] - before
    with cg.memory.profile() as profile: clone(network).partial_fit(X, y)
    profile.save(page)
    return network, ["memory of one epoch", *profile.table(by="category").splitlines(),
                     f"a fitted network holds {held:,} bytes"]


def draw(path, results, y, network):
    """The picture: R^2 of each fold, predictions against targets, and the losses of one fit."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    shown = [name for name in results if name in COLORS]
    for i, name in enumerate(shown):
        scores = results[name][1]
        left.bar(np.arange(len(scores)) + 0.27 * (i - 1), scores, width=0.25, color=COLORS[name],
                 label=f"{name}, mean {scores.mean():.3f}")
    left.set(xlabel="fold", ylabel="$R^2$", title="five folds: the same rows for each model", ylim=(0, 0.85))
    left.legend(frameon=False, loc="upper left")
    for name in ("Ridge", NETWORK): middle.plot(y, results[name][0], ".", color=COLORS[name], alpha=0.6, label=name)
    middle.plot([y.min(), y.max()], [y.min(), y.max()], color="#333333", lw=0.8)
    middle.set(xlabel="progress of the disease", ylabel="prediction", title="rows that were not trained on")
    middle.legend(frameon=False)
    epochs = np.arange(1, network.n_iter_ + 1)
    right.plot(epochs, network.loss_curve_, color=COLORS[NETWORK], label="training rows")
    right.plot(epochs, network.validation_curve_, color="#30638e", label="held-out rows")
    right.set(xlabel="epoch", ylabel="squared error / variance of y", title="one fit with early stopping")
    right.legend(frameon=False)
    for axes in (left, middle, right): axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def complaints(results, network):
    """What the network should have learned and has not; empty if all is well."""
    ours, ridge, mlp = (results[name][1].mean() for name in (NETWORK, "Ridge", "MLPRegressor"))
    wrong = []
    if ours < 0.42: wrong.append(f"R^2 is {ours:.3f}; it should be at least 0.42")
    if ours < ridge - 0.03: wrong.append(f"R^2 is {ours:.3f}, that of Ridge {ridge:.3f}; it should be as good")
    if ours < mlp - 0.03: wrong.append(f"R^2 is {ours:.3f}, that of MLPRegressor {mlp:.3f}; it should be as good")
    loss = network.loss_curve_[-1]
    if loss > 0.7: wrong.append(f"the training loss is {loss:.3f} of the variance; it should be at most 0.7")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("out/tabular"), help="the folder (default: %(default)s)")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_diabetes(return_X_y=True, scaled=False)
    results = {name: evaluate(model, X, y) for name, model in models().items()}
    lines = table(results, y)
    network, report = measured_fit(X, y, folder / "memory.html")
    (folder / "table.txt").write_text("\n".join(lines) + "\n")
    (folder / "memory.txt").write_text("\n".join(report) + "\n")
    draw(folder / "picture.png", results, y, network)
    print("\n".join([*lines, "", *report, "", f"written to {folder}: table.txt, picture.png, memory.txt, memory.html"]))
    wrong = complaints(results, network)
    for line in wrong: print(f"not learned: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__": sys.exit(main())
