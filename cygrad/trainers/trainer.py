"""Trainer: epochs of updates, with evaluation, checkpoints, a history and progress."""

from __future__ import annotations                  # so that help() shows Callbacks by its name

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor
from cygrad.core.paths import file_path, folder_path
from cygrad.memory.scopes import track
from cygrad.optim.settings import count, instance, number, shown
from cygrad.trainers.checkpoints import Checkpoints, read
from cygrad.trainers.history import History, is_json
from cygrad.trainers.passes import functions, length_of, loader_of
from cygrad.trainers.progress import Progress, memory

Callbacks: TypeAlias = Callable[..., object] | Iterable[Callable[..., object]]
STATE = ("trainer", "parameters", "solvers", "updaters", "loaders", "generator", "history", "state")


class Trainer:
    """train() runs epochs of updates:

        callback_on_start()
        max_epoch times:
            iter_per_epoch times, with i = 0, 1, 2, ... over all epochs:
                update_callback_on_start(i), update(i) of each updater, update_callback_on_finish(i)
            the parameters are saved as model_save_path/params_{i:06}.safetensors
            evaluate(i) of each evaluator
            a row is added to `history`, and a checkpoint is saved
        callback_on_finish()

    updater, evaluator: one or a list. model_save_path: a folder (None: nothing is saved). iter_per_epoch: None is the
    length of the loader whose next() is the data_feeder of the first updater. The four callbacks are one function or an
    iterable of functions.

    state: a dict of objects with state_dict() and load_state_dict() that belong into a checkpoint, such as {"model":
    model, "schedule": schedule}: modules (for buffers), schedules, loaders that a data_feeder of your own reads.
    Parameters, solvers, updaters with a state_dict(), the loaders whose next() is the data_feeder of an updater or
    evaluator, the default generator and the history are in it without this. keep: how many checkpoints remain; None
    keeps all. Checkpoints of later iterations, which an earlier training left in the folder, are removed when the first
    one is saved, so the last one is that of this training. Parameter files remain.

    patience: training ends early after this many epochs in which `best` has not fallen by more than min_delta. best is
    the name of a column of the history (None: the first value of the first evaluator, or "loss"); "-accuracy", with a
    minus, is one that should rise. nan: "raise" checks the loss and the gradients of each update, and stops at the
    first NaN with FloatingPointError, before the parameters change; the error names the first operator that computed a
    NaN, and its line. (A DynamicLossScalingUpdater expects NaN, so "raise" has no effect on it.) "ignore" does not
    check. progress: a bar with the loss, the rate, and the live and held bytes, with tqdm; None shows it if tqdm is
    installed and the output is a terminal. history_path: a .csv or .json file to which the history is saved after each
    epoch; its folder is made.

    `history` has a row for each epoch: epoch, iteration, loss (the mean over the epoch), the learning rate, the values
    of the evaluators, seconds, peak_bytes, and at the end of the epoch live_bytes and held_bytes (live and cached). In
    a cygrad.memory.budget() the row and the bar also have budget_bytes and recomputed, the share of the work that was
    computed again in it so far. `epoch` and `iteration` are how many are complete, and `stopped` says why training
    ended.

    An exception, Ctrl-C included, leaves the last checkpoint on disk, and train() goes on where it was raised: with the
    update that failed, with the one after it if a callback on finish failed, or with the evaluation. The batch of an
    update that failed is not used again; train(resume=model_save_path) goes on as without the stop. After the last
    epoch, or where patience has ended training, train() does nothing, unless max_epoch or patience was raised. With a
    comm in the updaters or evaluators, rank 0 writes the files, and every rank its own checkpoint, so as many ranks
    must resume; losses are means over the ranks, and all ranks stop together.

    Raises TypeError or ValueError for wrong arguments."""

    def __init__(
        self, updater: Any = None, evaluator: Any = None, model_save_path: str | PathLike[str] | None = None,
        max_epoch: int = 1, iter_per_epoch: int | None = None, callback_on_start: Callbacks = (),
        callback_on_finish: Callbacks = (), update_callback_on_start: Callbacks = (),
        update_callback_on_finish: Callbacks = (), *, state: Mapping[str, Any] | None = None, keep: int | None = 2,
        patience: int | None = None, min_delta: float = 0.0, best: str | None = None, nan: str = "raise",
        progress: bool | None = None, history_path: str | PathLike[str] | None = None,
    ):
        self.updater = self._listed("updater", updater, "update")
        if not self.updater: raise ValueError("Trainer: updater is empty; pass an Updater, or a list of several")
        self.evaluator = self._listed("evaluator", evaluator, "evaluate")
        self.model_save_path = None if model_save_path is None else folder_path(
            model_save_path, "Trainer: model_save_path", "runs/first")
        self.max_epoch = count("Trainer", "max_epoch", max_epoch, 0)
        length = length_of(getattr(self.updater[0], "data_feeder", None))
        if iter_per_epoch is None and length is None:
            raise ValueError("Trainer: iter_per_epoch, the number of updates of an epoch, is missing; pass it, or the "
                             "next() of a DataLoader as data_feeder of the updater")
        self.iter_per_epoch = count("Trainer", "iter_per_epoch", length if iter_per_epoch is None else iter_per_epoch)
        self.callback_on_start = functions("Trainer", "callback_on_start", callback_on_start, "a function")
        self.callback_on_finish = functions("Trainer", "callback_on_finish", callback_on_finish, "a function")
        self.update_callback_on_start = functions("Trainer", "update_callback_on_start", update_callback_on_start)
        self.update_callback_on_finish = functions("Trainer", "update_callback_on_finish", update_callback_on_finish)
        self.state = self._checked_state(state)
        self.keep = None if keep is None else count("Trainer", "keep", keep)
        self.patience = None if patience is None else count("Trainer", "patience", patience)
        self.min_delta = number("Trainer", "min_delta", min_delta)
        if best is not None and not isinstance(best, str):
            raise TypeError(f"Trainer: best must be the name of a column of the history, got {described(best)}")
        self.best = best
        if nan not in ("raise", "ignore"):
            raise ValueError(f"Trainer: nan must be 'raise' or 'ignore', got {described(nan)}")
        self.nan = nan
        if progress is not None and not isinstance(progress, bool):
            raise TypeError(f"Trainer: progress must be True, False or None, got {described(progress)}")
        self.progress = progress
        self.history_path = None if history_path is None else file_path(
            history_path, "Trainer: history_path", "history.csv")
        if self.history_path is not None: is_json(self.history_path, "Trainer: history_path")
        self.history, self.stopped = History(), ""
        self.epoch = self.iteration = 0
        self._losses = [0.0] * len(self.updater)    # the sums over the epoch
        self._seconds, self._peak = 0.0, 0
        self._least, self._worse = math.inf, 0      # for patience
        self._comm, self._running = self._common(), False
        if self.patience is not None and all(hasattr(e, "names") for e in self.evaluator):
            self._measure(self._columns())

    def __repr__(self) -> str:
        save = {} if self.model_save_path is None else {"model_save_path": self.model_save_path}
        return shown(self, {"updater": [type(u) for u in self.updater], "evaluator": [type(e) for e in self.evaluator],
                            **save, "max_epoch": self.max_epoch, "iter_per_epoch": self.iter_per_epoch})

    # ---- arguments

    def _common(self) -> Any:
        """The communicator of the parts, or None."""
        parts = [*self.updater, *(getattr(u, name, None) for u in self.updater for name in ("comm_callback", "solver")),
                 *self.evaluator]
        return next((comm for part in parts if (comm := getattr(part, "comm", None)) is not None), None)

    def _listed(self, name: str, given: Any, method: str) -> tuple[Any, ...]:
        if given is None: return ()
        parts = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        for k, part in enumerate(parts):
            where = f"{name}[{k}]" if isinstance(given, (list, tuple)) else name
            instance("Trainer", where, part)
            if not callable(getattr(part, method, None)):
                raise TypeError(f"Trainer: {where} must have {method}(i), as {name.capitalize()} has, got "
                                f"{described(part)}")
        return parts

    def _checked_state(self, state: Any) -> dict[str, Any]:
        if state is None: return {}
        if not isinstance(state, Mapping):
            raise TypeError(f"Trainer: state must be a dict of objects with state_dict() and load_state_dict(), such "
                            f"as {{'model': model}}, got {described(state)}")
        for name, part in state.items():
            if not isinstance(name, str):
                raise TypeError(f"Trainer: the keys of state must be strings, got {described(name)}")
            instance("Trainer", f"state[{name!r}]", part)
            missing = [m for m in ("state_dict", "load_state_dict") if not callable(getattr(part, m, None))]
            if missing:
                raise TypeError(f"Trainer: state[{name!r}] must have state_dict() and load_state_dict(), got "
                                f"{described(part)} without {' and '.join(missing)}")
        return dict(state)

    # ---- training

    def train(self, resume: str | PathLike[str] | None = None) -> History:
        """Train until max_epoch, and return the history. resume: a checkpoint, or a model_save_path, whose last one is
        loaded first; the run then goes on bit for bit as the one that wrote it. Raises FileNotFoundError if there is
        none, and ValueError or TypeError for a checkpoint of another training; then nothing has changed. Raises
        RuntimeError in a callback of this trainer."""
        if self._running:
            raise RuntimeError("Trainer.train: this trainer is training already; call train() after it has returned, "
                               "not in one of its callbacks")
        self._running = True
        try: return self._train(resume)
        finally: self._running = False

    def _train(self, resume: str | PathLike[str] | None) -> History:
        if resume is not None: self._load(resume)
        files = None
        if self.model_save_path is not None:
            files = Checkpoints(self.model_save_path, self.keep, self._rank)
            files.open()
        if self.history_path is not None and not self._rank:
            os.makedirs(os.path.dirname(os.path.abspath(self.history_path)), exist_ok=True)
        self.stopped = ""
        for f in self.callback_on_start: f()
        for updater in self.updater: updater.checks_nan = self.nan == "raise"
        bar = Progress(self.progress, self.max_epoch * self.iter_per_epoch, self.iteration)
        try:
            while self.epoch < self.max_epoch and not self._is_enough():
                self._train_epoch(bar)
                self._end_epoch(files)
        finally:
            bar.close()
            for updater in self.updater: updater.checks_nan = False
        if self._is_enough():
            self.stopped = f"{self._measure(self.history.rows[-1])[0]} has not become better in {self.patience} epochs"
        else: self.stopped = f"epoch {self.epoch} of {self.max_epoch} is complete"
        for f in self.callback_on_finish: f()
        return self.history

    def _is_enough(self) -> bool:
        return self.patience is not None and self._worse >= self.patience

    @property
    def _rank(self) -> int:
        return 0 if self._comm is None else int(getattr(self._comm, "rank", 0))

    @property
    def _ranks(self) -> int:
        return 1 if self._comm is None else int(getattr(self._comm, "size", 1))

    def _train_epoch(self, bar: Progress) -> None:
        """The updates that are left of this epoch."""
        with track() as tracked:
            try:
                while self.iteration < (self.epoch + 1) * self.iter_per_epoch: self._train_once(bar)
            finally: self._peak = max(self._peak, tracked.peak_bytes)

    def _train_once(self, bar: Progress) -> None:
        start, i = time.perf_counter(), self.iteration
        for f in self.update_callback_on_start: f(i)
        for updater in self.updater: updater.update(i)
        losses = [getattr(updater, "last_loss", None) for updater in self.updater]
        self._losses = [total if y is None else total + y.detach().numpy().sum(dtype="float64").item()
                        for total, y in zip(self._losses, losses, strict=True)]
        self.iteration += 1                         # (from here on, train() goes on with the next update)
        self._seconds += time.perf_counter() - start
        for f in self.update_callback_on_finish: f(i)
        bar.step(self._losses[0] / (self.iteration - self.epoch * self.iter_per_epoch), self._rate(0))

    def _rate(self, k: int) -> float | None:
        rate = getattr(getattr(self.updater[k], "solver", None), "learning_rate", None)
        return rate() if callable(rate) else None

    def _end_epoch(self, files: Checkpoints | None) -> None:
        """Save the parameters, evaluate, and save a checkpoint. If it is interrupted, all of it runs again."""
        i = self.iteration - 1
        if files is not None: files.write_parameters(i, self._parameters())
        row: dict[str, Any] = {"epoch": self.epoch + 1, "iteration": i}
        losses = self._over_ranks([total / self.iter_per_epoch for total in self._losses])
        for k, loss in enumerate(losses):
            row[f"loss{column(k)}"] = loss
            if (rate := self._rate(k)) is not None: row[f"rate{column(k)}"] = rate
        for evaluator in self.evaluator:
            value = evaluator.evaluate(i)
            found = getattr(evaluator, "values", None)
            for name, mean in (found if isinstance(found, dict) else {"value": value}).items():
                if isinstance(mean, (int, float)): row[unique(name, row)] = mean
        row |= {"seconds": self._seconds, "peak_bytes": self._peak, **memory()}
        before = self.history.rows, self.epoch, self._losses, self._seconds, self._peak, self._least, self._worse
        saved = None
        self.history.rows, self.epoch = [*self.history.rows, row], self.epoch + 1
        self._losses, self._seconds, self._peak = [0.0] * len(self.updater), 0.0, 0
        try:
            if self.patience is not None: self._judge(row)
            if files is not None:
                saved = self._saved()               # (on all ranks together: a ShardedSolver exchanges its states)
                if self._rank: files.write(i, saved)
                self._wait()
                if not self._rank:
                    files.write(i, saved)
                    files.prune(i)
                self._wait()                    # (no rank removes older files before rank 0 has a newer one)
                if self._rank: files.prune(i)
        except BaseException:
            self.history.rows, self.epoch, self._losses, self._seconds, self._peak, self._least, self._worse = before
            saved = None                            # (the traceback must not hold it)
            raise
        if self.history_path is not None and not self._rank: self.history.save(self.history_path)

    def _wait(self) -> None:
        if hasattr(self._comm, "barrier"): self._comm.barrier()

    def _over_ranks(self, values: list[float]) -> list[float]:
        """The means of some numbers over the ranks: the same bits on all of them."""
        if self._comm is None: return values
        sums = tensor(np.array([*values, 1.0]))
        self._comm.all_reduce([sums], division=False, inplace=False)
        *found, ranks = sums.tolist()
        return [total / ranks for total in found]

    def _columns(self) -> dict[str, Any]:
        """A row with the columns that the history can have, if evaluators say the names of their values."""
        row: dict[str, Any] = {"epoch": 0.0, "iteration": 0.0}
        for k in range(len(self.updater)):
            row |= dict.fromkeys([f"loss{column(k)}", *[f"rate{column(k)}"] * (self._rate(k) is not None)], 0.0)
        for evaluator in self.evaluator:
            for name in evaluator.names: row[unique(name, row)] = 0.0
        return row | {"seconds": 0.0, "peak_bytes": 0.0} | dict.fromkeys(memory(), 0.0)

    def _measure(self, row: Mapping[str, Any]) -> tuple[str, float]:
        """The name and the value of `best`, which should fall."""
        name = self.best
        if name is None: name = self.evaluator[0].names[0] if self.evaluator and hasattr(
            self.evaluator[0], "names") else "loss"
        plain = name.removeprefix("-")
        if plain not in row:
            raise ValueError(f"Trainer: best must be a column of the history, {', '.join(row)}, got {described(name)}")
        return plain, -row[plain] if name != plain else row[plain]

    def _judge(self, row: Mapping[str, Any]) -> None:
        """Count the epochs without an improvement. All ranks count alike, also if their evaluators have no comm."""
        (value,) = self._over_ranks([self._measure(row)[1]])
        if value < self._least - self.min_delta: self._least, self._worse = value, 0
        else: self._worse += 1

    # ---- checkpoints

    def _parameters(self) -> dict[str, Tensor]:
        """The parameters of the solvers by name. If several solvers have different ones of a name, the name gets the
        number of the solver."""
        found: dict[str, Tensor] = {}
        for k, updater in enumerate(self.updater):
            get = getattr(getattr(updater, "solver", None), "get_parameters", None)
            for name, x in (get() if get is not None else {}).items():
                found[name if found.get(name, x) is x else f"{k}.{name}"] = x
        return found

    def _parts(self) -> dict[str, dict[str, Any]]:
        """What has a state_dict(): the solvers, the updaters and the loaders by number, and `state` by name."""
        def having(parts: Iterable[Any]) -> dict[str, Any]:
            return {f"{k}": p for k, p in enumerate(parts) if callable(getattr(p, "state_dict", None))}

        known = {id(part) for part in self.state.values()}
        loaders = {id(x): x for part in (*self.updater, *self.evaluator)
                   if (x := loader_of(getattr(part, "data_feeder", None))) is not None and id(x) not in known}
        return {"solvers": having(getattr(u, "solver", None) for u in self.updater), "updaters": having(self.updater),
                "loaders": having(loaders.values()), "state": self.state}

    def _saved(self) -> dict[str, Any]:
        """The state of a checkpoint."""
        own = {"epoch": self.epoch, "iteration": self.iteration, "iter_per_epoch": self.iter_per_epoch,
               "least": self._least, "worse": self._worse, "ranks": self._ranks}
        parts = {kind: {name: p.state_dict() for name, p in found.items()} for kind, found in self._parts().items()}
        return {"trainer": own, "parameters": self._parameters(), "generator": list(default_generator.state),
                "history": self.history.state_dict(), **parts}

    def _load(self, path: Any) -> None:
        """Set the state of a checkpoint. If an object refuses its state, all get back theirs."""
        new = read(path, self._rank)
        who = "Trainer.train: resume"
        if new.keys() != {*STATE}:
            raise ValueError(f"{who}: the checkpoint has {described([*new])}; wanted {', '.join(STATE)}")
        parameters, parts = self._parameters(), self._parts()
        check_keys(who, "parameters", new["parameters"], parameters)
        for name, x in parameters.items():
            y = new["parameters"][name]
            if (y.shape, y.dtype) != (x.shape, x.dtype):
                raise ValueError(f"{who}: the parameter {described(name)} is {y.dtype} {y.shape} in the checkpoint and "
                                 f"{x.dtype} {x.shape} here")
        for kind, found in parts.items(): check_keys(who, kind, new[kind], found)
        own = new["trainer"]
        check_own(who, own, new["history"])
        if own["iter_per_epoch"] != self.iter_per_epoch:
            raise ValueError(f"{who}: the checkpoint has {own['iter_per_epoch']} updates in an epoch, this trainer "
                             f"{self.iter_per_epoch}; pass iter_per_epoch={own['iter_per_epoch']}")
        if own["ranks"] != self._ranks:
            raise ValueError(f"{who}: the checkpoint is of {own['ranks']} ranks, and this training has {self._ranks}; "
                             f"resume with as many, or load its params_*.safetensors into a new training")
        undo: list[Callable[[], Any]] = []
        try:
            for kind, found in parts.items():
                for name, part in found.items():
                    undo.append(partial(part.load_state_dict, copied(part.state_dict())))
                    part.load_state_dict(new[kind][name])
            undo.append(partial(default_generator.__setstate__, default_generator.state))
            default_generator.__setstate__(tuple(new["generator"]))
        except BaseException:
            for f in reversed(undo): f()
            raise
        for name, x in parameters.items(): x.detach().copy_(new["parameters"][name])
        self.history.load_state_dict(new["history"])
        self.epoch, self.iteration = own["epoch"], own["iteration"]
        self._least, self._worse = own["least"], own["worse"]
        self._losses, self._seconds, self._peak = [0.0] * len(self.updater), 0.0, 0


