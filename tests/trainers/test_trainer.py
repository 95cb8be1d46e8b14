"""Trainer: the order of calls, files, history, early stops, exceptions, NaN; and the trainers made of it."""

import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.data import DataLoader
from cygrad.testing import fail_allocation
from cygrad.trainers import (
    Evaluator, NaiveClassificationTrainer, NaiveRegressionTrainer, Trainer, Updater,
)

X = np.random.default_rng(0).normal(size=(30, 4)).astype("f4")
T = (X.sum(1) > 0).astype("i8")


class Nothing:
    def update(self, i): pass


class Job:
    """A small training with all that a checkpoint has: parameters, buffers, dropout, a schedule, a shuffled loader."""

    def __init__(self, folder=None, seed=0, loss=None, **more):
        cg.random.seed(seed)
        self.model = model = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
        self.solver = cg.optim.Adam(model.named_parameters(), lr=0.02)
        self.loader = DataLoader((X, T), 8, shuffle=True)
        self.schedule = schedule = cg.optim.StepLR(self.solver, 3, 0.7)

        def error(x, t): return (model(x).argmax(-1) != t).astype("float32").mean()

        self.evaluator = Evaluator(error, DataLoader((X, T), 10).next)
        updater = Updater(self.solver, loss or (lambda x, t: cg.cross_entropy(model(x), t)), self.loader.next)
        state = {"model": model, "loader": self.loader, "schedule": schedule}
        self.trainer = Trainer(updater, self.evaluator, folder, state=state,
                               **{"update_callback_on_finish": lambda i: schedule.step(), "max_epoch": 4,
                                  "progress": False} | more)

    def state(self):
        """Every bit of the training."""
        tensors = {**self.model.state_dict(), **{f"{name}.{key}": x for name, s in self.solver.get_states().items()
                                                 for key, x in s.pstate.items()}}
        return ({name: x.numpy().tobytes() for name, x in tensors.items()}, self.solver.learning_rate(),
                self.loader.state_dict(), cg.random.default_generator.state,
                [(row["loss"], row["error"]) for row in self.trainer.history])


def files(folder): return sorted(os.listdir(folder))


def test_the_order_of_calls(tmp_path):
    calls = []

    class Stage:
        def update(self, i): calls.append(f"update {i}")

        def evaluate(self, i): calls.append(f"evaluate {i} after {files(tmp_path / 'run')[-1]}")

    trainer = Trainer(Stage(), [Stage()], tmp_path / "run", 2, 2, lambda: calls.append("start"),
                      [lambda: calls.append("finish")], lambda i: calls.append(f"<{i}"),
                      (lambda i: calls.append(f">{i}"),), progress=False)
    history = trainer.train()
    assert calls == ["start", "<0", "update 0", ">0", "<1", "update 1", ">1",
                     "evaluate 1 after params_000001.safetensors", "<2", "update 2", ">2", "<3", "update 3",
                     ">3", "evaluate 3 after params_000003.safetensors", "finish"]
    assert history["epoch"] == [1, 2] and trainer.stopped == "epoch 2 of 2 is complete"
    trainer.train()                                 # (nothing is left)
    assert calls[-2:] == ["start", "finish"]


def test_files_and_history(tmp_path):
    job = Job(tmp_path / "run", history_path=tmp_path / "a" / "history.json")
    history = job.trainer.train()
    assert files(tmp_path / "run") == ["checkpoint_000011.safetensors", "checkpoint_000015.safetensors",
                                       *(f"params_{i:06}.safetensors" for i in (3, 7, 11, 15))]
    saved = cg.load(tmp_path / "run" / "params_000015.safetensors")
    assert saved.keys() == dict(job.model.named_parameters()).keys()
    for name, x in job.model.named_parameters(): assert saved[name].tolist() == x.tolist()
    assert history.columns == ["epoch", "iteration", "loss", "rate", "error", "seconds", "peak_bytes",
                               "live_bytes", "held_bytes"]
    assert history["iteration"] == [3, 7, 11, 15] and history["loss"][-1] < history["loss"][0]
    assert json.loads((tmp_path / "a" / "history.json").read_text()) == history.rows
    history.save(tmp_path / "history.csv")
    lines = (tmp_path / "history.csv").read_text().splitlines()
    assert lines[0] == ",".join(history.columns) and len(lines) == 5
    assert [float(line.split(",")[2]) for line in lines[1:]] == history["loss"]
    del job, saved, x               # (from Python 3.12 on, the first import of matplotlib keeps this frame in a cycle)
    for name in ("history.svg", "history.png"):
        history.plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("epoch", [1, 2, 3])
