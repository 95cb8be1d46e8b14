"""Dropout of elements, and of whole channels. In train mode each element or channel is zero with probability p, and the
others are divided by 1 - p; in predict mode the result is the input. AlphaDropout and FeatureAlphaDropout keep the mean
and the variance instead."""

from __future__ import annotations

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import ones
from cygrad.core.interop.numpy import asarray
from cygrad.nn.module import Module
from cygrad.ops.layers.random import dropout


class Dropout(Module):
    """Set each element to zero with probability `p` (Srivastava et al. 2014). The numbers come from `generator` (None:
    the default one). Backward saves nothing; it draws them again. With p = 0 the layer does not depend on the mode."""

    _shown = ("p",)

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None):
        if isinstance(p, bool) or not isinstance(p, (int, float)):
            raise TypeError(f"{type(self).__name__}: p must be a number, got {described(p)}")
        if not 0 <= p <= 1: raise ValueError(f"{type(self).__name__}: p must be from 0 to 1, got {described(p)}")
        self.p, self.generator = p, generator

    def forward(self, x: Tensor) -> Tensor:
        """`x` with zeros in train mode, else `x`."""
        if not self.p: return x                     # (the operator would copy x in train mode)
        if self._mode is not None: self._training()
        return dropout(x, self.p, self.generator)


class ChannelDropout(Dropout):
    """Dropout of channels. Subclasses have the numbers of dimensions `taken`; all but the last `spatial` are those of
    channels."""

    taken: tuple[int, ...] = ()
    spatial = 0

    def forward(self, x: Tensor) -> Tensor:
        """`x` with channels of zeros in train mode, else `x`. Backward saves one number for each channel."""
        x = asarray(x)
        if x.ndim not in self.taken:
            more = "; Dropout1d takes (N, C, L)" if self.spatial == 2 and x.ndim == 3 else ""
            raise ValueError(f"{type(self).__name__}: x must have {' or '.join(map(str, self.taken))} dimensions, got "
                             f"{x.shape}{more}")
        if not self._training(): return dropout(x, self.p, self.generator)      # which checks the dtype
        channels = x.shape[:x.ndim - self.spatial] + (1,) * self.spatial
        return x * dropout(ones(channels, dtype=x.dtype), self.p, self.generator)


LOWEST = -1.0507009873554805 * 1.6732632423543772       # the limit of selu(x) for small x


class AlphaDropout(Dropout):
    """Set each element to c with probability `p`, and scale all: y = a x + b, or a c + b (Klambauer et al. 2017).

        c = -1.7581, the lowest value of selu        a = ((1 - p) (1 + p c^2))^(-1/2)        b = -a p c

    Mean 0 and variance 1, which selu keeps, remain. With p = 1 the result is zeros, as in PyTorch. The numbers come
    from `generator` (None: the default one). Backward saves nothing; it draws them again."""

    def forward(self, x: Tensor) -> Tensor:
        """The result in train mode, else `x`."""
        x = asarray(x)
        if x.dtype.kind != "f":
            raise TypeError(f"{type(self).__name__}: x must be float32 or float64, got {x.dtype}")
        if not self.p: return x
        if not self._training(): return dropout(x, self.p, self.generator)
        if self.p == 1: return self._dropped(x)
        rate = (1 - self.p) * ((1 - self.p) * (1 + self.p * LOWEST**2)) ** -0.5
        return self._dropped(x - LOWEST) * rate + rate * LOWEST

    def _dropped(self, x):
        """x with zeros, divided by 1 - p: x - c is, and c is added again."""
        return dropout(x, self.p, self.generator)


class FeatureAlphaDropout(AlphaDropout):
    """AlphaDropout of whole channels of (N, C, ...). Backward saves one number for each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """The result in train mode, else `x`."""
        x = asarray(x)
        if x.ndim < 2:
            raise ValueError(f"FeatureAlphaDropout: x must have at least 2 dimensions, (N, C, ...), got {x.shape}")
        return super().forward(x)

    def _dropped(self, x):
        channels = x.shape[:2] + (1,) * (x.ndim - 2)
        return x * dropout(ones(channels, dtype=x.dtype), self.p, self.generator)


class Dropout1d(ChannelDropout):
    """Set each channel of (N, C, L) or (C, L) to zero with probability `p`."""

    taken, spatial = (2, 3), 1


class Dropout2d(ChannelDropout):
    """Set each channel of (N, C, H, W) to zero with probability `p` (Tompson et al. 2015)."""

    taken, spatial = (4,), 2


class Dropout3d(ChannelDropout):
    """Set each channel of (N, C, D, H, W) or (C, D, H, W) to zero with probability `p`."""

    taken, spatial = (4, 5), 3
