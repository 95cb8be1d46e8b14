"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from cygrad.core.errors import described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.nn.factory import drawing, floating, size
from cygrad.nn.module import Module
from cygrad.nn.waiting import has_bias
from cygrad.ops.images import conv
from cygrad.ops.shapes.join import pad

Sizes = int | Sequence[int]
PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]
PADDING = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}       # PyTorch's mode -> that of pad()


def sizes(layer, name, value, nd, least=1):
    """An argument that is an int for all of `nd` dimensions or a sequence of one for each, as a tuple."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(numbers) not in (1, nd):
        raise ValueError(f"{type(layer).__name__}: {name} must be an int or a tuple of {nd}, got {described(value)}")
    numbers = tuple(size(layer, name, n, least) for n in numbers)
    return numbers if len(numbers) == nd else numbers * nd


class Convolutions(Module):
    """The base of the convolutions. Subclasses set the number of spatial dimensions and the operator."""

    weight: Tensor
    bias: Tensor | None

    nd = 0
    transposed = False
    operator: Any = None
    padding_mode: str

    def _set_up(self, in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype, generator):
        """Everything but the padding, which has to be set before, and the parameters."""
        self._how = {"dtype": floating(self, device, dtype), "generator": generator}
        self.bias = None
        for name in ("weight", "bias")[:1 + bool(bias)]: self.register_parameter(name, None)
        self.out_channels = size(self, "out_channels", out_channels)
        self.kernel_size = sizes(self, "kernel_size", kernel_size, self.nd)
        self.stride = sizes(self, "stride", stride, self.nd)
        self.dilation = sizes(self, "dilation", dilation, self.nd)
        self.groups = size(self, "groups", groups)
        if self.out_channels % self.groups:
            raise ValueError(f"{type(self).__name__}: out_channels must be a multiple of groups, got {out_channels} in "
                             f"{groups} groups")
        self.in_channels = None

    def _start(self, in_channels):
        """Make the parameters, or let them wait if the number of channels is unknown."""
        if in_channels is None: self._wait(self.groups, 2 * self.groups)
        else: self._settle(size(self, "in_channels", in_channels))

    def _plan(self, n):
        if n % self.groups:
            raise ValueError(f"{type(self).__name__}: in_channels must be a multiple of groups, got {n} in "
                             f"{self.groups} groups")
        ends = (n, self.out_channels // self.groups) if self.transposed else (self.out_channels, n // self.groups)
        draw = drawing(self._how, ends[1] * math.prod(self.kernel_size))
        return {"weight": ((*ends, *self.kernel_size), draw), "bias": ((self.out_channels,), draw)}

    def _size_of(self, x, *args, **kwargs):
        shape = np.shape(x)
        if len(shape) not in (self.nd + 1, self.nd + 2):
            raise ValueError(f"{type(self).__name__}: x must be (n, channels, ...) or (channels, ...) with {self.nd} "
                             f"further dimensions, got {shape}")
        return shape[-1 - self.nd]

    def _size_in(self, state):
        weight = state.get("weight")
        if weight is None or weight.ndim != self.nd + 2: return None
        return weight.shape[0] if self.transposed else weight.shape[1] * self.groups

    def _set_size(self, n):
        self.in_channels, self._how = n, None

    def extra_repr(self) -> str:
        """The sizes, and the arguments that differ from their defaults."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name in ("padding", "dilation", "output_padding", "groups"):
            value = getattr(self, name, 0)
            default = 1 if name in ("dilation", "groups") else 0
            if value not in (default, (default,) * self.nd): text += f", {name}={value}"
        if not has_bias(self): text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


