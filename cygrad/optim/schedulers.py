"""nnabla's learning-rate schedules: functions of the iteration."""

import math
from bisect import bisect_right
from collections.abc import Sequence

from cygrad.core.errors import described
from cygrad.optim.settings import count, increasing, instance, number, power, rate_at, shown


class Schedule:
    """The base of nnabla's schedules: get_learning_rate(iter)."""

    def __repr__(self) -> str:
        return shown(self, {k: type(v) if isinstance(v, Schedule) else v for k, v in self.__dict__.items()})

    def get_learning_rate(self, iter: int) -> float:
        """The learning rate at iteration `iter`, counted from 0. Raises ValueError for a negative one, and if the rate
        is not finite."""
        name = type(self).__name__
        number(name, "iter", iter, 0)
        return rate_at(name, iter, self._rate(iter))

    def _rate(self, i):
        raise NotImplementedError(f"{type(self).__name__} has no _rate")


class PolynomialScheduler(Schedule):
    """init_lr (1 - iter / max_iter)^power, and 0 after max_iter."""

    def __init__(self, init_lr: float, max_iter: int, power: float):
        name = type(self).__name__
        self.init_lr, self.max_iter = number(name, "init_lr", init_lr), count(name, "max_iter", max_iter)
        self.power = number(name, "power", power)

    def _rate(self, i):
        return self.init_lr * (1 - min(i / self.max_iter, 1)) ** self.power


class CosineScheduler(Schedule):
    """init_lr (1 + cos(pi iter / max_iter)) / 2"""

    def __init__(self, init_lr: float, max_iter: int):
        name = type(self).__name__
        self.init_lr, self.max_iter = number(name, "init_lr", init_lr), count(name, "max_iter", max_iter)

    def _rate(self, i):
        return self.init_lr * ((math.cos(i / self.max_iter * math.pi) + 1) * 0.5)


class ExponentialScheduler(Schedule):
    """init_lr gamma^floor(iter / iter_interval)"""

    def __init__(self, init_lr: float, gamma: float, iter_interval: int = 1):
        name = type(self).__name__
        self.init_lr, self.gamma = number(name, "init_lr", init_lr), number(name, "gamma", gamma)
        self.iter_interval = count(name, "iter_interval", iter_interval)

    def _rate(self, i):
        return self.init_lr * power(self.gamma, i // self.iter_interval)


class StepScheduler(Schedule):
    """init_lr gamma^n, where n of iter_steps are at most iter."""

    def __init__(self, init_lr: float, gamma: float, iter_steps: Sequence[int]):
        name = type(self).__name__
        self.init_lr, self.gamma = number(name, "init_lr", init_lr), number(name, "gamma", gamma)
        self.iter_steps = increasing(name, "iter_steps", iter_steps, False)

    def _rate(self, i):
        return self.init_lr * power(self.gamma, bisect_right(self.iter_steps, i))


class LinearWarmupScheduler(Schedule):
    """The rate of `scheduler`, times (iter + 1) / warmup_iter in the first warmup_iter iterations."""

    def __init__(self, scheduler: Schedule, warmup_iter: int):
        name = type(self).__name__
        instance(name, "scheduler", scheduler)
        if not callable(getattr(scheduler, "get_learning_rate", None)):
            raise TypeError(f"{name}: scheduler must have get_learning_rate(iter), got {described(scheduler)}")
        self.scheduler, self.warmup_iter = scheduler, count(name, "warmup_iter", warmup_iter)

    def _rate(self, i):
        return self.scheduler.get_learning_rate(i) * min((i + 1) / self.warmup_iter, 1)
