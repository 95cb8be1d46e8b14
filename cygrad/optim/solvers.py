"""The solvers. Names, arguments, defaults and rules are those of nnabla; each class states its rule first.

Every solver takes its parameters as first argument too, as in PyTorch: Adam(parameters, lr=0.001), then the other
arguments by name. "lr" is another name for the learning rate, "betas" for (beta1, beta2). "weight_decay" is PyTorch's:
g + weight_decay w takes the place of g, or, in a rule with a decay of its own (wd), w decays by lr weight_decay w."""

from __future__ import annotations

import sys
from typing import TypedDict, Unpack

from cygrad.optim.groups import Parameters
from cygrad.optim.solver import Solver

_INDENT = "" if sys.version_info >= (3, 13) else "    "     # the indent of docstrings, which Python 3.13 removes
Rate = float | Parameters                           # the first argument


class Options(TypedDict, total=False):
    """Arguments that every solver takes by name."""

    params: Parameters
    lr: float
    weight_decay: float


class WithAlpha(Options, total=False):
    """Those of the family of Adam."""

    alpha: float
    betas: tuple[float, float]


class WithEta(Options, total=False):
    """Those of Lamb."""

    eta: float
    betas: tuple[float, float]


class WithBetas(Options, total=False):
    """Those of Lion."""

    betas: tuple[float, float]


class Sgd(Solver):
    """w -= lr g

    Of a GradientSlice, only the rows that are present are read, decayed and written. Rows of equal indices are summed
    first."""

    __slots__ = ()
    rule, settings, default, row_sparse = "sgd_update", ("lr",), 1e-3, True

    def __init__(self, lr: Rate = default, /, **options: Unpack[Options]):
        self._start(lr, {}, **options)


class SgdW(Solver):
    """v = momentum v + lr g        w -= v + lr / first_lr wd w        (Loshchilov and Hutter 2019)

    first_lr is the learning rate at first. weight_decay() replaces wd in the next update."""

    __slots__ = ()
    rule, settings, default = "sgdw_update", ("lr", "momentum", "wd"), 1e-3
    momentum: float
    wd: float

    def __init__(self, lr: Rate = default, /, momentum: float = 0.9, wd: float = 1e-4, **options: Unpack[Options]):
        self._start(lr, {"momentum": momentum, "wd": wd}, **options)


class Momentum(Solver):
    """v = momentum v + lr g        w -= v        (Qian 1999)

    PyTorch multiplies v by lr instead of g, which differs if the learning rate changes. Of a GradientSlice, only the
    rows that are present are read, decayed and written: the others keep their v, and it does not move them. Rows of
    equal indices are summed first."""

    __slots__ = ()
    rule, settings, default, row_sparse = "momentum_update", ("lr", "momentum"), 1e-3, True
    momentum: float

    def __init__(self, lr: Rate = default, /, momentum: float = 0.9, **options: Unpack[Options]):
        self._start(lr, {"momentum": momentum}, **options)


class Nesterov(Solver):
    """u = momentum v - lr g        w += (1 + momentum) u - momentum v        v = u        (Nesterov 1983)"""

    __slots__ = ()
    rule, settings, default = "nesterov_update", ("lr", "momentum"), 1e-3
    momentum: float

    def __init__(self, lr: Rate = default, /, momentum: float = 0.9, **options: Unpack[Options]):
        self._start(lr, {"momentum": momentum}, **options)


class Adagrad(Solver):
    """v += g^2        w -= lr g / (sqrt(v) + eps)        (Duchi, Hazan and Singer 2011)

    Of a GradientSlice, only the rows that are present are read, decayed and written; the others keep their v. Rows of
    equal indices are summed first."""

    __slots__ = ()
    rule, settings, default, row_sparse = "adagrad_update", ("lr", "eps"), 1e-2, True
    eps: float

    def __init__(self, lr: Rate = default, /, eps: float = 1e-8, **options: Unpack[Options]):
        self._start(lr, {"eps": eps}, **options)