@pytest.mark.parametrize("by", ["folder", "file"])
def test_resuming_equals_no_stop(tmp_path, epoch, by):
    whole = Job()
    whole.trainer.train()
    expected = whole.state()
    first = Job(tmp_path / "run", max_epoch=epoch)
    first.trainer.train()
    second = Job(tmp_path / "run", seed=9)
    path = tmp_path / "run" / (f"checkpoint_{4 * epoch - 1:06}.safetensors" if by == "file" else "")
    second.trainer.train(resume=path)
    assert second.state() == expected and second.trainer.epoch == 4


def test_going_on_after_the_end(tmp_path):
    whole, job = Job(), Job(max_epoch=2)
    job.trainer.train()
    job.trainer.max_epoch = 4
    job.trainer.train()
    state = job.state()
    cg.random.seed(0)
    whole = Job()
    whole.trainer.train()
    assert state == whole.state()


class Stop(Exception): pass


def failing_once(f, at, error=Stop):
    """f, whose call number `at` raises, once."""
    calls = []

    def call(*arguments):
        calls.append(arguments)
        if len(calls) == at + 1: raise error
        return f(*arguments)
    return call


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
@pytest.mark.parametrize("at", [0, 5, 6])
def test_training_goes_on_after_an_exception(tmp_path, at, error):
    whole = Job()
    whole.trainer.train()
    expected = whole.state()
    job = Job(tmp_path / "run", update_callback_on_start=failing_once(lambda i: None, at, error))
    with pytest.raises(error): job.trainer.train()
    assert job.trainer.iteration == at and files(tmp_path / "run")[:1] == (
        ["checkpoint_000003.safetensors"] if at > 4 else [])
    job.trainer.train()
    assert job.state() == expected


class FailingOnce:
    """An evaluator whose evaluation number `at` raises, once."""

    def __init__(self, inner, at): self.inner, self.at, self.values = inner, at, {}

    def evaluate(self, i):
        self.at -= 1
        if self.at == -1: raise Stop
        self.inner.evaluate(i)
        self.values = self.inner.values


def test_an_evaluation_that_fails_runs_again():
    whole = Job()
    whole.trainer.train()
    expected = whole.state()
    cg.random.seed(0)
    job = Job()
    job.trainer.evaluator = FailingOnce(job.evaluator, 2),
    with pytest.raises(Stop): job.trainer.train()
    assert job.trainer.epoch == 2 and job.trainer.iteration == 12 and len(job.trainer.history) == 2
    job.trainer.train()
    assert job.state() == expected


def test_early_stop():
    values = iter([3.0, 2.0, 2.5, 1.99, 1.5])
    kept = Evaluator(lambda: next(values), None, 1, names="error")

    class Stage:
        def update(self, i): pass

    trainer = Trainer(Stage(), kept, max_epoch=10, iter_per_epoch=1, patience=2, min_delta=0.1, progress=False)
    assert trainer.train()["error"] == [3, 2, 2.5, 1.99]
    assert trainer.stopped == "error has not become better in 2 epochs"
    rising = iter([0.5, 0.6, 0.6, 0.7])
    trainer = Trainer(Stage(), Evaluator(lambda: next(rising), None, 1, names="accuracy"), max_epoch=10,
                      iter_per_epoch=1, patience=1, best="-accuracy", progress=False)
    assert trainer.train()["accuracy"] == [0.5, 0.6, 0.6]


def test_what_has_stopped_early_goes_on_with_more_patience(tmp_path):
    """Another train(), and one of a trainer that resumed, does nothing. The history file may fail in the last epoch."""
    values = iter([1.0, 2.0, 3.0, 4.0, 5.0])

    def value():
        if trainer.history_path is not None: (tmp_path / "no").rmdir()          # (train() has made it)
        return next(values)

    trainer = Trainer(Nothing(), Evaluator(value, val_iter=1, names=["value"]), tmp_path / "run", 9, 1, patience=1,
                      progress=False, history_path=tmp_path / "no" / "history.csv")
    for _ in range(2):
        with pytest.raises(OSError): trainer.train()
    assert trainer.epoch == 2
    trainer.history_path = None
    for _ in range(2):
        assert len(trainer.train()) == 2 and trainer.stopped == "value has not become better in 1 epochs"
    again = Trainer(Nothing(), Evaluator(lambda: 3.0, val_iter=1), None, 9, 1, patience=1, progress=False)
    assert len(again.train(resume=tmp_path / "run")) == 2 and again.stopped == trainer.stopped
    trainer.patience = 2
    assert len(trainer.train()) == 3


