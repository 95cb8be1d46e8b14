"""What cygrad promises of its estimators: dtypes, determinism, weights, early stopping, copies, memory and flags."""

import copy
import os
import pickle
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.datasets import load_digits, make_blobs, make_regression
from sklearn.exceptions import NotFittedError

import cygrad as cg
from cygrad.estimators import Classifier, Regressor

ROOT = Path(__file__).resolve().parents[2]
small = {"network": (8,), "max_epochs": 5, "batch_size": 16, "random_state": 0}
both = pytest.mark.parametrize("make", [Classifier, Regressor])


class Noisy(cg.nn.Module):
    """Draws from the default generator when it is made, and when it trains."""

    def __init__(self, n_features, n_outputs):
        self.hidden = cg.nn.Linear(n_features, 8)
        self.last = cg.nn.Linear(None, n_outputs)

    def forward(self, x):
        return self.last(cg.dropout(cg.relu(self.hidden(x)), 0.2))


def data(n=60, dtype="float64"):
    X, y = make_blobs(n, 4, centers=3, random_state=0)
    return X.astype(dtype), y


def weights_of(model):
    return {name: x.detach().numpy().copy() for name, x in model.network_.state_dict().items()}


def same(a, b):
    a, b = weights_of(a), weights_of(b)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# ---- learning --------------------------------------------------------------------------------------------------------

def test_digits():
    X, y = load_digits(return_X_y=True)
    X, rows = (X / 16).astype("float32"), np.random.default_rng(0).permutation(len(X))
    X, y = X[rows], y[rows]
    model = Classifier(network=(64,), learning_rate=0.005, max_epochs=30, random_state=0).fit(X[:1400], y[:1400])
    assert model.score(X[1400:], y[1400:]) > 0.95
    assert model.network_[0].weight.shape == (64, 64) and model.n_features_in_ == 64
    assert model.loss_curve_[-1] < 0.1 * model.loss_curve_[0] and model.n_iter_ == len(model.loss_curve_) <= 30


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_scale_of_targets_does_not_matter(scale):
    X, y = make_regression(80, 3, noise=1.0, random_state=0)
    model = Regressor(**small | {"max_epochs": 150, "learning_rate": 0.02}).fit(X, scale * y + 100 * scale)
    assert model.score(X, scale * y + 100 * scale) > 0.95 and model.loss_curve_[-1] < 0.05


def test_constant_and_single_targets():
    X, _ = data()
    assert np.allclose(Regressor(**small).fit(X, np.full(60, 0.1)).predict(X), 0.1, atol=3)
    assert Regressor(**small).fit(X[:1], [3.0]).predict(X).shape == (60,)
    assert (Classifier(**small).fit(X, ["a"] * 60).predict(X) == "a").all()


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_and_probabilities_agree(classes):
    X, y = data()
    y = np.array(["x", "y", "z"])[y % classes]
    model = Classifier(**small).fit(X, y)
    scores, p, log_p = model.decision_function(X), model.predict_proba(X), model.predict_log_proba(X)
    assert model.classes_.tolist() == ["x", "y", "z"][:classes]
    assert np.allclose(p.sum(1), 1) and np.allclose(np.exp(log_p), p)
    assert (model.predict(X) == model.classes_[p.argmax(1)]).all()
    if classes == 2: assert scores.shape == (60,) and np.allclose(1 / (1 + np.exp(-scores)), p[:, 1])
    else: assert scores.shape == (60, 3) and (scores.argmax(1) == p.argmax(1)).all()


def test_probabilities_far_from_the_data_are_finite():
    model = Classifier(**small).fit(*data())
    log_p = model.predict_log_proba(np.array([[1e6, -1e6, 1e6, -1e6]]))
    assert np.isfinite(log_p).all() and model.predict_proba(np.full((1, 4), 1e6)).sum() == 1


@pytest.mark.parametrize("solver", ["adam", "SGD", cg.optim.Lion, partial(cg.optim.Momentum, momentum=0.5)])
def test_solvers(solver):
    model = Classifier(**small | {"solver": solver, "learning_rate": 0.01, "weight_decay": 0.1}).fit(*data())
    assert model.loss_curve_[-1] < model.loss_curve_[0]


def test_frozen_parameters_stay():
    made = []

    def network(n_features, n_outputs):
        made.append(cg.nn.Sequential(cg.nn.Linear(n_features, 6).freeze(), cg.nn.Tanh(), cg.nn.Linear(6, n_outputs)))
        made.append(made[0][0].weight.numpy().copy())
        return made[0]

    model = Classifier(**small | {"network": network}).fit(*(data(dtype="float32")))
    assert np.array_equal(weights_of(model)["0.weight"], made.pop()) and model.network_ is made.pop()


