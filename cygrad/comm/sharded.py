"""ShardedSolver: a solver whose states are divided among the ranks."""

from __future__ import annotations                  # so that help() shows types by their names

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cygrad.autograd import pause
from cygrad.comm.arrays import Pack, ElementStream, text
from cygrad.comm.communicator import Communicator
from cygrad.comm.sums import SEGMENT, segments
from cygrad.core.errors import described
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import empty
from cygrad.optim import files
from cygrad.optim.groups import ParameterGroup, Parameters, each_group
from cygrad.optim.parameters import check_names
from cygrad.optim.settings import instance, shown
from cygrad.optim.solver import Solver
from cygrad.optim.solvers import Sgd

NAME = "ShardedSolver"


class ShardedSolver:
    """A solver whose states are divided among the ranks of a communicator. Each parameter belongs to one rank, so that
    the ranks hold equal numbers of bytes, as nearly as whole parameters allow. Only this rank holds its states and
    updates it. The new values then go to all ranks.

        solver = ShardedSolver(Adam(alpha=0.001), comm)
        solver.set_parameters(parameters)

    solver: a solver of cygrad.optim, with parameters or without. States of parameters that belong to other ranks are
    released; without parameters they are never allocated. It must not be used by itself any more.

    All ranks make the same calls in the same order: the constructor, set_parameters(), update(), state_dict() and
    load_state_dict() exchange messages. Before an update, the gradients must be sums over ranks, for example by
    Communicator.all_reduce_callback(). Decay, clipping, scaling and checks apply to the gradients of all parameters on
    each rank, without messages. An update gives the bits of the solver in one process, if it had these gradients.

    Raises TypeError or ValueError as Solver.set_parameters does."""

    def __init__(self, solver: Solver, comm: Communicator):
        instance(NAME, "solver", solver)
        instance(NAME, "comm", comm)
        if not isinstance(solver, Solver):
            raise TypeError(f"{NAME}: solver must be a solver of cygrad.optim, got {described(solver)}")
        if not isinstance(comm, Communicator):
            raise TypeError(f"{NAME}: comm must be a Communicator, got {described(comm)}")
        self.solver, self.comm, self._channel = solver, comm, comm._channel
        self._parameters: dict[str, Tensor] = {}
        self._groups: list[list[str]] = [[]]
        self._owner: dict[str, int] = {}
        names = {id(x): name for name, x in solver.get_parameters().items()}
        groups = [{names[id(x)]: x for x in group["params"]} for group in solver.param_groups]
        self._divide(groups, lambda: solver.remove_parameters([k for k, r in self._owner.items() if r != comm.rank]))

    def set_parameters(self, parameters: Parameters) -> None:
        """As Solver.set_parameters, with reset=True."""
        try: given = each_group("set_parameters", parameters, 0)
        except Exception as e:
            self._agree(NAME, "parameters", error=e)
            raise

        def own():
            mine = [({k: x for k, x in names.items() if self._owner[k] == self.comm.rank}, settings)
                    for names, settings in given]
            self.solver.set_parameters([{**(settings or {}), "params": names} for names, settings in mine]
                                       if mine[0][1] is not None else mine[0][0])

        self._divide([names for names, _ in given], own)

    def _divide(self, groups, own):
        """Assign each parameter of `groups`, dicts by name, to a rank. own() leaves those of this rank in the solver.
        """
        before = self._parameters, self._groups, self._owner
        gradients, error = Sgd(1.0), None           # has all parameters, and no states
        parameters = {name: x for group in groups for name, x in group.items()}
        try:
            gradients.set_parameters([{"params": group} for group in groups])
            self._parameters, self._groups = parameters, [[*group] for group in groups]
            self._owner = owners({name: x.nbytes for name, x in parameters.items()}, self.comm.size)
        except Exception as e: error = e
        try:
            said = [] if error else [f"{name!r}, {text(x)}" for name, x in parameters.items()]
            self._agree(NAME, "parameters", said, error)
            try: own()
            except Exception as e: error = e
            self._agree(NAME, "parameters", [], error)
        except BaseException:
            self._parameters, self._groups, self._owner = before
            raise
        finally: error = None
        self._gradients = gradients
        states = self.solver.get_states()
        held = sum(t.nbytes for pstate, _ in states.values() for t in pstate.values())
        self._bytes = [int(n) for n in self._channel.gather(np.array([held]))[:, 0]]
        keys = self._channel.texts(json.dumps(next(([*s.pstate] for s in states.values()), None)))
        self._keys = next((k for k in map(json.loads, keys) if k is not None), [])

    def _agree(self, call, label="", arrays=(), error=None):
        try:
            with self._channel.lock: self._channel.agree(call, (), label, arrays, error)
        finally: error = None                       # (it refers to this frame)

    def __repr__(self) -> str:
        n = len(self._parameters)
        return shown(self, {"solver": type(self.solver), "lr": self.lr, "bytes_per_rank": self._bytes},
                     f"{n} parameter{'s' * (n != 1)}")

    def bytes_per_rank(self) -> list[int]:
        """The bytes of the states that each rank holds."""
        return list(self._bytes)

    # ---- parameters, groups and rates

    def get_parameters(self) -> dict[str, Tensor]:
        """The parameters of all ranks, as a dict by name."""
        return dict(self._parameters)

    @property
    def param_groups(self) -> list[ParameterGroup]:
        """The groups of parameters, as in Solver.param_groups. Assign the same on all ranks."""
        return [ParameterGroup(self, group, names)
                for group, names in zip(self.solver.param_groups, self._groups, strict=True)]

    def _read_group(self, group):
        return {key: value for key, value in group.items() if key != "params"}

    def _write_group(self, group, key, value):
        group[key] = value

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self.solver.lr

    def learning_rate(self) -> float:
        """The learning rate."""
        return self.solver.learning_rate()

    def set_learning_rate(self, lr: float) -> None:
        """As Solver.set_learning_rate. Set the same on all ranks."""
        self.solver.set_learning_rate(lr)

    # ---- gradients

    def zero_grad(self) -> None:
        """As Solver.zero_grad."""
        self._gradients.zero_grad()
        self.solver._drop_decay()   # type: ignore[attr-defined]  # (private, so not in the stub)

    def weight_decay(self, rate: float) -> None:
        """As Solver.weight_decay."""
        if self.solver.weight_decay_is_fused():
            self.solver.weight_decay(rate)
            return
        for group, own in zip(self._gradients.param_groups, self.solver.param_groups, strict=True):
            group["wd_mult"] = own["wd_mult"]
        self._gradients.weight_decay(rate)

    def weight_decay_is_fused(self) -> bool:
        """As Solver.weight_decay_is_fused."""
        return self.solver.weight_decay_is_fused()

    def clip_grad_by_norm(self, clip_norm: float) -> None:
        """As Solver.clip_grad_by_norm."""
        self._gradients.clip_grad_by_norm(clip_norm)

    def clip_grad_by_global_norm(self, clip_norm: float) -> float:
        """As Solver.clip_grad_by_global_norm: the norm is that of the gradients of all parameters."""
        return self._gradients.clip_grad_by_global_norm(clip_norm)

    def clip_grad_by_value(self, clip_value: float) -> None:
        """As Solver.clip_grad_by_value."""
        self._gradients.clip_grad_by_value(clip_value)

    def scale_grad(self, scale: float) -> None:
        """As Solver.scale_grad."""
        self._gradients.scale_grad(scale)

    def check_inf_grad(self) -> bool:
        """As Solver.check_inf_grad."""
        return self._gradients.check_inf_grad()

    def check_nan_grad(self) -> bool:
        """As Solver.check_nan_grad."""
        return self._gradients.check_nan_grad()

    def check_inf_or_nan_grad(self) -> bool:
        """As Solver.check_inf_or_nan_grad."""
        return self._gradients.check_inf_or_nan_grad()

    # ---- the update

    def update(self, update_pre_hook: Callable[[], object] | None = None,
               update_post_hook: Callable[[], object] | None = None) -> None:
        """As Solver.update: each rank updates its parameters, and the new values go to all ranks. Hooks run for the
        parameters of this rank. Raises ValueError on all ranks, with nothing changed, if the ranks have reached other
        parameters. If an update fails on one rank, the others raise RuntimeError; parameters are equal on all ranks."""
        if not self._parameters: self.solver.update()           # (raises)
        reached = self._reached()
        with self._channel.lock, pause(train_mode=None):
            failed = self._update(reached, update_pre_hook, update_post_hook)
        for name, x in reached.items():
            if self._owner[name] != self.comm.rank: x.fresh_grad = False
        try:
            if failed is not None: raise failed
        finally: failed = None
        if not reached:
            warnings.warn("update: no backward pass has reached a parameter since the last update or zero_grad(), so "
                          "nothing has changed; if you wrote to a gradient in place, set fresh_grad = True on its "
                          "variable", UserWarning, stacklevel=2)

    def _reached(self):
        return {name: x for name, x in self._parameters.items() if x.fresh_grad and x.grad is not None}

    def _update(self, reached, before, after):
        """Update, and exchange the new values. Returns what this rank raises afterwards, or None."""
        error = None
        try:
            try:
                self._refuse_slices(reached)
                exchange = Exchange(self._channel, [
                    [x for name, x in reached.items() if self._owner[name] == r] for r in range(self.comm.size)])
            except Exception as e: error = e
            self._agree("update", "parameters", [
                f"{name!r}, {'reached' if name in reached else 'not reached'}" for name in self._parameters], error)
            try:
                if any(self._owner[name] == self.comm.rank for name in reached):
                    self.solver.update(before, after)
                else: self.solver._drop_decay()
            except Exception as e: error = e
            exchange.run()
            told = f"{type(error).__name__}: {error}" if error is not None else ""
            texts = self._channel.texts(told)
            rank = next((r for r, t in enumerate(texts) if t), None)
            if error is not None or rank is None: return error
            return RuntimeError(f"update: rank {rank} raised {texts[rank]}; the parameters are equal on all ranks, but "
                                f"some may be as before the update")
        finally: error = None

    def _refuse_slices(self, reached):
        for name, x in reached.items():
            if isinstance(x.grad, GradientSlice) and not self.solver.row_sparse:
                raise TypeError(f"update: the gradient of {name!r} is a GradientSlice, and "
                                f"{type(self.solver).__name__} takes only tensors; use embedding() with sparse=False")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """As Solver.step."""
        loss = closure() if closure is not None else None
        self.update()
        return loss

    # ---- states

    def state_dict(self) -> dict[str, Any]:
        """The states of all parameters on each rank, as Solver.state_dict returns them in one process, so that any
        number of ranks can load them. Tensors of this rank's parameters are the solver's own, the others are copies:
        the dict holds the memory of all states while it lives."""
        error, found, own = None, {}, files.state_dict(self.solver)
        try:
            for name, x in self._parameters.items():
                mine = self._owner[name] == self.comm.rank
                found[name] = own["state"][name] if mine else {
                    key: empty(x.shape, dtype=x.dtype) for key in self._keys}
        except Exception as e: error = e
        with self._channel.lock:
            try: self._agree("state_dict", error=error)
            finally: error = None
            for name, entry in found.items():
                for key in self._keys: self._channel.spread(entry[key].numpy().reshape(-1), self._owner[name])
            steps = np.array([found[name].get("step", 0) for name in found], np.int64)
            steps = self._channel.gather(steps)
        for k, (name, entry) in enumerate(found.items()): entry["step"] = int(steps[self._owner[name], k])
        groups = [{**group, "params": names} for group, names in zip(own["param_groups"], self._groups, strict=True)]
        return {**own, "state": found, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """As Solver.load_state_dict, from a state_dict() of any number of ranks, or of a solver that is not sharded.
        All ranks pass the same. Raises as that does, on all ranks; then nothing has changed."""
        error = part = None
        try:
            part = self._part(state_dict)
            files.check("load_state_dict", "dict", self.solver, part)
        except Exception as e: error = e
        try: self._agree("load_state_dict", error=error)
        finally: error = None
        files.load_state_dict(self.solver, part)

    def _part(self, given):
        """What the solver of this rank loads of a state_dict(), all of which is checked."""
        call = "load_state_dict"
        if not isinstance(given, Mapping) or not isinstance(given.get("state"), Mapping) or not isinstance(
                given.get("param_groups"), list) or not all(map(files.is_group, given["param_groups"])):
            got = described([*map(str, given)]) if isinstance(given, Mapping) else described(given)
            raise ValueError(f"{call} takes what state_dict() returned, a dict with state, param_groups and others; "
                             f"got {got}")
        missing = {*files.KEYS} - given.keys()
        if missing: raise ValueError(f"{call}: the dict has no {', '.join(sorted(missing))}")
        check_names(f"{call}: the names in the dict", self._parameters, given["state"])
        groups = files.matched(call, "dict", [{"params": names} for names in self._groups], given["param_groups"])
        for name, x in self._parameters.items():
            entry = given["state"][name]
            fits = isinstance(entry, Mapping) and entry.keys() == {*self._keys, "step"} and all(
                isinstance(entry[key], Tensor) and text(entry[key]) == text(x) for key in self._keys)
            if not fits or type(entry["step"]) is not int or not 0 <= entry["step"] < 2**63:
                raise ValueError(f"{call}: the state of {name!r} must have the tensors "
                                 f"{', '.join(self._keys) or 'none'} like the parameter, {text(x)}, and the number of "
                                 f"updates, step; got {listing(entry)}")
        mine = {name for name, r in self._owner.items() if r == self.comm.rank}
        groups = [{**group, "params": [name for name in group["params"] if name in mine]} for group in groups]
        return {**given, "state": {name: given["state"][name] for name in self._parameters if name in mine},
                "param_groups": groups}


def listing(entry):
    """The entries of a state, for a message."""
    if not isinstance(entry, Mapping): return described(entry)
    return ", ".join(f"{key}: {described(value)}" for key, value in entry.items()) or "an empty dict"


def owners(nbytes, size):
    """name -> rank: each parameter, the largest first, goes to the rank that has the fewest bytes so far."""
    held, owner = [0] * size, {}
    for name in sorted(nbytes, key=lambda name: -nbytes[name]):         # (stable, so equal on all ranks)
        r = held.index(min(held))
        owner[name] = r
        held[r] += nbytes[name]
    return {name: owner[name] for name in nbytes}


class Exchange:
    """Sends the parameters of each rank to all others: tensors[r] are those of rank r. Allocates; run() sends."""

    def __init__(self, channel, tensors):
        self.channel, self.rounds = channel, []
        for dtype in dict.fromkeys(x.dtype for some in tensors for x in some) if channel.size > 1 else ():
            parts = [ElementStream([x for x in some if x.dtype == dtype]) for some in tensors]
            n = min(max(s.size for s in parts), SEGMENT // dtype.itemsize // channel.size + 1)
            packs = [Pack(0 if r == channel.rank else n, 0, dtype) for r in range(channel.size)]
            self.rounds.append((parts, packs, Pack(n, 0, dtype), n))

    def run(self):
        """Send and receive."""
        rank = self.channel.rank
        for parts, packs, own, n in self.rounds:
            for start, _ in segments(max(s.size for s in parts), n):
                sizes = [max(0, min(n, s.size - start)) for s in parts]
                mine = parts[rank].read(start, start + sizes[rank], own.out)
                self.channel.swap([mine] * len(parts), [p.out[:m] for p, m in zip(packs, sizes, strict=True)])
                for r, (s, p, m) in enumerate(zip(parts, packs, sizes, strict=True)):
                    if r != rank and m: s.write(start, start + m, p.tensor[:m])
