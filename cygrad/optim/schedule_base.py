"""The bases of learning-rate schedules: the rates of a solver, its groups, and saved states."""

import itertools
from numbers import Integral
from typing import Any

from cygrad.core.errors import described
from cygrad.optim.answers import of_schedule
from cygrad.optim.settings import count, instance, number, rate_at, shown

CREATED = itertools.count()                         # the order in which schedules were created


def group_rates(solver):
    """The rate of each group of a solver."""
    groups = getattr(solver, "param_groups", None)
    return [solver.learning_rate()] if groups is None else [g["lr"] for g in groups]


def set_rates(solver, rate, rates):
    """Set the rate of a solver and that of each group."""
    solver.set_learning_rate(rate)
    for g, r in zip(getattr(solver, "param_groups", ()), rates, strict=False):
        if g["lr"] != r: g["lr"] = r


class Arguments:
    """Answers for arguments of PyTorch that a schedule does not take."""

    def __new__(cls, *given: Any, **named: Any):
        answer = of_schedule(cls, given, named)
        if answer is not None: raise TypeError(answer)
        return super().__new__(cls)


class SolverSchedule(Arguments):
    """The base of the schedules of a solver. `last_epoch` is the step, which begins with 0, and `base_lrs` has the rate
    of each group when the schedule was created."""

    settings: Any = ()                              # the arguments that state_dict() has, or a dict with their checks
    counters: tuple[str, ...] = ()                  # other attributes that it has
    last_epoch: float = 0

    def __init__(self, solver: Any, **settings: Any):
        name = type(self).__name__
        instance(name, "solver", solver)
        if not all(callable(getattr(solver, f, None)) for f in ("learning_rate", "set_learning_rate")):
            raise TypeError(f"{name}: solver must have learning_rate() and set_learning_rate(rate), as the solvers of "
                            f"cygrad.optim have; got {described(solver)}")
        bases = group_rates(solver)
        self.__dict__.update(self._read(name, len(bases), **settings))
        self.solver, self.base_lrs, self._base, self._created = solver, bases, solver.learning_rate(), next(CREATED)

    def __repr__(self) -> str:
        rates = {}
        if "solver" in self.__dict__:               # (else __init__ raised)
            lr, *others = self.get_last_lr() or [self.solver.learning_rate()]
            rates = {"last_epoch": self.last_epoch, "lr": [lr, *others] if others else lr}
        return shown(self, self._entries() | rates)

    def _entries(self):
        """What the repr shows besides the step and the rates."""
        return {key: self.__dict__[key] for key in self.settings if key in self.__dict__}

    def _read(self, name, n, **settings):
        """The settings of a solver with `n` groups, checked, as a dict."""
        if not isinstance(self.settings, dict): return settings
        return {key: check(name, key, settings[key]) for key, check in self.settings.items()}

    def _check_groups(self):
        n = len(group_rates(self.solver))
        if n != len(self.base_lrs):
            raise RuntimeError(f"{type(self).__name__}: the number of groups of the solver is {n}, and it was "
                               f"{len(self.base_lrs)} when the schedule was created; create the schedule after the "
                               f"groups")

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group of the solver."""
        return group_rates(self.solver)

    def state_dict(self) -> dict[str, Any]:
        """The settings and the step, as numbers, strings, lists and dicts."""
        return {
            "schedule": type(self).__name__, "last_epoch": self.last_epoch, "base_lr": self._base,
            "base_lrs": list(self.base_lrs), "last_lr": self.solver.learning_rate(), "last_lrs": self.get_last_lr(),
            "settings": {key: getattr(self, key) for key in self.settings},
            "counters": {key: getattr(self, key) for key in self.counters},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state_dict() of the same class, with its settings, and set the rates of the solver to the
        saved ones. Raises ValueError or TypeError for another state; then nothing has changed."""
        new = self._read_state(state)
        self._check_groups()
        self._take(new)
        set_rates(self.solver, state["last_lr"], state["last_lrs"])

    def _read_state(self, state):
        """The attributes in a state, checked, as a dict."""
        name, n = type(self).__name__, len(self.base_lrs)
        keys = ("schedule", "last_epoch", "base_lr", "base_lrs", "last_lr", "last_lrs", "settings", "counters")
        if not isinstance(state, dict) or state.keys() != set(keys):
            raise ValueError(f"{name}: a state must be a dict with {', '.join(keys)}, as state_dict() returns, got "
                             f"{described(sorted(map(str, state)) if isinstance(state, dict) else state)}")
        if state["schedule"] != name:
            raise ValueError(f"{name}: this is the state of {described(state['schedule'])}")
        for key, names in (("settings", self.settings), ("counters", self.counters)):
            if not isinstance(state[key], dict) or state[key].keys() != set(names):
                raise ValueError(f"{name}: the {key} of a state must be {', '.join(names) or 'empty'}, got "
                                 f"{described(state[key])}")
        rates = {key: state[key] for key in ("base_lrs", "last_lrs")}
        for key, values in rates.items():
            if not isinstance(values, list) or len(values) != n:
                raise ValueError(f"{name}: {key} of a state must be a list with a rate for each group of the solver "
                                 f"({n}), got {described(values)}")
            rates[key] = [number(name, f"{key}[{k}]", v) for k, v in enumerate(values)]
        number(name, "last_lr", state["last_lr"])
        return self._read(name, n, **state["settings"]) | self._read_counters(name, **state["counters"]) | {
            "last_epoch": self._read_step(name, state["last_epoch"]), "base_lrs": rates["base_lrs"],
            "_base": number(name, "base_lr", state["base_lr"])}

    def _read_counters(self, name):
        return {}

    def _read_step(self, name, step):
        """A step, checked: an int or, between two, a float."""
        if isinstance(step, Integral): count(name, "the step", step, 0)
        value = number(name, "the step", step)
        return int(step) if isinstance(step, Integral) else value

    def _take(self, new):
        """Set the attributes of a state."""
        self.__dict__.update(new)


class LRScheduler(SolverSchedule):
    """The base of the schedules that are functions of the step."""

    multiplies = True                               # the rate is the base times a function of the step

    def __init__(self, solver: Any, **settings: Any):
        super().__init__(solver, **settings)
        self.step(0)

    def _rate(self, t, base, k):
        """The rate at step `t` of group `k`, which began with the rate `base`."""
        raise NotImplementedError(f"{type(self).__name__} has no _rate")

    def get_learning_rate(self, iter: float) -> float:
        """The learning rate of the first group at step `iter`, which need not be the current one."""
        return self._rate_at(self._read_step(type(self).__name__, iter), self.base_lrs[0], 0)

    def _rate_at(self, t, base, k):
        return rate_at(type(self).__name__, t, self._rate(t, base, k))

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next step, or of step `epoch`, which may lie between two. Raises ValueError for
        a negative one or if a rate is not finite, RuntimeError if groups were added to the solver; then nothing has
        changed."""
        t = self.last_epoch + 1 if epoch is None else self._read_step(type(self).__name__, epoch)
        self._check_groups()
        rate = self._rate_at(t, self._base, 0)
        rates = [self._rate_at(t, b, k) for k, b in enumerate(self.base_lrs)]
        set_rates(self.solver, rate, rates)
        self.last_epoch = t
