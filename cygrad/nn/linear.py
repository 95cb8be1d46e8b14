"""Linear layers: Linear, Bilinear, Identity, Flatten."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.nn.factory import check_features, drawing, floating, size, uniform_parameter
from cygrad.nn.module import Module
from cygrad.nn.waiting import has_bias
from cygrad.ops.linalg.linalg import linear
from cygrad.ops.shapes.shape import flatten


class Linear(Module):
    """y = x w' + b: x is (..., in_features), y is (..., out_features).

    weight   (out_features, in_features), from U(-k, k) with k = 1 / sqrt(in_features)
    bias     (out_features,), from the same, or None

    With in_features None the first call decides, or the weight that is assigned before: until then the parameters wait
    and have no memory. They can be named, frozen, tied, initialized and given to solvers, but not read. `dtype` is
    float32 or float64 (None: the default one). The numbers come from `generator` (None: the default one)."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int | None, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, generator: Generator | None = None):
        self.out_features = size(self, "out_features", out_features)
        self._how = {"dtype": floating(self, device, dtype), "generator": generator}
        self.bias = None
        for name in ("weight", "bias")[:1 + bool(bias)]: self.register_parameter(name, None)
        self.in_features = None
        if in_features is None: self._wait(1, 2)
        else: self._settle(size(self, "in_features", in_features))

    def forward(self, x: Tensor, activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
        """x w' + b. An `activation` is applied in the same operation, without an intermediate tensor."""
        if activation is None: return linear(x, self.weight, self.bias)
        return linear(x, self.weight, self.bias, activation=activation)

    def _plan(self, n):
        draw = drawing(self._how, n)
        return {"weight": ((self.out_features, n), draw), "bias": ((self.out_features,), draw)}

    def _flops(self, x, activation=None, *, y):
        return 2 * y.size * self.in_features

    def _size_of(self, x):
        shape = np.shape(x)
        if not shape: raise ValueError(f"Linear: x must have at least one dimension, its features; got "
                                        f"{described(x)}")
        return shape[-1]

    def _size_in(self, state):
        weight = state.get("weight")
        return weight.shape[1] if weight is not None and weight.ndim == 2 else None

    def _set_size(self, n):
        self.in_features, self._how = n, None

    def extra_repr(self) -> str:
        """in_features, out_features, and bias if there is none."""
        return f"{self.in_features}, {self.out_features}" + ", bias=False" * (not has_bias(self))


class Bilinear(Module):
    """y[k] = x1' w[k] x2 + b[k]: x1 is (..., in1_features), x2 is (..., in2_features), y is (..., out_features).

    weight   (out_features, in1_features, in2_features), from U(-k, k) with k = 1 / sqrt(in1_features)
    bias     (out_features,), from the same, or None

    `dtype` is float32 or float64 (None: the default one). The numbers come from `generator` (None: the default
    one)."""

    weight: Tensor
    bias: Tensor | None

    _shown = "in1_features", "in2_features", "out_features"

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, generator: Generator | None = None):
        dtype = floating(self, device, dtype)
        self.in1_features = n = size(self, "in1_features", in1_features)
        self.in2_features = size(self, "in2_features", in2_features)
        self.out_features = size(self, "out_features", out_features)
        self.weight = uniform_parameter((self.out_features, n, self.in2_features), n, dtype, generator)
        self.register_parameter("bias", uniform_parameter((self.out_features,), n, dtype, generator) if bias else None)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """x1' w x2 + b."""
        from cygrad.ops.linalg.einsum import einsum

        try:
            y = einsum("...n,knm,...m->...k", x1, self.weight, x2)
        except ValueError:
            check_features(self, "x1", x1, self.in1_features)
            check_features(self, "x2", x2, self.in2_features)
            raise ValueError(f"Bilinear: the leading dimensions of x1 and x2 must broadcast, got {np.shape(x1)} and "
                             f"{np.shape(x2)}") from None
        return y if self.bias is None else y + self.bias

    def _flops(self, x1, x2, *, y):
        return 2 * y.size * self.in1_features * (self.in2_features + 1)


class Identity(Module):
    """y = x. It takes any arguments and ignores them, so that it can replace another layer."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def forward(self, x: Any) -> Any:
        """x."""
        return x


class Flatten(Module):
    """Flatten the dimensions from `start` to `end`, by default all but the first: (32, 8, 3, 3) becomes (32, 72)."""

    _shown = "start", "end"

    def __init__(self, start: int = 1, end: int = -1):
        self.start, self.end = start, end

    def forward(self, x: Tensor) -> Tensor:
        """The tensor with fewer dimensions."""
        return flatten(x, self.start, self.end)