def column(k: int) -> str:
    """What follows the names of the columns of updater k."""
    return f"_{k + 1}" if k else ""


def unique(name: str, row: Mapping[str, Any]) -> str:
    """`name`, with a number if the row has it already."""
    k, found = 1, name
    while found in row: found = f"{name}_{(k := k + 1)}"
    return found


def check_own(who: str, own: Any, history: Any) -> None:
    """Raise ValueError unless the trainer's own part of a checkpoint and its history have what they should."""
    wanted = {"epoch": int, "iteration": int, "iter_per_epoch": int, "worse": int, "ranks": int, "least": float}
    if not isinstance(own, Mapping) or not all(isinstance(own.get(name), kind) for name, kind in wanted.items()):
        raise ValueError(f"{who}: 'trainer' of the checkpoint should have the numbers {', '.join(wanted)}, it is "
                         f"{described(own)}")
    rows = history.get("rows") if isinstance(history, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ValueError(f"{who}: 'history' of the checkpoint should have a list of rows, it is {described(history)}")


def check_keys(who: str, kind: str, saved: Any, here: Mapping[str, Any]) -> None:
    """Raise ValueError unless a part of a checkpoint has the names that the trainer has."""
    if not isinstance(saved, Mapping) or saved.keys() != here.keys():
        names = [*saved] if isinstance(saved, Mapping) else saved
        raise ValueError(f"{who}: the {kind} of the checkpoint are {described(names)}, those of this trainer "
                         f"{described([*here])}; resume with the objects that it was made with")


def copied(value: Any) -> Any:
    """A state dict with copies of its tensors."""
    if isinstance(value, Tensor): return value.detach().copy()
    if isinstance(value, Mapping): return {key: copied(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)): return type(value)(copied(part) for part in value)
    return value