# ---- dtypes ----------------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("network", [(8,), Noisy])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_of_inputs_stays(make, network, dtype):
    X, y = data(dtype=dtype)
    model = make(**small | {"network": network}).fit(X, y)
    assert {x.dtype for x in model.network_.parameters()} == {np.dtype(dtype)}
    result = model.predict(X) if make is Regressor else model.predict_proba(X)
    assert result.dtype == dtype
    other = X.astype("float64" if dtype == "float32" else "float32")
    assert np.allclose(model.predict(other), model.predict(X), rtol=1e-3)


@both
def test_integers_bools_and_lists_become_float64(make):
    for X in ([[0, 1], [1, 0], [2, 2]], np.eye(3, 2, dtype=bool), np.ones((3, 2), "i2")):
        assert make(**small).fit(X, [0, 1, 1]).network_[0].weight.dtype == "float64"


@both
def test_names_of_columns(make):
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = make(**small).fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"): model.predict(frame[["b", "a", "c", "d"]])


# ---- random numbers --------------------------------------------------------------------------------------------------

@both
@pytest.mark.parametrize("network", [(8,), Noisy])
def test_one_random_state_gives_one_network(make, network):
    X, y = data()
    state, numpys = cg.random.default_generator.state, np.random.get_state()[1].copy()
    parameters = small | {"network": network, "early_stopping": True}
    one = make(**parameters).fit(X, y)
    assert cg.random.default_generator.state == state and (np.random.get_state()[1] == numpys).all()
    cg.random.uniform((3,))                         # does not matter
    assert same(one, make(**parameters).fit(X, y))
    assert not same(one, make(**parameters | {"random_state": 1}).fit(X, y))


def test_a_random_state_of_numpy_moves():
    random = np.random.RandomState(0)
    model = Classifier(**small | {"random_state": random}).fit(*data())
    assert not same(model, copy.deepcopy(model).fit(*data()))
    again = Classifier(**small | {"random_state": np.random.RandomState(0)}).fit(*data())
    assert same(model, again)


def test_the_number_of_threads_does_not_matter(two_threads):
    two = Classifier(**small | {"network": Noisy}).fit(*data())
    cg.set_num_threads(1)
    assert same(two, Classifier(**small | {"network": Noisy}).fit(*data()))


