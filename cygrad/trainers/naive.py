"""Trainers that are wired for one task: classification and regression."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from cygrad.autograd import no_grad
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.core.paths import folder_path
from cygrad.ops.losses.entropy import cross_entropy
from cygrad.optim.settings import count
from cygrad.trainers.evaluator import Evaluator
from cygrad.trainers.history import History
from cygrad.trainers.trainer import Trainer
from cygrad.trainers.updater import Updater


class Naive:
    """What both have in common. A subclass has the measures of predictions: `loss`, and others that are only
    reported."""

    measures: dict[str, Callable[[Tensor, Tensor], Tensor]]

    def __init__(
        self, solver: Any, tinput: Tensor | None = None, tlabel: Tensor | None = None,
        tpred: Callable[..., Tensor] | None = None, tdata: Any = None, vinput: Tensor | None = None,
        vlabel: Tensor | None = None, vpred: Callable[..., Tensor] | None = None, vdata: Any = None,
        monitor_path: str | PathLike[str] | None = None, model_save_path: str | PathLike[str] | None = None,
        max_epoch: int = 1, iter_per_epoch: int | None = None, val_iter: int | None = None, **more: Any,
    ):
        name = type(self).__name__
        for word, f in (("tpred", tpred), ("vpred", vpred)):
            if not callable(f) and (f is not None or word == "tpred"):
                raise TypeError(f"{name}: {word} must be a function of the input that returns predictions, such as a "
                                f"module, got {described(f)}")
        if (vdata is None) != (vpred is None):
            raise ValueError(f"{name}: vpred and vdata belong together, got no "
                             f"{'vdata' if vdata is None else 'vpred'}")
        predict: Any = tpred
        train = self._loader(name, "tdata", tdata, tinput, tlabel)
        measures, others = self.measures, Others({k: f for k, f in self.measures.items() if k != "loss"})

        def loss(x: Any, t: Any) -> Tensor:
            y, t = predict(x), asarray(t)
            others.add(y, t)
            return measures["loss"](y, t)

        def measure(word: str) -> Callable[..., Tensor]:
            return lambda x, t: measures[word](vpred(x), asarray(t))    # type: ignore[misc]

        evaluators: list[Any] = [others] if others.measures else []
        if vdata is not None:
            evaluators.append(Evaluator(
                [measure(word) for word in self.measures], self._loader(name, "vdata", vdata, vinput, vlabel),
                batches(name, "val_iter", val_iter, vdata), names=[f"valid_{word}" for word in self.measures]))
        if monitor_path is not None:
            folder = folder_path(monitor_path, f"{name}: monitor_path", "runs/first")
            os.makedirs(folder, exist_ok=True)
            more = {"history_path": os.path.join(folder, "history.csv")} | more
        if vdata is not None: more = {"best": "valid_loss"} | more
        state = more.pop("state", None)
        if state is None or isinstance(state, Mapping):             # (the loaders, which the Trainer does not see)
            state = {word: data for word, data in (("tdata", tdata), ("vdata", vdata))
                     if callable(getattr(data, "state_dict", None))} | dict(state or {})
        more["state"] = state
        self.trainer = Trainer(Updater(solver, loss, train), evaluators, model_save_path, max_epoch,
                               batches(name, "iter_per_epoch", iter_per_epoch, tdata), **more)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.trainer}>"

    @property
    def history(self) -> History:
        """The history of the trainer."""
        return self.trainer.history

    def train(self, resume: str | PathLike[str] | None = None) -> History:
        """As Trainer.train."""
        return self.trainer.train(resume)

    def _loader(self, name: str, word: str, data: Any, x: Tensor | None, t: Tensor | None) -> Callable[[], Any]:
        """The data_feeder for data with next(), which returns pairs of inputs and labels. The tensors `x` and `t`, if
        they are given, get copies, and are what the predictions are computed from."""
        step = getattr(data, "next", None) or getattr(data, "__next__", None)
        if not callable(step):
            raise TypeError(f"{name}: {word} must have next(), which returns an input and its labels, as a DataLoader "
                            f"has, got {described(data)}")

        def feeder() -> Any:
            batch = step()
            if not isinstance(batch, (tuple, list)) or len(batch) != 2:
                raise TypeError(f"{name}: {word}.next() must return an input and its labels, it returned "
                                f"{described(batch)}")
            return tuple(new if own is None else own.copy_(asarray(new))
                         for new, own in zip(batch, (x, t), strict=True))
        return feeder


class Others:
    """The means, over an epoch of training, of measures that are only reported. A Trainer takes it as an evaluator."""

    def __init__(self, measures: dict[str, Callable[[Tensor, Tensor], Tensor]]):
        self.measures, self.values = measures, dict[str, float]()
        self.sums, self.n = dict.fromkeys(measures, 0.0), 0

    def add(self, y: Tensor, t: Tensor) -> None:
        with no_grad():
            for word, f in self.measures.items(): self.sums[word] += f(y.detach(), t).item()
        self.n += 1

    def evaluate(self, i: int) -> None:
        self.values = {f"training_{word}": total / max(self.n, 1) for word, total in self.sums.items()}
        self.sums, self.n = dict.fromkeys(self.measures, 0.0), 0


def batches(name: str, word: str, given: int | None, data: Any) -> int:
    """The number of batches: the given one, the length of a loader, or nnabla's size // batch_size."""
    if given is None:
        try: given = len(data)
        except TypeError:
            if not (hasattr(data, "size") and hasattr(data, "batch_size")):
                raise ValueError(f"{name}: {word}, the number of batches, is missing; pass it, or a DataLoader over "
                                 f"data with a length") from None
            given = data.size // data.batch_size
    return count(name, word, given)


