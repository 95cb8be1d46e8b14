"""The wording of errors: trainers, evaluators and histories."""

import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

import cygrad as cg
from cygrad.trainers import (
    Evaluator, History, NaiveClassificationTrainer, NaiveRegressionTrainer, Trainer, Updater,
)
from cygrad.trainers.checkpoints import Checkpoints, read


class Stage:
    def update(self, i): pass

    def evaluate(self, i): pass

    def state_dict(self): return {}

    def load_state_dict(self, state): pass


def root(): return 1.0


def trainer(updater=None, iter_per_epoch=1, **named):
    return Trainer(Stage() if updater is None else updater, iter_per_epoch=iter_per_epoch,
                   **{"progress": False} | named)


def updater(w): return Updater(cg.optim.Sgd({"w": w}, lr=0.1), lambda: (w * 1).sum())


def in_folder(f):
    """A case that gets a new folder."""
    def case():
        with tempfile.TemporaryDirectory() as folder: f(Path(folder))
    return case


def from_file(folder): (folder / "file").touch() or trainer(model_save_path=folder / "file")


def resumed(second, **named):
    """Resume from the checkpoint of another trainer."""
    def case(folder):
        trainer(updater(cg.ones(2).attach_grad()), model_save_path=folder).train()
        trainer(second(), model_save_path=folder, **named).train(resume=folder)
    return in_folder(case)


def not_a_checkpoint(folder):
    cg.save(folder / "a.safetensors", {"x": cg.ones(1)})
    trainer().train(resume=folder / "a.safetensors")


def other_checkpoint(folder):
    cg.save(folder / "a.safetensors", {}, {"format": "cygrad.trainers", "version": "1", "state": "{}"})
    trainer().train(resume=folder / "a.safetensors")


def damaged_checkpoint(state):
    def case(folder):
        cg.save(folder / "a.safetensors", {}, {"format": "cygrad.trainers", "version": "1", "state": state})
        trainer().train(resume=folder / "a.safetensors")
    return in_folder(case)


def dropping_head():
    with cg.record(): return cg.graph.Net.capture(lambda x: cg.dropout(x, 0.5), cg.ones(3)).head()


OWN = dict.fromkeys(("epoch", "iteration", "iter_per_epoch", "worse", "ranks"), 1) | {"least": 1.0}


def for_rank_1(folder):
    Checkpoints(str(folder), None).write(0, {})
    read(folder, 1)


def own_part(own, history):
    """Resume from a checkpoint with this 'trainer' and this 'history'."""
    def case(folder):
        rest = {"parameters": {}, "solvers": {}, "updaters": {"0": {}}, "loaders": {}, "generator": [0, 0], "state": {}}
        Checkpoints(str(folder), None).write(0, {"trainer": own, "history": history} | rest)
        trainer().train(resume=folder)
    return in_folder(case)


def inside_of_itself():
    job = trainer(callback_on_start=lambda: job.train())
    job.train()


class Stateful(Stage):
    def __init__(self, state): self.state = state

    def state_dict(self): return self.state


def saving(state): return in_folder(lambda folder: trainer(Stateful(state), model_save_path=folder).train())


def nested(depth):
    found = 1
    for _ in range(depth): found = [found]
    return found


def without(module, f):
    """A case in which an import fails."""
    def case():
        with mock.patch.dict(sys.modules, {module: None}): f()
    return case


def nan_in_forward():
    with cg.autograd.detect_anomaly(forward=True): cg.log(cg.tensor([-1.0]))


def nan_in_training():
    w = cg.tensor([float("nan")]).attach_grad()
    trainer(updater(w)).train()


def history():
    made = History()
    made.load_state_dict({"rows": [{"epoch": 1, "loss": 2.0}]})
    return made


class Data:
    def __init__(self, batch): self.batch = batch

    def next(self): return self.batch


def naive(kind=NaiveRegressionTrainer, **named):
    w = cg.ones(1).attach_grad()
    data = Data((cg.ones((2, 3)), cg.ones((2, 3))))
    return kind(cg.optim.Sgd([w], lr=0.1), **{"tpred": lambda x: w * x, "tdata": data, "iter_per_epoch": 1,
                                              "progress": False} | named)


