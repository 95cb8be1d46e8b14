"""Activations. Each is an operator of cygrad as a module; the operator's docstring has the formula and the gradient.
PyTorch's inplace= does not exist."""

from __future__ import annotations

from typing import Any, Literal

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import full
from cygrad.core.interop.numpy import asarray
from cygrad.nn.factory import floating, number, size, source
from cygrad.nn.module import Module
from cygrad.ops.elementwise import compare, elementwise, functions
from cygrad.ops.reductions import softmax
from cygrad.ops.layers import activations
from cygrad.ops.elementwise.functions import tanh


class ReLU(Module):
    """max(x, 0)"""
    forward = staticmethod(functions.relu)


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""
    forward = staticmethod(functions.sigmoid)


class Tanh(Module):
    """tanh(x)"""
    forward = staticmethod(functions.tanh)


class SiLU(Module):
    """x sigmoid(x), also known as swish"""
    forward = staticmethod(functions.silu)


class SELU(Module):
    """scale elu(x, alpha) with the constants of Klambauer et al. 2017"""
    forward = staticmethod(activations.selu)


class Mish(Module):
    """x tanh(softplus(x))"""
    forward = staticmethod(activations.mish)


class Hardswish(Module):
    """x hardsigmoid(x)"""
    forward = staticmethod(activations.hardswish)


class Hardsigmoid(Module):
    """clip(x / 6 + 1/2, 0, 1)"""
    forward = staticmethod(activations.hardsigmoid)


class LogSigmoid(Module):
    """log(sigmoid(x))"""
    forward = staticmethod(activations.logsigmoid)


class Softsign(Module):
    """x / (1 + |x|)"""
    forward = staticmethod(activations.softsign)


class Tanhshrink(Module):
    """x - tanh(x)"""

    def forward(self, x: Tensor) -> Tensor:
        """x - tanh(x)"""
        return x - tanh(x)


class Hardshrink(Module):
    """x for |x| > lambd, else 0"""

    _shown = ("lambd",)

    def __init__(self, lambd: float = 0.5):
        number(self, "lambd", lambd)
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        """x for |x| > lambd, else 0"""
        return compare.where(compare.less_equal(elementwise.abs(x), self.lambd), 0.0, x)


class Softshrink(Module):
    """x - clip(x, -lambd, lambd)"""

    _shown = ("lambd",)

    def __init__(self, lambd: float = 0.5):
        if not number(self, "lambd", lambd) >= 0:
            raise ValueError(f"Softshrink: lambd must be at least 0, got {described(lambd)}")
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        """x - clip(x, -lambd, lambd)"""
        return x - compare.clip(x, -self.lambd, self.lambd)


class LeakyReLU(Module):
    """x for x > 0, else negative_slope x"""

    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """x for x > 0, else negative_slope x"""
        return activations.leaky_relu(x, self.negative_slope)


class RReLU(Module):
    """x for x > 0, else a x (Xu et al. 2015). In train mode each a is from U(lower, upper), so that backward saves one
    number for each element of x, which a memory.budget cannot evict; in predict mode a is (lower + upper) / 2, the mean
    of these. The numbers come from `generator` (None: the default one)."""

    _shown = "lower", "upper"

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, *, generator: Generator | None = None):
        self.lower, self.upper = number(self, "lower", lower), number(self, "upper", upper)
        if not self.lower <= self.upper:
            raise ValueError(f"RReLU: lower must be at most upper, got {described(lower)} and {described(upper)}")
        source(generator)
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        """x for x > 0, else a x"""
        x = asarray(x)
        if x.dtype.kind != "f": raise TypeError(f"RReLU: x must be float32 or float64, got {x.dtype}")
        if not self._training(): return activations.leaky_relu(x, (self.lower + self.upper) / 2)
        slopes = source(self.generator).uniform(x.shape, self.lower, self.upper, dtype=x.dtype)
        return x * compare.where(compare.less_equal(x.detach(), 0), slopes, 1.0)