def labels_of(t: Tensor) -> Tensor:
    """Labels (n,), also of nnabla's (n, 1)."""
    return t.reshape(t.shape[:-1]) if t.ndim > 1 and t.shape[-1] == 1 else t


def squared_error(y: Tensor, t: Tensor) -> Tensor:
    """The mean of (y - t)^2."""
    if y.shape != t.shape:
        raise ValueError(f"NaiveRegressionTrainer: the predictions have shape {y.shape} and the targets {t.shape}; "
                         f"they must agree, since broadcasting would compare each with all")
    return (y - t).square().mean()


class NaiveClassificationTrainer(Naive):
    """Trains a classifier: an Updater with the mean cross-entropy of tpred(x), scores (n, classes), an Evaluator of
    vpred with the loss and the error, and a Trainer of both.

        NaiveClassificationTrainer(solver, tpred=model, tdata=loader, vpred=model, vdata=valid, max_epoch=10).train()

    tdata, vdata: have next(), which returns a batch (input, labels (n,) or (n, 1)), as a DataLoader has. tinput,
    tlabel, vinput, vlabel: tensors to which each batch is copied (None: the batches are used as they are). tpred,
    vpred: functions of the input, such as a module, which may be the same. monitor_path: a folder for history.csv, with
    the columns loss, training_error, valid_loss and valid_error; an error is the share of samples whose largest score
    is not that of the label. iter_per_epoch, val_iter: None is the length of the data. Further keywords are those of
    Trainer; tdata and vdata belong to its state if they have a state_dict(). train(resume=None) and `history` are those
    of `trainer`."""

    measures = {
        "loss": lambda y, t: cross_entropy(y, labels_of(t)),
        "error": lambda y, t: (y.argmax(-1) != labels_of(t)).astype("float64").mean(),
    }


class NaiveRegressionTrainer(Naive):
    """Trains a regression: as NaiveClassificationTrainer, with the mean squared error of predictions and targets of the
    same shape, and the columns loss and valid_loss."""

    measures = {"loss": squared_error}