@pytest.mark.parametrize("point", ["callback_on_start", "update_callback_on_start", "update_callback_on_finish"])
def test_training_inside_of_itself_is_refused(point):
    told = []

    def inside(*i):
        with pytest.raises(RuntimeError) as e: trainer.train()
        told.append(str(e.value))

    trainer = Trainer(Nothing(), None, None, 1, 2, progress=False, **{point: inside})
    assert len(trainer.train()) == 1 and trainer.iteration == 2
    assert {*told} == {"Trainer.train: this trainer is training already; call train() after it has returned, not in "
                       "one of its callbacks"}


def test_nan_in_a_history_file(tmp_path):
    trainer = Trainer(Nothing(), Evaluator(lambda: float("nan"), val_iter=1), None, 1, 1, progress=False,
                      history_path=tmp_path / "h.json")
    assert np.isnan(trainer.train()["value"][0])

    def refuse(name): raise AssertionError(name)

    (row,) = json.loads((tmp_path / "h.json").read_text(), parse_constant=refuse)
    assert row["value"] is None and row["epoch"] == 1


def test_a_state_that_is_refused_changes_nothing(tmp_path):
    """The object that refuses half way, the objects before it, and the generator get back what they had."""
    class Half:
        def __init__(self): self.a = self.b = 0

        def state_dict(self): return {"a": self.a, "b": self.b}

        def load_state_dict(self, state):
            self.a = state["a"]
            if state["b"] == 1: raise ValueError("no b of 1")
            self.b = state["b"]

    def made(half): return Trainer(Nothing(), None, tmp_path, 1, 1, progress=False, state={"half": half})

    half = Half()
    half.a = half.b = 1
    made(half).train()
    half = Half()
    trainer = made(half)
    cg.random.normal((3,))
    generator = cg.random.default_generator.state
    with pytest.raises(ValueError, match="no b of 1"): trainer.train(resume=tmp_path)
    assert (half.a, half.b, trainer.epoch, cg.random.default_generator.state) == (0, 0, 0, generator)


def test_the_first_nan_of_a_forward_pass_is_named():
    calls = []

    def loss(x, t):
        if not calls: calls.append(0)
        calls[0] += 1
        y = x.sum(1, keepdims=True) * cg.ones((1, 2)) + WEIGHT[0]
        if calls[0] > 5: y = cg.log(y - y - 1)      # the line that is named
        return cg.cross_entropy(y, t)

    WEIGHT.append(cg.zeros(2).attach_grad())
    updater = Updater(cg.optim.Sgd(WEIGHT, lr=0.1), loss, DataLoader((X, T), 8).next)
    trainer = Trainer(updater, max_epoch=3, progress=False)
    with pytest.raises(FloatingPointError, match=r"^Updater.update: the loss has a NaN: log, at .*test_trainer.py:\d+ "
                                                 r"in loss, produced the first NaN: its operands had none") as caught:
        trainer.train()
    del caught
    w = WEIGHT.pop()
    assert trainer.iteration == 5 and not np.isnan(w.numpy()).any() and not w.grad.numpy().any()


WEIGHT = []


def test_the_first_nan_of_a_backward_pass_is_named():
    w = cg.tensor([0.0, 1.0]).attach_grad()
    trainer = Trainer(Updater(cg.optim.Sgd([w], lr=0.1), lambda: (cg.sqrt(w) * 0).sum()), iter_per_epoch=1,
                      progress=False)
    with pytest.raises(FloatingPointError, match=r"a gradient has a NaN: the backward of sqrt, recorded at .*, "
                                                 r"produced the first NaN"): trainer.train()
    assert w.tolist() == [0, 1]


@pytest.mark.parametrize(("batch", "start", "said"), [
    (np.array([1.0, np.nan], "f4"), [1.0, 2.0], "argument 0 of the batch has one already"),
    (np.array([1.0, 2.0], "f4"), [np.nan, 2.0], "the parameter '0' has one already"),
])
def test_a_nan_that_was_there_before(batch, start, said):
    w = cg.tensor(start).attach_grad()
    updater = Updater(cg.optim.Sgd([w], lr=0.1), lambda x: (w * x).sum(), lambda: batch)
    with pytest.raises(FloatingPointError, match=said): Trainer(updater, iter_per_epoch=1, progress=False).train()
    Trainer(updater, iter_per_epoch=1, progress=False, nan="ignore").train()
    assert np.isnan(w.numpy()).any()


