"""Learning-rate schedules. The rate is a function of the step, so a schedule that is resumed continues exactly.

nnabla's (`...Scheduler`) return a rate: solver.set_learning_rate(schedule.get_learning_rate(i)).

PyTorch's (`...LR`) belong to a solver. They multiply or replace the rates that its groups had when the schedule was
created, at once and in each step(). Call step() after each update, or step(i) before update i, for instance as
update_callback_on_start of an Updater. The rates at each step are those of PyTorch, up to rounding. Here each step
evaluates the formula; PyTorch multiplies the previous rate, so there a set_learning_rate() between two steps persists,
and here the next step overwrites it. To combine schedules use SequentialLR or ChainedScheduler."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from cygrad.core.errors import described
from cygrad.optim.schedule_base import LRScheduler, SolverSchedule, group_rates, set_rates
from cygrad.optim.schedulers import (
    CosineScheduler, ExponentialScheduler, LinearWarmupScheduler, PolynomialScheduler, Schedule, StepScheduler,
)
from cygrad.optim.settings import choice, count, increasing, instance, number, per_group, power

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CosineScheduler", "CyclicLR",
    "ExponentialLR", "ExponentialScheduler", "LRScheduler", "LambdaLR", "LinearLR", "LinearWarmupScheduler",
    "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "PolynomialScheduler", "ReduceLROnPlateau",
    "Schedule", "SequentialLR", "StepLR", "StepScheduler",
]

# ---- of PyTorch

def share(owner, name, value):
    """A number from 0 to 1."""
    return number(owner, name, value, 0, 1)


def milestones_of(owner, name, value):
    """Steps, which may be equal."""
    return increasing(owner, name, value, False)


class StepLR(LRScheduler):
    """base gamma^floor(t / step_size)"""

    settings = {"step_size": count, "gamma": number}

    def __init__(self, solver: Any, step_size: int, gamma: float = 0.1):
        super().__init__(solver, step_size=step_size, gamma=gamma)

    def _rate(self, t, base, k):
        return base * power(self.gamma, t // self.step_size)


class MultiStepLR(LRScheduler):
    """base gamma^n, where n of the milestones are at most t. A milestone may be listed several times."""

    settings = {"milestones": milestones_of, "gamma": number}

    def __init__(self, solver: Any, milestones: Sequence[int], gamma: float = 0.1):
        super().__init__(solver, milestones=milestones, gamma=gamma)

    def _rate(self, t, base, k):
        return base * power(self.gamma, bisect_right(self.milestones, t))


class ExponentialLR(LRScheduler):
    """base gamma^t"""

    settings = {"gamma": number}

    def __init__(self, solver: Any, gamma: float):
        super().__init__(solver, gamma=gamma)

    def _rate(self, t, base, k):
        return base * power(self.gamma, t)


class ConstantLR(LRScheduler):
    """base factor before step total_iters, then base."""

    settings = {"factor": share, "total_iters": count}

    def __init__(self, solver: Any, factor: float = 1 / 3, total_iters: int = 5):
        super().__init__(solver, factor=factor, total_iters=total_iters)

    def _rate(self, t, base, k):
        return base * self.factor if t < self.total_iters else base


class LinearLR(LRScheduler):
    """base (start_factor + (end_factor - start_factor) min(t, total_iters) / total_iters): a linear warm-up."""

    settings = {"start_factor": share, "end_factor": share, "total_iters": count}

    def __init__(self, solver: Any, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5):
        super().__init__(solver, start_factor=start_factor, end_factor=end_factor, total_iters=total_iters)

    def _rate(self, t, base, k):
        share = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class PolynomialLR(LRScheduler):
    """base (1 - min(t, total_iters) / total_iters)^power"""

    settings = {"total_iters": count, "power": number}

    def __init__(self, solver: Any, total_iters: int = 5, power: float = 1.0):
        super().__init__(solver, total_iters=total_iters, power=power)

    def _rate(self, t, base, k):
        return base * (1 - min(t, self.total_iters) / self.total_iters) ** self.power


def cosine(start, end, share):
    """From `start` to `end` along half a period of the cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