class PReLU(Module):
    """x for x > 0, else weight x

    weight   (num_parameters,), `init` at first: one slope, or one for each channel, which is axis 1 of x"""

    _shown = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        self.num_parameters = size(self, "num_parameters", num_parameters)
        init = number(self, "init", init)
        self.weight = full((self.num_parameters,), init, dtype=floating(self, device, dtype)).requires_grad_()

    def forward(self, x: Tensor) -> Tensor:
        """x for x > 0, else weight x"""
        return activations.prelu(x, self.weight)


class ELU(Module):
    """x for x > 0, else alpha (exp(x) - 1)"""

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """x for x > 0, else alpha (exp(x) - 1)"""
        return activations.elu(x, self.alpha)


class CELU(ELU):
    """x for x > 0, else alpha (exp(x / alpha) - 1)"""

    def forward(self, x: Tensor) -> Tensor:
        """x for x > 0, else alpha (exp(x / alpha) - 1)"""
        return activations.celu(x, self.alpha)


class GELU(Module):
    """x Phi(x) with the normal distribution function Phi; approximate="tanh" computes it with tanh"""

    _shown = ("approximate",)

    def __init__(self, approximate: Literal["none", "tanh"] = "none"):
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU: approximate must be \"none\" or \"tanh\", got {described(approximate)}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """x Phi(x)"""
        return functions.gelu(x, self.approximate)


class Hardtanh(Module):
    """clip(x, min_val, max_val)"""

    _shown: tuple[str, ...] = "min_val", "max_val"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0):
        if not number(self, "min_val", min_val) < number(self, "max_val", max_val):
            raise ValueError(f"{type(self).__name__}: min_val must be less than max_val, got {described(min_val)} and "
                             f"{described(max_val)}")
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Tensor) -> Tensor:
        """clip(x, min_val, max_val)"""
        return activations.hardtanh(x, self.min_val, self.max_val)


class ReLU6(Hardtanh):
    """clip(x, 0, 6)"""

    _shown = ()

    def __init__(self):
        super().__init__(0.0, 6.0)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta. It does not overflow, so PyTorch's threshold does not exist."""

    _shown = ("beta",)

    def __init__(self, beta: float = 1.0):
        self.beta = beta

    def forward(self, x: Tensor) -> Tensor:
        """log(1 + exp(beta x)) / beta"""
        return functions.softplus(x, self.beta)


class Threshold(Module):
    """x for x > threshold, else value"""

    _shown = "threshold", "value"

    def __init__(self, threshold: float, value: float):
        self.threshold, self.value = threshold, value

    def forward(self, x: Tensor) -> Tensor:
        """x for x > threshold, else value"""
        return activations.threshold(x, self.threshold, self.value)


class GLU(Module):
    """a sigmoid(b), where a and b are the halves of x along `axis`"""

    _shown = ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """a sigmoid(b)"""
        return activations.glu(x, self.axis)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `axis`"""

    _shown = ("axis",)

    def __init__(self, axis: int = -1):
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """exp(x) / sum(exp(x))"""
        return softmax.softmax(x, self.axis)


class Softmin(Softmax):
    """softmax(-x) along `axis`"""

    def forward(self, x: Tensor) -> Tensor:
        """softmax(-x)"""
        return softmax.softmax(-x, self.axis)


class LogSoftmax(Softmax):
    """log(softmax(x)) along `axis`"""

    def forward(self, x: Tensor) -> Tensor:
        """log(softmax(x))"""
        return softmax.log_softmax(x, self.axis)


class Softmax2d(Module):
    """softmax over the channels of (N, C, H, W) or (C, H, W)"""

    def forward(self, x: Tensor) -> Tensor:
        """softmax over the channels"""
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: x must be (N, C, H, W) or (C, H, W), got {x.shape}")
        return softmax.softmax(x, -3)