class ConvolutionBase(Convolutions):
    """The base of Conv1d, Conv2d and Conv3d."""

    def __init__(self, in_channels: int | None, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes | Literal["same", "valid"] = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
                 padding_mode: PaddingMode = "zeros", device: Any = None, dtype: Any = None, *,
                 generator: Generator | None = None):
        name = type(self).__name__
        if padding_mode != "zeros" and padding_mode not in PADDING:
            raise ValueError(f"{name}: padding_mode must be zeros, {', '.join(PADDING)}, got {described(padding_mode)}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{name}: padding must be numbers, \"same\" or \"valid\", got {padding!r}")
        self._set_up(in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype, generator)
        if padding == "same" and self.stride != (1,) * self.nd:
            raise ValueError(f"{name}: padding=\"same\" needs stride 1, got {self.stride}")
        self.padding = padding if isinstance(padding, str) else sizes(self, "padding", padding, self.nd, 0)
        self.padding_mode, self._margins, self._padding = padding_mode, None, self.padding
        if padding_mode != "zeros" and padding != "valid":
            # (Half of the zeros of "same" comes first, as in the operator.)
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            self._margins = (tuple((n // 2, n - n // 2) for n in total) if padding == "same"
                             else tuple((n, n) for n in self.padding))
            self._padding = 0
        self._start(in_channels)

    def forward(self, x: Tensor, activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
        """The convolution of `x`. An `activation` is applied in the same operation, without an intermediate tensor."""
        if self._margins is not None: x = with_margins(x, self._margins, PADDING[self.padding_mode], 0)
        return self.operator(x, self.weight, self.bias, self.stride, self._padding, self.dilation, self.groups,
                             activation=activation)

    def _flops(self, x, activation=None, *, y):
        return 2 * y.size * (self.weight.size // self.out_channels)


class TransposedConvolutionBase(Convolutions):
    """The base of ConvTranspose1d, ConvTranspose2d and ConvTranspose3d."""

    transposed = True

    def __init__(self, in_channels: int | None, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True, dilation: Sizes = 1,
                 padding_mode: Literal["zeros"] = "zeros", device: Any = None, dtype: Any = None, *,
                 generator: Generator | None = None):
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode must be zeros, got {described(padding_mode)}")
        self._set_up(in_channels, out_channels, kernel_size, stride, dilation, groups, bias, device, dtype, generator)
        self.padding = sizes(self, "padding", padding, self.nd, 0)
        self.output_padding = sizes(self, "output_padding", output_padding, self.nd, 0)
        self.padding_mode = padding_mode
        self._start(in_channels)

    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution of `x`. `output_size`, the spatial sizes or the whole shape of the result,
        replaces output_padding. Raises ValueError if it cannot be reached."""
        added = self.output_padding if output_size is None else self._reaching(x, output_size)
        return self.operator(x, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation)

    def _flops(self, x, *args, y, **kwargs):
        return 2 * math.prod(np.shape(x)) * (self.weight.size // self.in_channels)

    def _reaching(self, x, wanted):
        """The output_padding that gives the result these sizes."""
        self._size_of(x)                            # checks the number of dimensions
        shape = np.shape(x)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(
            shape[-self.nd:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)]
        sizes = tuple(wanted)[-self.nd:]
        if len(wanted) not in (self.nd, len(shape)) or any(
                not low <= n < low + s for n, low, s in zip(sizes, least, self.stride, strict=True)):
            most = tuple(low + s - 1 for low, s in zip(least, self.stride, strict=True))
            raise ValueError(f"{type(self).__name__}: output_size must be from {tuple(least)} to {most} for x of shape "
                             f"{shape}, got {tuple(wanted)}")
        return tuple(n - low for n, low in zip(sizes, least, strict=True))


def with_margins(x, margins, mode, value):
    """`x` with a pair of margins for each of its last dimensions."""
    ndim = x.ndim if type(x) is Tensor else np.ndim(x)
    return pad(x, ((0, 0),) * (ndim - len(margins)) + margins, mode, value)


class Conv1d(ConvolutionBase):
    """The convolution of rows: x is (n, in_channels, width) or without n. See Conv2d."""

    nd, operator = 1, staticmethod(conv.conv1d)


class Conv2d(ConvolutionBase):
    """The convolution of images: x is (n, in_channels, height, width) or without n; the result has out_channels. See
    cygrad.conv2d for stride, padding, dilation, groups and the sizes of the result.

    weight   (out_channels, in_channels / groups, *kernel_size), from U(-k, k) with k = 1 / sqrt(fan_in), where fan_in
             is in_channels / groups times the elements of the kernel: kaiming_uniform_ with a = sqrt(5)
    bias     (out_channels,), from the same, or None

    With a padding_mode "reflect", "replicate" or "circular", x gets margins from its own elements before the
    convolution, instead of zeros. This makes a copy of x.

    With in_channels None the first call decides, or the weight that is assigned before: until then the parameters wait
    and have no memory (see Linear). `dtype` is float32 or float64 (None: the default one). The numbers come from
    `generator` (None: the default one)."""

    nd, operator = 2, staticmethod(conv.conv2d)


class Conv3d(ConvolutionBase):
    """The convolution of volumes: x is (n, in_channels, depth, height, width) or without n. See Conv2d."""

    nd, operator = 3, staticmethod(conv.conv3d)


class ConvTranspose1d(TransposedConvolutionBase):
    """The transposed convolution of rows: x is (n, in_channels, width) or without n. See ConvTranspose2d."""

    nd, operator = 1, staticmethod(conv.conv_transpose1d)


class ConvTranspose2d(TransposedConvolutionBase):
    """The transposed convolution of images, the gradient of Conv2d with respect to its input: x is (n, in_channels,
    height, width) or without n; the result has out_channels. See cygrad.conv_transpose2d for the sizes.

    weight   (in_channels, out_channels / groups, *kernel_size), from U(-k, k) with k = 1 / sqrt(fan_in), where fan_in
             is out_channels / groups times the elements of the kernel, as in PyTorch
    bias     (out_channels,), from the same, or None

    With in_channels None the first call decides. `dtype` and `generator` are those of Conv2d."""

    nd, operator = 2, staticmethod(conv.conv_transpose2d)


class ConvTranspose3d(TransposedConvolutionBase):
    """The transposed convolution of volumes: x is (n, in_channels, depth, height, width) or without n. See
    ConvTranspose2d."""

    nd, operator = 3, staticmethod(conv.conv_transpose3d)