def test_any_allocation_may_fail(tmp_path):
    """Whichever allocation of loading, an epoch and its checkpoint fails, the same objects can load the checkpoint
    again, and end as if nothing had failed; or go on from where the error was."""
    whole = Job(tmp_path / "run", max_epoch=1)
    whole.trainer.train()
    checkpoint = tmp_path / "run" / "checkpoint_000003.safetensors"
    whole.trainer.max_epoch = 2
    whole.trainer.train()
    expected, n = whole.state(), 0
    while True:
        job = Job(tmp_path / "run", max_epoch=2, keep=None)
        try:
            with fail_allocation(n := n + 1): job.trainer.train(checkpoint)
        except MemoryError: pass
        else: break
        if n % 10 == 0: job.trainer.train()
        job.trainer.train(checkpoint)
        assert job.state() == expected, n
    assert n > 40


def test_progress(capsys):
    Job(max_epoch=1, progress=True).trainer.train()
    shown = capsys.readouterr().err
    assert "4/4" in shown and "loss=" in shown and "lr=" in shown and "live=" in shown and "held=" in shown
    assert "budget=" not in shown
    Job(max_epoch=1, progress=None).trainer.train()             # (the output is no terminal)
    assert not capsys.readouterr().err


def test_memory_in_the_progress_and_the_history(capsys):
    """The live bytes at the end of an epoch, what is held from the system, and what an open budget has cost so far."""
    trainer = Job(max_epoch=1).trainer
    row, = trainer.train().rows
    now = cg.memory.stats()
    assert row["live_bytes"] == now["live_bytes"] <= row["peak_bytes"]
    assert row["held_bytes"] == now["live_bytes"] + now["cached_bytes"] and "budget_bytes" not in row
    w = cg.random.normal((64, 64)).attach_grad()
    solver = cg.optim.Sgd(0.0)
    solver.set_parameters([w])

    def loss():
        h = w
        for _ in range(30): h = cg.tanh(h)
        return h.sum()

    def updated(i):
        solver.zero_grad()
        with cg.record(): y = loss()
        y.backward()
        solver.update()

    updater = SimpleNamespace(update=updated)
    with cg.memory.budget(cg.memory.stats()["live_bytes"] + 12 * w.nbytes) as budget:
        with cg.memory.budget(1 << 40):
            shown, = Trainer(updater, max_epoch=1, iter_per_epoch=3, progress=True).train().rows
        assert shown["budget_bytes"] < 1 << 20 and shown["recomputed"] == budget.recomputed.share > 0.05
    text = capsys.readouterr().err
    assert "budget=" in text and re.search(r"recomputed=\d+\.\d%", text)
    with cg.memory.budget(1 << 40):
        row, = Job(max_epoch=1, best="-recomputed", patience=3).trainer.train().rows
    assert row["recomputed"] == 0 and row["budget_bytes"] == 1 << 40


# ---- ready-made ------------------------------------------------------------------------------------------------------

def test_a_classification(tmp_path):
    cg.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    trainer = NaiveClassificationTrainer(
        cg.optim.Adam(model.named_parameters(), lr=0.02), tpred=model,
        tdata=DataLoader((X, T), 10, shuffle=True, seed=0), vpred=model, vdata=DataLoader((X, T[:, None]), 10),
        monitor_path=tmp_path / "monitor",
        model_save_path=tmp_path / "model", max_epoch=20, progress=False)
    history = trainer.train()
    assert history.columns == ["epoch", "iteration", "loss", "rate", "training_error", "valid_loss", "valid_error",
                               "seconds", "peak_bytes", "live_bytes", "held_bytes"]
    assert history["valid_error"][-1] < 0.1 < history["training_error"][0]
    assert len((tmp_path / "monitor" / "history.csv").read_text().splitlines()) == 21
    assert len(files(tmp_path / "model")) == 22


def test_a_regression_with_nnablas_data_iterator():
    class Data:
        size, batch_size, at = 30, 10, 0

        def next(self):
            self.at = (self.at + 10) % 30
            return X[self.at:self.at + 10], X[self.at:self.at + 10].sum(1, keepdims=True)

    cg.random.seed(0)
    model = nn.Linear(4, 1)
    x, t = cg.zeros((10, 4)), cg.zeros((10, 1))
    trainer = NaiveRegressionTrainer(cg.optim.Sgd(model.named_parameters(), lr=0.1), x, t, model, Data(),
                                     None, None, model, Data(), max_epoch=40, progress=False)
    history = trainer.train()
    assert trainer.trainer.iter_per_epoch == 3 and history["valid_loss"][-1] < 1e-3
    assert x.tolist() == X[:10].tolist()            # (the last batch)
    assert repr(trainer) == ("<NaiveRegressionTrainer of <Trainer: updater=[Updater], evaluator=[Evaluator], "
                             "max_epoch=40, iter_per_epoch=3>>")