def test_a_fork_while_a_network_draws(tmp_path):
    """The child can fit, although the lock was held by a thread that it does not have."""
    program = """
import os, threading, numpy as np, cygrad as cg
from cygrad.estimators import Classifier
inside, leave = threading.Event(), threading.Event()
def slow(n, k):
    inside.set(); leave.wait()
    return cg.nn.Linear(n, k)
X, y = np.eye(4), [0, 1, 0, 1]
thread = threading.Thread(target=Classifier(network=slow, max_epochs=1).fit, args=(X, y))
thread.start(); inside.wait()
child = os.fork()
if not child:
    Classifier(network=cg.nn.Linear, max_epochs=1).fit(X, y)
    os._exit(0)
status = os.waitpid(child, 0)[1]
leave.set(); thread.join()
assert status == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                   env=os.environ | {"PYTHONPATH": str(ROOT), "CYGRAD_NUM_THREADS": "1"})


# ---- weights ---------------------------------------------------------------------------------------------------------

@both
def test_weights_are_repetitions(make):
    X, y = data(30)
    weight = np.arange(30) % 3
    whole = small | {"batch_size": 100, "tolerance": None}
    one = make(**whole).fit(X, y, sample_weight=weight)
    two = make(**whole).fit(X.repeat(weight, axis=0), y.repeat(weight))
    one_by_name, two_by_name = weights_of(one), weights_of(two)
    for name, w in one_by_name.items(): assert np.allclose(w, two_by_name[name], rtol=1e-6)
    assert np.allclose(one.loss_curve_, two.loss_curve_)


@both
def test_only_the_ratios_of_weights_count(make):
    X, y = data(dtype="float32")
    model, weight = make(**small), np.linspace(0, 1, 60)
    assert same(make(**small).fit(X, y, weight), model.fit(X, y, 4 * weight))
    assert same(make(**small).fit(X, y), model.fit(X, y, np.full(60, 1e-60)))
    assert same(make(**small).fit(X, y, weight), model.fit(X, y, 2.0**1000 * weight))


# ---- when training stops ---------------------------------------------------------------------------------------------

@both
def test_early_stopping_keeps_the_best_epoch(make):
    X, y = data(200)
    y = np.random.default_rng(0).permutation(y)     # nothing can be learned
    model = make(network=(64,), learning_rate=0.01, early_stopping=True, patience=7, random_state=0, batch_size=50)
    model.fit(X, y)
    best = int(np.argmin(model.validation_curve_))
    assert len(model.validation_curve_) == model.n_iter_ < 200
    short = make(**model.get_params() | {"max_epochs": best + 1, "tolerance": None}).fit(X, y)
    assert same(model, short)


def test_every_class_is_trained_on_when_rows_are_held_out():
    X, y = data(200)
    y[:3] = 3, 4, 5                                 # of which there is one row each
    model = Classifier(**small | {"early_stopping": True, "validation_fraction": 0.9, "max_epochs": 1}).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5] and len(model.validation_curve_) == 1


def test_tolerance_and_patience():
    X, y = data()
    assert Classifier(**small | {"tolerance": None, "max_epochs": 30}).fit(X, y).n_iter_ == 30
    assert Classifier(**small | {"tolerance": 10.0, "patience": 3}).fit(X, y).n_iter_ == 4     # the first is the best
    assert Classifier(**small).fit(X, y).validation_curve_ == []


def test_batches_have_nearly_equal_sizes():
    sizes = []

    class Watched(cg.nn.Linear):
        def forward(self, x):
            if cg.is_training(): sizes.append(len(x))
            return super().forward(x)

    X, y = data(33)
    Classifier(network=Watched, batch_size=16, max_epochs=1).fit(X, y)
    assert sizes == [11, 11, 11]


def test_verbose(capsys):
    Classifier(**small | {"max_epochs": 1, "verbose": True, "early_stopping": True}).fit(*data())
    assert capsys.readouterr().out.startswith("Classifier: epoch 1, loss ")
    Regressor(**small | {"verbose": 1}).partial_fit(*data())
    assert capsys.readouterr().out.startswith("Regressor: partial_fit, loss ")
    Regressor(**small).fit(*data())
    assert capsys.readouterr().out == ""


# ---- partial_fit -----------------------------------------------------------------------------------------------------

def test_partial_fit_is_one_epoch_of_fit():
    X, y = data()
    whole = Classifier(**small | {"tolerance": None}).fit(X, y)
    parts = Classifier(**small)
    for _ in range(5): parts.partial_fit(X, y, classes=[0, 1, 2])
    assert same(whole, parts) and np.allclose(whole.loss_curve_, parts.loss_curve_) and parts.n_iter_ == 5
    copied = pickle.loads(pickle.dumps(parts))
    assert same(parts.partial_fit(X, y), copied.partial_fit(X, y))      # solver's states and generator too


@both
def test_partial_fit_after_fit(make):
    X, y = data()
    model = make(**small).fit(X, y)
    network, before = model.network_, weights_of(model)
    model.partial_fit(X.astype("float32"), y)
    assert model.network_ is network and model.n_iter_ == 6 and network[0].weight.dtype == "float64"
    assert not np.array_equal(before["0.weight"], weights_of(model)["0.weight"])


def test_classes_that_come_later():
    X, y = data()
    model = Classifier(**small).partial_fit(X[y < 2], y[y < 2], classes=[2, 1, 0])
    for _ in range(60): model.partial_fit(X, y)
    assert model.score(X, y) > 0.9


def test_a_partial_fit_that_fails_changes_nothing():
    X, y = data()
    model = Regressor(**small | {"solver": "Momentum"}).partial_fit(X, y)
    copied = copy.deepcopy(model)
    with pytest.raises(ValueError, match="is not finite"): model.partial_fit(X * 1e200, y)
    assert same(model, copied) and model.n_iter_ == 1
    assert same(model.partial_fit(X, y), copied.partial_fit(X, y))


# ---- what an estimator holds and restores ----------------------------------------------------------------------------

@both
@pytest.mark.parametrize("network", [(8,), Noisy])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies(make, network, again):
    X, y = data()
    model = make(**small | {"network": network}).fit(X, y)
    other = again(model)
    assert np.array_equal(model.predict(X), other.predict(X)) and other.loss_curve_ == model.loss_curve_
    other.network_.last.weight.detach().fill_(0) if network is Noisy else other.network_[0].weight.detach().fill_(0)
    assert not same(model, other)


@both
@pytest.mark.parametrize("network", [(8,), Noisy])
@pytest.mark.parametrize("early", [False, True])
def test_no_bytes_stay(make, network, early):
    X, y = data()
    before = cg.memory.stats()
    model = make(**small | {"network": network, "early_stopping": early}).fit(X, y, np.linspace(0, 1, 60))
    model.predict(X)
    held = cg.memory.stats()
    assert held["live_bytes"] - before["live_bytes"] == sum(x.nbytes for x in model.network_.parameters())
    assert held["external_bytes"] == before["external_bytes"]
    model.partial_fit(X, y).fit(X, y)
    assert cg.memory.stats()["live_bytes"] == held["live_bytes"]
    del model
    assert cg.memory.stats()["live_bytes"] == before["live_bytes"]


def test_prediction_is_in_blocks_of_rows():
    X, y = data(20_000, "float32")
    model = Classifier(**small | {"network": (64,), "max_epochs": 1, "batch_size": 256}).fit(X, y)
    with cg.memory.track() as watched: model.predict(X)
    assert watched.peak_bytes < 2.5 * 4096 * 64 * 4 < X.shape[0] * 64 * 4


class Broken(cg.nn.Module):
    """Works until it trains. It leaves flags changed."""

    def __init__(self, n_features, n_outputs):
        self.layer = cg.nn.Linear(n_features, n_outputs)

    def forward(self, x):
        if cg.is_training():
            cg.set_recording(False)
            cg.set_training(True)
            raise KeyboardInterrupt
        return self.layer(x)


@both
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_flags_are_those_of_before(make, recording, training):
    X, y = data()
    model = make(**small | {"network": Noisy})
    state, threads = cg.random.default_generator.state, cg.get_num_threads()
    with cg.record(train_mode=training) if recording else cg.pause(train_mode=training):
        for f in (lambda: model.fit(X, y), lambda: model.predict(X), lambda: model.partial_fit(X, y),
                  lambda: make(**small | {"network": Broken}).fit(X, y),
                  lambda: model.set_params(network=Broken).fit(X, y),
                  lambda: model.fit(X, y[:3]), lambda: model.predict(X[:, :2])):
            try: f()
            except (KeyboardInterrupt, ValueError): pass
            assert (cg.is_recording(), cg.is_training()) == (recording, training)
            assert (cg.random.default_generator.state, cg.get_num_threads()) == (state, threads)
    assert cg.get_default_dtype() == "float32"


@both
def test_predictions_are_not_recorded(make):
    X, y = data()
    model = make(**small).fit(X, y)
    with cg.record() as tape:
        model.predict(X)
        model.partial_fit(X, y)
        assert tape.nodes == 0


@both
def test_a_fit_that_fails_changes_nothing(make):
    X, y = data()
    model = make(**small).fit(X, y)
    before = dict(vars(model))
    for broken in ({"network": Broken}, {"solver": "none"}, {"batch_size": 0}):
        parameters = model.get_params()
        with pytest.raises((KeyboardInterrupt, ValueError)): model.set_params(**broken).fit(X[:, :2], y + 5)
        model.set_params(**parameters)
        assert vars(model) == before
    fresh = make(**small | {"network": Broken})
    with pytest.raises(KeyboardInterrupt): fresh.fit(X, y)
    with pytest.raises(NotFittedError): fresh.predict(X)


def test_every_allocation_may_fail():
    """A fit that has no memory raises MemoryError, leaks nothing and leaves the estimator as it was."""
    X, y = data(20)
    model = Classifier(**small | {"max_epochs": 2, "early_stopping": True}).fit(X, y)
    before, live, n = weights_of(model), cg.memory.stats()["live_bytes"], 0
    while True:
        try:
            with cg.testing.fail_allocation(n + 1): model.fit(X, y)
        except MemoryError: n += 1
        else: break
        now = weights_of(model)
        assert cg.memory.stats()["live_bytes"] == live and all((before[k] == now[k]).all() for k in before)
    assert n > 20


def test_threads_fit_at_the_same_time():
    X, y = data()
    alone, together = Classifier(**small | {"network": Noisy}).fit(X, y), []
    threads = [threading.Thread(target=lambda: together.append(Classifier(**small | {"network": Noisy}).fit(X, y)))
               for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(together) == 4 and all(same(alone, model) for model in together)


# ---- the package -----------------------------------------------------------------------------------------------------

def run(program, tmp_path, hidden=True):
    """Run a program in which scikit-learn cannot be imported."""
    if hidden: (tmp_path / "sklearn.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": path})


def test_cygrad_does_not_import_scikit_learn(tmp_path):
    program = "import sys, cygrad; cygrad.nn, cygrad.trainers; assert 'sklearn' not in sys.modules; cygrad.estimators"
    done = run(program, tmp_path, hidden=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["import cygrad.estimators", "from cygrad import estimators",
                                 "import cygrad; cygrad.estimators", "from cygrad.estimators import Classifier"])
def test_without_scikit_learn(how, tmp_path):
    done = run(how, tmp_path)
    assert done.stderr.endswith("ImportError: cygrad.estimators needs scikit-learn 1.6 or newer, which is not "
                                "installed: pip install \"cygrad[sklearn]\"\n")


def test_the_example(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "examples" / "tabular.py", "--output", tmp_path / "out"],
                          capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"table.txt", "picture.png", "memory.txt", "memory.html"}
    assert "cygrad Regressor" in done.stdout and "a fitted network holds 1,544 bytes" in done.stdout