class Ftrl(Solver):
    """z += g - (sqrt(v + g^2) - sqrt(v)) / lr w        v += g^2        (McMahan et al. 2013)
    w = lr (sign(z) lamda1 - z) / (beta + sqrt(v) + lr decay), and 0 where |z| <= lamda1

    FTRL-Proximal with the rule, the defaults and the names of MXNet's Ftrl (whose n is v). lamda1 is the strength of an
    L1 penalty, which makes weights exactly 0. `decay`, the rate of weight_decay() in the next update, is that of an L2
    penalty, decay / 2 w^2: MXNet's wd. w follows from z and v, which begin with zeros, so an element becomes 0 whose
    gradient is 0 in the first update. With lr = 0 nothing changes.

    Of a GradientSlice, only the rows that are present are read and written; the others keep their z, v and w. Rows of
    equal indices are summed first."""

    __slots__ = ()
    rule, settings, default, row_sparse = "ftrl_update", ("lr", "lamda1", "beta"), 0.1, True
    lamda1: float
    beta: float

    def __init__(self, lr: Rate = default, /, lamda1: float = 0.01, beta: float = 1.0, **options: Unpack[Options]):
        self._start(lr, {"lamda1": lamda1, "beta": beta}, **options)


class Adadelta(Solver):
    """v = decay v + (1 - decay) g^2        d = sqrt((u + eps) / (v + eps)) g
    u = decay u + (1 - decay) d^2        w -= lr d        (Zeiler 2012)"""

    __slots__ = ()
    rule, settings, default = "adadelta_update", ("lr", "decay", "eps"), 1.0
    decay: float
    eps: float

    def __init__(self, lr: Rate = default, /, decay: float = 0.95, eps: float = 1e-6, **options: Unpack[Options]):
        self._start(lr, {"decay": decay, "eps": eps}, **options)


class RMSprop(Solver):
    """v = decay v + (1 - decay) g^2        w -= lr g / (sqrt(v) + eps)        (Hinton 2012)"""

    __slots__ = ()
    rule, settings, default = "rmsprop_update", ("lr", "decay", "eps"), 1e-3
    decay: float
    eps: float

    def __init__(self, lr: Rate = default, /, decay: float = 0.9, eps: float = 1e-8, **options: Unpack[Options]):
        self._start(lr, {"decay": decay, "eps": eps}, **options)


class RMSpropGraves(Solver):
    """v = decay v + (1 - decay) g^2        m = decay m + (1 - decay) g
    d = momentum d - lr g / sqrt(v - m^2 + eps)        w += d        (Graves 2013)

    v - m^2 is a variance, and 0 where rounding makes it negative; PyTorch's RMSprop(centered=True) gives NaN there."""

    __slots__ = ()
    rule, settings, default = "rmsprop_graves_update", ("lr", "decay", "momentum", "eps"), 1e-4
    decay: float
    momentum: float
    eps: float

    def __init__(self, lr: Rate = default, /, decay: float = 0.95, momentum: float = 0.9, eps: float = 1e-4,
                 **options: Unpack[Options]):
        self._start(lr, {"decay": decay, "momentum": momentum, "eps": eps}, **options)


class Adam(Solver):
    """m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
    w -= alpha sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps)        (Kingma and Ba 2015)

    t is the number of updates of the parameter. Of a GradientSlice, only the rows that are present are read, decayed
    and written; the others keep their m and v, which do not move them. Rows of equal indices are summed first."""

    __slots__ = ()
    rule, settings, default, row_sparse = "adam_update", ("alpha", "beta1", "beta2", "eps"), 1e-3, True
    beta1: float
    beta2: float
    eps: float

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps}, **options)


class AdamW(Solver):
    """w -= alpha sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps) + alpha / first_alpha wd w

    m and v are those of Adam; first_alpha is the learning rate at first (Loshchilov and Hutter 2019). weight_decay()
    replaces wd in the next update."""

    __slots__ = ()
    rule, settings, default = "adamw_update", ("alpha", "beta1", "beta2", "eps", "wd"), 1e-3
    beta1: float
    beta2: float
    eps: float
    wd: float

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 wd: float = 1e-4, **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps, "wd": wd}, **options)