class CosineAnnealingLR(LRScheduler):
    """eta_min + (base - eta_min) (1 + cos(pi t / T_max)) / 2        (Loshchilov and Hutter 2017, without restarts)"""

    settings = ("T_max", "eta_min")

    def __init__(self, solver: Any, T_max: int, eta_min: float = 0.0):
        super().__init__(solver, T_max=T_max, eta_min=eta_min)

    def _read(self, name, n, T_max, eta_min):
        eta_min = number(name, "eta_min", eta_min)
        return {"T_max": count(name, "T_max", T_max), "eta_min": eta_min, "multiplies": not eta_min}

    def _rate(self, t, base, k):
        return cosine(base, self.eta_min, t / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """eta_min + (base - eta_min) (1 + cos(pi T_cur / T_i)) / 2, where T_cur steps have passed since the last restart.
    The first period T_i is T_0, and each is T_mult times as long as the one before.  (Loshchilov and Hutter 2017)"""

    settings = {"T_0": count, "T_mult": count, "eta_min": number}
    multiplies = False

    def __init__(self, solver: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0):
        super().__init__(solver, T_0=T_0, T_mult=T_mult, eta_min=eta_min)

    def _rate(self, t, base, k):
        period = self.T_0
        if self.T_mult == 1: t %= period
        while t >= period: t, period = t - period, period * self.T_mult
        return cosine(base, self.eta_min, t / period)


def refuse_momentum(name, cycle_momentum):
    if cycle_momentum:
        raise ValueError(f"{name}: the momentum of a solver is fixed, so cycle_momentum must be False")


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to max_lr in the first pct_start of total_steps, then down to the first rate divided
    by final_div_factor; with three_phase, first as slowly down as up.        (Smith and Topin 2017)

    max_lr is a number or a list, one for each group; the solver's own rate is replaced. Steps 0 to total_steps - 1 are
    the cycle. Step total_steps repeats the last rate, so that step() can follow every update; later ones raise
    ValueError. Unlike in PyTorch, cycle_momentum is False: the momentum of a solver is fixed."""

    settings = ("max_lr", "total_steps", "pct_start", "anneal_strategy", "div_factor", "final_div_factor",
                "three_phase")
    multiplies = False

    def __init__(
        self, solver: Any, max_lr: float | Sequence[float], total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = False, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False,
    ):
        name = type(self).__name__
        refuse_momentum(name, cycle_momentum)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(f"{name}: give total_steps, or epochs and steps_per_epoch")
            total_steps = count(name, "epochs", epochs) * count(name, "steps_per_epoch", steps_per_epoch)
        super().__init__(solver, max_lr=max_lr, total_steps=total_steps, pct_start=pct_start,
                         anneal_strategy=anneal_strategy, div_factor=div_factor, final_div_factor=final_div_factor,
                         three_phase=three_phase)

    def _read(self, name, n, max_lr, total_steps, pct_start, anneal_strategy, div_factor, final_div_factor,
              three_phase):
        return {
            "max_lr": per_group(name, "max_lr", max_lr, n, lambda key, v: number(name, key, v)),
            "total_steps": count(name, "total_steps", total_steps),
            "pct_start": number(name, "pct_start", pct_start, 0, 1),
            "anneal_strategy": choice(name, "anneal_strategy", anneal_strategy, ("cos", "linear")),
            "div_factor": number(name, "div_factor", div_factor, above=0),
            "final_div_factor": number(name, "final_div_factor", final_div_factor, above=0),
            "three_phase": bool(three_phase),
        }

    def _rate(self, t, base, k):
        n, high = self.total_steps, self.max_lr[k]
        if t > n:
            raise ValueError(f"{type(self).__name__}: step {t:g} of a cycle of {n} steps; create a new schedule, or "
                             f"one with a larger total_steps")
        first, up = high / self.div_factor, self.pct_start * n - 1
        last = first / self.final_div_factor
        phases = [(0, up, first, high), (up, n - 1, high, last)]
        if self.three_phase: phases[1:] = [(up, 2 * up, high, first), (2 * up, n - 1, first, last)]
        t = min(t, n - 1)
        start, end, a, b = next((p for p in phases[:-1] if t <= p[1]), phases[-1])
        share = (t - start) / (end - start) if end > start else 1
        return cosine(a, b, share) if self.anneal_strategy == "cos" else a + (b - a) * share


class CyclicLR(LRScheduler):
    """base_lr + (max_lr - base_lr) h s        (Smith 2017)

    h rises from 0 to 1 in step_size_up steps and falls to 0 in step_size_down (None: step_size_up), again and again. s
    is 1 in mode "triangular", 1/2^n after n cycles in "triangular2", gamma^t in "exp_range". base_lr and max_lr are
    numbers or lists, one for each group; the solver's own rate is replaced. Unlike in PyTorch, cycle_momentum is False:
    the momentum of a solver is fixed. For PyTorch's scale_fn use LambdaLR."""

    settings = ("base_lr", "max_lr", "step_size_up", "step_size_down", "mode", "gamma")
    multiplies = False

    def __init__(
        self, solver: Any, base_lr: float | Sequence[float], max_lr: float | Sequence[float], step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0, *,
        cycle_momentum: bool = False,
    ):
        refuse_momentum(type(self).__name__, cycle_momentum)
        super().__init__(solver, base_lr=base_lr, max_lr=max_lr, step_size_up=step_size_up,
                         step_size_down=step_size_up if step_size_down is None else step_size_down, mode=mode,
                         gamma=gamma)

    def _read(self, name, n, base_lr, max_lr, step_size_up, step_size_down, mode, gamma):
        return {
            "base_lr": per_group(name, "base_lr", base_lr, n, lambda key, v: number(name, key, v)),
            "max_lr": per_group(name, "max_lr", max_lr, n, lambda key, v: number(name, key, v)),
            "step_size_up": count(name, "step_size_up", step_size_up),
            "step_size_down": count(name, "step_size_down", step_size_down),
            "mode": choice(name, "mode", mode, ("triangular", "triangular2", "exp_range")),
            "gamma": number(name, "gamma", gamma),
        }

    def _rate(self, t, base, k):
        up, down, low = self.step_size_up, self.step_size_down, self.base_lr[k]
        n, i = divmod(t, up + down)
        height = i / up if i <= up else (up + down - i) / down
        if self.mode == "triangular2": height *= power(0.5, n)
        if self.mode == "exp_range": height *= power(self.gamma, t)
        return low + (self.max_lr[k] - low) * height


class LambdaLR(LRScheduler):
    """base lr_lambda(t). lr_lambda is a function of the step, or a list, one for each group. state_dict() does not have
    the functions, and load_state_dict() keeps them; pickle can save those that are defined in a module."""

    multiplies = False

    def __init__(self, solver: Any, lr_lambda: Callable[[float], float] | Sequence[Callable[[float], float]]):
        super().__init__(solver, lr_lambda=lr_lambda)

    def _read(self, name, n, lr_lambda=None):
        def function(key, f):
            if not callable(f): raise TypeError(f"{name}: {key} must be a function of the step, got {described(f)}")
            return f

        return {} if lr_lambda is None and hasattr(self, "lr_lambdas") else {
            "lr_lambdas": per_group(name, "lr_lambda", lr_lambda, n, function)}

    def _rate(self, t, base, k):
        return base * self._value(t, k)

    def _value(self, t, k):
        return number(type(self).__name__, f"the value of lr_lambda({t:g})", self.lr_lambdas[k](t), 0)


class MultiplicativeLR(LambdaLR):
    """base lr_lambda(1) lr_lambda(2) ... lr_lambda(t). lr_lambda and saved states are as in LambdaLR. The product is
    kept, so step() calls each function once; step(epoch) with an earlier epoch calls it `epoch` times."""

    multiplies = True

    def _read(self, name, n, lr_lambda=None):
        return super()._read(name, n, lr_lambda) | {"_products": [(0, 1.0)] * n}

    def _rate(self, t, base, k):
        done, product = self._products[k]
        if done > t: done, product = 0, 1.0
        for i in range(done + 1, math.floor(t) + 1): product *= self._value(i, k)
        self._products[k] = math.floor(t), product
        return base * product


# ---- combinations

class Combination(LRScheduler):
    """The base of schedules that consist of others. Those need no step() of their own any more. The rates begin with
    the ones that the solver had before the first of them was created."""

    counters = ("states",)
    multiplies = False

    def __init__(self, solver, schedulers, **settings):
        name = type(self).__name__
        if not hasattr(schedulers, "__iter__"):
            raise TypeError(f"{name}: schedulers must be a list of schedules, got {described(schedulers)}")
        instance(name, "solver", solver)
        schedulers = list(schedulers)
        if not schedulers: raise ValueError(f"{name}: schedulers is empty")
        if solver is None: solver = getattr(schedulers[0], "solver", None)
        for k, s in enumerate(schedulers):
            if not isinstance(s, LRScheduler):
                raise TypeError(f"{name}: schedulers[{k}] must be a schedule whose rate is a function of the step, "
                                f"such as StepLR, got {described(s)}")
            if s.solver is not solver:
                raise ValueError(f"{name}: schedulers[{k}], a {type(s).__name__}, belongs to another solver")
        self.schedulers = schedulers
        SolverSchedule.__init__(self, solver, **settings)
        first = min(schedulers, key=lambda s: s._created)
        self.base_lrs, self._base, self._created = list(first.base_lrs), first._base, first._created
        self.step(0)

    def _entries(self):
        return super()._entries() | {"schedulers": [type(s) for s in self.schedulers]}

    @property
    def states(self):
        """The states of the schedules."""
        return [s.state_dict() for s in self.schedulers]

    def _read_counters(self, name, states):
        n = len(self.schedulers)
        if not isinstance(states, list) or len(states) != n:
            raise ValueError(f"{name}: the states must be a list of {n}, one for each schedule, got "
                             f"{described(states)}")
        return {"inner": [s._read_state(state) for s, state in zip(self.schedulers, states, strict=True)]}

    def _take(self, new):
        for s, inner in zip(self.schedulers, new.pop("inner"), strict=True): s._take(inner)
        super()._take(new)


class SequentialLR(Combination):
    """schedulers[n], from its step 0 on, where n of the milestones are at most t."""

    settings = ("milestones",)

    def __init__(self, solver: Any, schedulers: Sequence[LRScheduler], milestones: Sequence[int]):
        super().__init__(solver, schedulers, milestones=milestones)

    def _read(self, name, n, milestones):
        milestones = increasing(name, "milestones", milestones, True)
        if len(milestones) != len(self.schedulers) - 1:
            raise ValueError(f"{name}: milestones must be one less than the {len(self.schedulers)} schedules, got "
                             f"{len(milestones)}")
        return {"milestones": milestones}

    def _rate(self, t, base, k):
        n = bisect_right(self.milestones, t)
        return self.schedulers[n]._rate(t - self.milestones[n - 1] if n else t, base, k)


class ChainedScheduler(Combination):
    """The product of the factors of all schedules. Raises ValueError for a schedule that sets the rate instead of
    multiplying it, such as OneCycleLR; in PyTorch it discards those before it."""

    multiplies = True

    def __init__(self, schedulers: Sequence[LRScheduler], solver: Any = None):
        super().__init__(solver, schedulers)

    def _read(self, name, n):
        for k, s in enumerate(self.schedulers):
            if not s.multiplies:
                raise ValueError(f"{name}: schedulers[{k}], a {type(s).__name__}, sets the rate and does not multiply "
                                 f"it by a factor, so it cannot be chained; use SequentialLR, or eta_min=0 for "
                                 f"CosineAnnealingLR")
        return {}

    def _rate(self, t, base, k):
        for s in self.schedulers: base = s._rate(t, base, k)
        return base


# ---- on plateau

class ReduceLROnPlateau(SolverSchedule):
    """The rate is multiplied by `factor` when the metric has not improved for more than `patience` steps.

    A metric m improves on the best one so far in mode "min" if m < best (1 - threshold), with threshold_mode "abs" if
    m < best - threshold; in mode "max" if m > best (1 + threshold) or m > best + threshold. After a reduction,
    `cooldown` steps do not count. min_lr, a number or a list, one for each group, is a lower bound. A change of at most
    eps is omitted."""

    mode: str
    patience: int
    threshold: float
    threshold_mode: str
    cooldown: int
    min_lr: Any

    settings = ("mode", "factor", "patience", "threshold", "threshold_mode", "cooldown", "min_lr", "eps")
    counters = ("best", "num_bad_epochs", "cooldown_counter")

    def __init__(
        self, solver: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8,
    ):
        super().__init__(solver, mode=mode, factor=factor, patience=patience, threshold=threshold,
                         threshold_mode=threshold_mode, cooldown=cooldown, min_lr=min_lr, eps=eps)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def _read(self, name, n, mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps):
        if number(name, "factor", factor) >= 1:
            raise ValueError(f"{name}: factor must be less than 1, got {described(factor)}")
        return {
            "mode": choice(name, "mode", mode, ("min", "max")), "factor": float(factor),
            "patience": count(name, "patience", patience, 0), "threshold": number(name, "threshold", threshold),
            "threshold_mode": choice(name, "threshold_mode", threshold_mode, ("rel", "abs")),
            "cooldown": count(name, "cooldown", cooldown, 0), "eps": number(name, "eps", eps),
            "min_lr": per_group(name, "min_lr", min_lr, n, lambda key, v: number(name, key, v)),
        }

    def _read_counters(self, name, best, num_bad_epochs, cooldown_counter):
        if isinstance(best, bool) or not isinstance(best, Real):
            raise TypeError(f"{name}: best must be a number, got {described(best)}")
        return {"best": float(best), "num_bad_epochs": count(name, "num_bad_epochs", num_bad_epochs, 0),
                "cooldown_counter": count(name, "cooldown_counter", cooldown_counter, 0)}

    def step(self, metrics: Any) -> None:
        """Reduce the learning rates if `metrics`, a number or a tensor of one element, has not improved for long
        enough. NaN is no improvement."""
        try: m = float(metrics)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{type(self).__name__}: the metric must be a number or a tensor of one element, got "
                            f"{described(metrics)}") from None
        self._check_groups()
        sign, margin = (1, self.threshold) if self.mode == "max" else (-1, -self.threshold)
        bound = self.best * (1 + margin) if self.threshold_mode == "rel" else self.best + margin
        better = sign * m > sign * bound
        bad, cooling = 0 if better else self.num_bad_epochs + 1, self.cooldown_counter
        if cooling: bad, cooling = 0, cooling - 1
        if bad > self.patience:
            bad, cooling = 0, self.cooldown
            rate, *rates = (self._reduced(r, least) for r, least in zip(
                [self.solver.learning_rate(), *group_rates(self.solver)], [self.min_lr[0], *self.min_lr], strict=True))
            set_rates(self.solver, rate, rates)
        if better: self.best = m
        self.last_epoch, self.num_bad_epochs, self.cooldown_counter = self.last_epoch + 1, bad, cooling

    def _reduced(self, rate, least):
        lower = max(rate * self.factor, least)
        return lower if rate - lower > self.eps else rate