NUMBERS = Evaluator(root, None, 1)
CASES = [
    (nan_in_forward, RuntimeError, "log, at <*> in nan_in_forward, produced the first NaN: its operands had none"),
    (nan_in_training, FloatingPointError, "Updater.update: the loss has a NaN: the parameter 'w' has one already<*>"),
    (lambda: trainer(model_save_path=3), TypeError,
     "Trainer: model_save_path: the path of a folder is required, such as 'runs/first'; got 3"),
    (lambda: trainer(model_save_path=""), ValueError,
     "Trainer: model_save_path: the path of a folder is required, such as 'runs/first'; got an empty one"),
    (in_folder(from_file), ValueError,
     "Trainer: model_save_path: the path of a folder is required, got the file '<*>'; name another one"),
    (in_folder(lambda folder: trainer().train(resume=folder)), FileNotFoundError,
     "Trainer.train: resume: there is no checkpoint_*.safetensors in '<*>'; pass the model_save_path of a Trainer that "
     "has ended an epoch, or a checkpoint"),
    (lambda: trainer().train(resume="no/such"), FileNotFoundError,
     "Trainer.train: resume: there is no 'no/such'; pass the model_save_path of a Trainer that has ended an epoch, "
     "or a "
     "checkpoint"),
    (in_folder(not_a_checkpoint), ValueError,
     "Trainer.train: resume: '<*>' is not a checkpoint of a Trainer: its format is None, version None; wanted "
     "cygrad.trainers, version 1"),
    (in_folder(other_checkpoint), ValueError,
     "Trainer.train: resume: the checkpoint has []; wanted trainer, parameters, solvers, updaters, loaders, "
     "generator, history, state"),
    (damaged_checkpoint("{"), ValueError,
     "Trainer.train: resume: '<*>' is not a checkpoint of a Trainer: its state is not JSON"),
    (damaged_checkpoint('{"a": {"tensor": "x"}}'), ValueError,
     "Trainer.train: resume: '<*>' is not a checkpoint of a Trainer: a value is a value of type dict"),
    (saving({"x": {1}}), TypeError,
     "Trainer.train: updaters['0']['x'] is {1}; a state dict can have tensors, arrays, numbers, strings, None, lists, "
     "tuples and dicts of these"),
    (saving({(1, 2): 3}), TypeError,
     "Trainer.train: the keys of updaters['0'] must be strings or numbers, got (1, 2)"),
    (saving({"x": nested(120)}), ValueError, "Trainer.train: updaters<*> is nested more than 100 deep"),
    (saving({"x": np.zeros(2, "f2")}), TypeError,
     "Trainer.train: updaters['0']['x'] cannot be saved: <*>"),
    (lambda: Evaluator(root), ValueError,
     "Evaluator: val_iter, the number of batches, is missing; pass it, or the next() of a DataLoader as data_feeder"),
    (lambda: Evaluator([], None, 1), ValueError,
     "Evaluator: vroot is empty; pass a function, or a list of functions"),
    (lambda: Evaluator("loss", None, 1), TypeError,
     "Evaluator: vroot must be a function of a batch that returns a value, or the head of a net, got 'loss'; pass "
     "net.head('loss')"),
    (lambda: Evaluator(dropping_head(), None, 1), ValueError,
     "Evaluator: vroot is the head of a net that was captured in train mode, in which dropout acts as in training; "
     "capture the net of the evaluation in predict_mode()"),
    (lambda: Evaluator(root, None, 1, 3), TypeError,
     "Evaluator: callback_on_start must be a function of i and a value, or an iterable of functions, got 3"),
    (lambda: Evaluator(root, None, 1, [3]), TypeError,
     "Evaluator: callback_on_start[0] must be a function of i and a value, got 3"),
    (lambda: Evaluator([root, root], None, 1, print), ValueError,
     "Evaluator: callback_on_start has 1 functions for 2 roots; pass one for each, in their order"),
    (lambda: Evaluator(root, None, 1, clear_buffer=1), TypeError,
     "Evaluator: clear_buffer must be True or False, got 1"),
    (lambda: Evaluator(root, None, 1, comm=3), TypeError,
     "Evaluator: comm must have all_reduce(arrays, division=False, inplace=False), got 3"),
    (lambda: Evaluator(root, None, 1, names=["a", "b"]), ValueError,
     "Evaluator: names must be 1 different strings, one for each root, got ['a', 'b']"),
    (lambda: Evaluator(lambda: "x", None, 1).evaluate(0), TypeError,
     "Evaluator: the root 'value' must return a number or a tensor, it returned 'x'"),
    (lambda: history()["error"], ValueError, "the history has no column 'error'; it has epoch, loss"),
    (lambda: history().save("a.txt"), ValueError, "History.save: the path must end with .csv or .json, got 'a.txt'"),
    (without("matplotlib.figure", lambda: history().plot("a.svg")), ImportError,
     "History.plot needs matplotlib, which is not installed: pip install cygrad[plot]"),
    (lambda: history().plot("a.txt"), ValueError,
     "History.plot: the picture must be .png, .svg, .pdf or another type that matplotlib writes, got 'a.txt'"),
    (lambda: History().plot("a.svg"), ValueError, "History.plot: there is nothing to draw; train an epoch first"),
    (lambda: naive(tpred=3), TypeError,
     "NaiveRegressionTrainer: tpred must be a function of the input that returns predictions, such as a module, got 3"),
    (lambda: naive(vpred=abs), ValueError, "NaiveRegressionTrainer: vpred and vdata belong together, got no vdata"),
    (lambda: naive(tdata=3), TypeError,
     "NaiveRegressionTrainer: tdata must have next(), which returns an input and its labels, as a DataLoader has, "
     "got 3"),
    (lambda: naive(NaiveClassificationTrainer, tdata=Data(3)).train(), TypeError,
     "NaiveClassificationTrainer: tdata.next() must return an input and its labels, it returned 3<*>"),
    (lambda: naive(iter_per_epoch=None), ValueError,
     "NaiveRegressionTrainer: iter_per_epoch, the number of batches, is missing; pass it, or a DataLoader over data "
     "with "
     "a length"),
    (lambda: naive(tdata=Data((cg.ones((2, 3)), cg.ones(3)))).train(), ValueError,
     "NaiveRegressionTrainer: the predictions have shape (2, 3) and the targets (3,); they must agree, since "
     "broadcasting would compare each with all"),
    (without("tqdm", lambda: trainer(progress=True).train()), ImportError,
     "Trainer: progress=True needs tqdm, which is not installed: pip install tqdm"),
    (lambda: Trainer(), ValueError, "Trainer: updater is empty; pass an Updater, or a list of several"),
    (lambda: Trainer(Stage()), ValueError,
     "Trainer: iter_per_epoch, the number of updates of an epoch, is missing; pass it, or the next() of a "
     "DataLoader as "
     "data_feeder of the updater"),
    (lambda: trainer(best=3), TypeError, "Trainer: best must be the name of a column of the history, got 3"),
    (lambda: trainer(nan="stop"), ValueError, "Trainer: nan must be 'raise' or 'ignore', got 'stop'"),
    (lambda: trainer(progress=3), TypeError, "Trainer: progress must be True, False or None, got 3"),
    (lambda: trainer([3]), TypeError, "Trainer: updater[0] must have update(i), as Updater has, got 3"),
    (lambda: trainer(state=3), TypeError,
     "Trainer: state must be a dict of objects with state_dict() and load_state_dict(), such as {'model': model}, "
     "got 3"),
    (lambda: trainer(state={3: Stage()}), TypeError, "Trainer: the keys of state must be strings, got 3"),
    (lambda: trainer(state={"a": 3}), TypeError,
     "Trainer: state['a'] must have state_dict() and load_state_dict(), got 3 without state_dict and load_state_dict"),
    (lambda: trainer(history_path="a.txt"), ValueError,
     "Trainer: history_path must end with .csv or .json, got 'a.txt'"),
    (lambda: trainer(best="error", patience=1), ValueError,
     "Trainer: best must be a column of the history, epoch, iteration, loss, seconds, peak_bytes, live_bytes, "
     "held_bytes, got 'error'"),
    (resumed(lambda: updater(cg.ones(3).attach_grad())), ValueError,
     "Trainer.train: resume: the parameter 'w' is float32 (2,) in the checkpoint and float32 (3,) here"),
    (resumed(Stage), ValueError,
     "Trainer.train: resume: the parameters of the checkpoint are ['w'], those of this trainer []; resume with the "
     "objects that it was made with"),
    (own_part({"epoch": 1}, {"rows": []}), ValueError,
     "Trainer.train: resume: 'trainer' of the checkpoint should have the numbers epoch, iteration, iter_per_epoch, "
     "worse, ranks, least, it is a value of type dict"),
    (own_part(OWN | {"ranks": 2}, {"rows": []}), ValueError,
     "Trainer.train: resume: the checkpoint is of 2 ranks, and this training has 1; resume with as many, or load its "
     "params_*.safetensors into a new training"),
    (in_folder(for_rank_1), FileNotFoundError,
     "Trainer.train: resume: there is no '<*>checkpoint_000000-1.safetensors' for rank 1; resume with as many ranks as "
     "the checkpoint has files, all in one folder"),
    (own_part(OWN, {"rows": [3]}),
     ValueError,
     "Trainer.train: resume: 'history' of the checkpoint should have a list of rows, it is a value of type "
     "dict"),
    (inside_of_itself, RuntimeError,
     "Trainer.train: this trainer is training already; call train() after it has returned, not in one of its "
     "callbacks"),
    (resumed(lambda: updater(cg.ones(2).attach_grad()), iter_per_epoch=3), ValueError,
     "Trainer.train: resume: the checkpoint has 1 updates in an epoch, this trainer 3; pass iter_per_epoch=1"),
    (lambda: trainer(callback_on_start=3), TypeError,
     "Trainer: callback_on_start must be a function, or an iterable of functions, got 3"),
    (lambda: trainer(callback_on_start=[3]), TypeError, "Trainer: callback_on_start[0] must be a function, got 3"),
]