class Adamax(Solver):
    """m = beta1 m + (1 - beta1) g        u = max(beta2 u, |g|)
    w -= alpha / (1 - beta1^t) m / (u + eps)        (Kingma and Ba 2015)"""

    __slots__ = ()
    rule, settings, default = "adamax_update", ("alpha", "beta1", "beta2", "eps"), 2e-3
    beta1: float
    beta2: float
    eps: float

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps}, **options)


class AMSGRAD(Solver):
    """v_max = max(v_max, v)        w -= alpha m / (sqrt(v_max) + eps)        (Reddi, Kale and Kumar 2018)

    m and v are those of Adam. With bias_correction, alpha is multiplied by sqrt(1 - beta2^t) / (1 - beta1^t)."""

    __slots__ = ()
    rule, settings, default = "amsgrad_update", ("alpha", "beta1", "beta2", "eps", "bias_correction"), 1e-3
    beta1: float
    beta2: float
    eps: float
    bias_correction: bool

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 bias_correction: bool = False, **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps, "bias_correction": bias_correction}, **options)


class AdaBound(Solver):
    """w -= clip(alpha sqrt(1 - beta2^t) / (1 - beta1^t) / (sqrt(v) + eps), low, high) m        (Luo et al. 2019)
    low = f (1 - 1 / (gamma t + 1))        high = f (1 + 1 / (gamma t))        f = final_lr alpha / first_alpha

    m and v are those of Adam; first_alpha is the learning rate at first."""

    __slots__ = ()
    rule, default = "adabound_update", 1e-3
    settings = ("alpha", "beta1", "beta2", "eps", "final_lr", "gamma")
    beta1: float
    beta2: float
    eps: float
    final_lr: float
    gamma: float

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 final_lr: float = 0.1, gamma: float = 0.001, **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps, "final_lr": final_lr, "gamma": gamma},
                    **options)


class AMSBound(Solver):
    """w -= clip(alpha / (sqrt(v_max) + eps), low, high) m        (Luo et al. 2019)

    m, v_max and bias_correction are those of AMSGRAD, low and high those of AdaBound."""

    __slots__ = ()
    rule, default = "amsbound_update", 1e-3
    settings = ("alpha", "beta1", "beta2", "eps", "final_lr", "gamma", "bias_correction")
    beta1: float
    beta2: float
    eps: float
    final_lr: float
    gamma: float
    bias_correction: bool

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 final_lr: float = 0.1, gamma: float = 0.001, bias_correction: bool = False,
                 **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps, "final_lr": final_lr, "gamma": gamma,
                            "bias_correction": bias_correction}, **options)


class AdaBelief(Solver):
    """m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) (g - m)^2 + eps
    w -= alpha / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)        (Zhuang et al. 2020)

    eps stays in v, so that it adds up over the updates. With weight_decouple, w -= wd alpha w too, or wd w with
    fixed_decay, and weight_decay() replaces wd in the next update; else wd is not used. With amsgrad,
    v_max = max(v_max, v) + eps takes the place of v, to which none is added then. With rectify, alpha is multiplied by
    the r_t of RAdam (Liu et al. 2020), and while that is not defined, w -= alpha m."""

    __slots__ = ()
    rule, default = "adabelief_update", 1e-3
    settings = ("alpha", "beta1", "beta2", "eps", "wd", "amsgrad", "weight_decouple", "fixed_decay", "rectify")
    beta1: float
    beta2: float
    eps: float
    wd: float
    amsgrad: bool
    weight_decouple: bool
    fixed_decay: bool
    rectify: bool

    def __init__(self, alpha: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 wd: float = 0.0, amsgrad: bool = False, weight_decouple: bool = False, fixed_decay: bool = False,
                 rectify: bool = False, **options: Unpack[WithAlpha]):
        self._start(alpha, {"beta1": beta1, "beta2": beta2, "eps": eps, "wd": wd, "amsgrad": amsgrad,
                            "weight_decouple": weight_decouple, "fixed_decay": fixed_decay, "rectify": rectify},
                    **options)

    def _rule(self, settings: dict[str, object]) -> str:
        return "adabelief_max_update" if settings["amsgrad"] else self.rule


class Lamb(Solver):
    """r = m / (sqrt(v) + eps) + decay w        w -= eta clip(|w|, gamma_l, gamma_u) / |r| r        (You et al. 2020)

    m and v are those of Adam; with bias_correction, r has m / (1 - beta1^t) and v / (1 - beta2^t). Where |r| <= eps,
    w -= eta r. `decay` is the rate of weight_decay() in the next update."""

    __slots__ = ()
    rule, default = "lamb_update", 1e-3
    settings = ("eta", "beta1", "beta2", "gamma_l", "gamma_u", "eps", "bias_correction")
    beta1: float
    beta2: float
    gamma_l: float
    gamma_u: float
    eps: float
    bias_correction: bool

    def __init__(self, eta: Rate = default, /, beta1: float = 0.9, beta2: float = 0.999, gamma_l: float = 0.0,
                 gamma_u: float = 10.0, eps: float = 1e-6, bias_correction: bool = False,
                 **options: Unpack[WithEta]):
        self._start(eta, {"beta1": beta1, "beta2": beta2, "gamma_l": gamma_l, "gamma_u": gamma_u, "eps": eps,
                          "bias_correction": bias_correction}, **options)


class Lars(Solver):
    """v = momentum v + rate (g + decay w)        w -= v        rate = lr coefficient |w| / (|g| + decay |w|)

    (You, Gitman and Ginsburg 2017). Where |w| < eps, rate = lr; eps is added to a divisor below it. `decay` is the rate
    of weight_decay() in the next update."""

    __slots__ = ()
    rule, settings, default = "lars_update", ("lr", "momentum", "coefficient", "eps"), 1e-3
    momentum: float
    coefficient: float
    eps: float

    def __init__(self, lr: Rate = default, /, momentum: float = 0.9, coefficient: float = 0.001, eps: float = 1e-6,
                 **options: Unpack[Options]):
        self._start(lr, {"momentum": momentum, "coefficient": coefficient, "eps": eps}, **options)


class Lion(Solver):
    """w -= lr (sign(beta1 m + (1 - beta1) g) + decay w)        m = beta2 m + (1 - beta2) g        (Chen et al. 2023)

    `decay` is the rate of weight_decay() in the next update."""

    __slots__ = ()
    rule, settings, default = "lion_update", ("lr", "beta1", "beta2"), 1e-4
    beta1: float
    beta2: float

    def __init__(self, lr: Rate = default, /, beta1: float = 0.9, beta2: float = 0.99, **options: Unpack[WithBetas]):
        self._start(lr, {"beta1": beta1, "beta2": beta2}, **options)


def _describe(solver: type[Solver]) -> str:
    """The end of a solver's docstring: how it is called, and whether it takes row-sparse gradients."""
    name, (rate, *settings), given = solver.__name__, solver.settings, solver.__init__.__defaults__ or ()
    betas = f", betas={given[1:3]}" if "beta1" in settings else ""
    sparse = "" if solver.row_sparse else (
        f"\n\n{_INDENT}Row-sparse gradients (GradientSlice) are refused: update() raises TypeError.")
    return (f"\n\n{_INDENT}Calls: {name}({rate}={solver.default}) and set_parameters(parameters), or, as in PyTorch,\n"
            f"{_INDENT}{name}(parameters, lr={solver.default}{betas}, weight_decay=0.01), where\n"
            f"{_INDENT}the decay is an example.{sparse}")


for _solver in Solver.__subclasses__():
    if _solver.__module__ == __name__ and _solver.__doc__: _solver.__doc__ += _describe(_solver)    # (-OO: no __doc__)
