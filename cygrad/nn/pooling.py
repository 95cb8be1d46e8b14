"""Pooling: the maximum, mean or norm of windows. None of the layers has parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cygrad.core.graph.tensor import Tensor
from cygrad.nn.module import Module
from cygrad.ops.images import pool

Sizes = int | Sequence[int]
Parts = int | Sequence[int | None] | None


class PoolingBase(Module):
    """The base of the pooling layers. Subclasses set the operator, and in `_shown` the attributes that it takes."""

    operator: Any = None

    def _no_indices(self, return_indices):
        if return_indices:
            raise ValueError(f"{type(self).__name__}: return_indices=True is not supported; there is no operator that "
                             f"puts elements back")


class MaxPooling(PoolingBase):
    """The base of MaxPool1d, MaxPool2d and MaxPool3d."""

    _shown = "kernel_size", "stride", "padding", "dilation", "ceil_mode"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
                 return_indices: Literal[False] = False, ceil_mode: bool = False):
        self._no_indices(return_indices)
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """The largest element of each window."""
        return self.operator(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool1d(MaxPooling):
    """The largest element of each window of rows: x is (n, channels, width) or without n. See cygrad.max_pool2d."""

    operator = staticmethod(pool.max_pool1d)


class MaxPool2d(MaxPooling):
    """The largest element of each window of images: x is (n, channels, height, width) or without n. The stride is the
    kernel size by default. See cygrad.max_pool2d. return_indices exists to keep PyTorch's order of arguments; True
    raises ValueError."""

    operator = staticmethod(pool.max_pool2d)


class MaxPool3d(MaxPooling):
    """The largest element of each window of volumes: x is (n, channels, depth, height, width) or without n. See
    cygrad.max_pool2d."""

    operator = staticmethod(pool.max_pool3d)


class AvgPool1d(PoolingBase):
    """The mean of each window of rows: x is (n, channels, width) or without n. See cygrad.avg_pool2d."""

    _shown = "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True):
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        """The means."""
        return pool.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(PoolingBase):
    """The mean of each window of images: x is (n, channels, height, width) or without n. The stride is the kernel size
    by default. See cygrad.avg_pool2d."""

    _shown = "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"
    operator = staticmethod(pool.avg_pool2d)

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None):
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        """The means."""
        return self.operator(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                             self.divisor_override)


class AvgPool3d(AvgPool2d):
    """The mean of each window of volumes: x is (n, channels, depth, height, width) or without n. See AvgPool2d."""

    operator = staticmethod(pool.avg_pool3d)


class LPPooling(PoolingBase):
    """The base of LPPool1d, LPPool2d and LPPool3d."""

    _shown = "norm_type", "kernel_size", "stride", "ceil_mode"

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False):
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = kernel_size if stride is None else stride, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """The norms."""
        return self.operator(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPooling):
    """(sum of x^p)^(1/p) over each window of rows, where p is `norm_type`. See cygrad.lp_pool2d."""

    operator = staticmethod(pool.lp_pool1d)


class LPPool2d(LPPooling):
    """(sum of x^p)^(1/p) over each window of images, where p is `norm_type`. See cygrad.lp_pool2d."""

    operator = staticmethod(pool.lp_pool2d)


class LPPool3d(LPPooling):
    """(sum of x^p)^(1/p) over each window of volumes, where p is `norm_type`. See cygrad.lp_pool2d."""

    operator = staticmethod(pool.lp_pool3d)


class AdaptiveAvgPooling(PoolingBase):
    """The base of AdaptiveAvgPool1d, AdaptiveAvgPool2d and AdaptiveAvgPool3d."""

    _shown = ("output_size",)

    def __init__(self, output_size: Parts):
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """The means."""
        return self.operator(x, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPooling):
    """The means of windows that divide rows into `output_size` parts. See cygrad.adaptive_max_pool2d."""

    operator = staticmethod(pool.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(AdaptiveAvgPooling):
    """The means of windows that divide images into `output_size` parts, an int or one for each dimension; None keeps a
    size. AdaptiveAvgPool2d(1) gives the mean of each channel. See cygrad.adaptive_max_pool2d."""

    operator = staticmethod(pool.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(AdaptiveAvgPooling):
    """The means of windows that divide volumes into `output_size` parts. See AdaptiveAvgPool2d."""

    operator = staticmethod(pool.adaptive_avg_pool3d)


class AdaptiveMaxPooling(PoolingBase):
    """The base of AdaptiveMaxPool1d, AdaptiveMaxPool2d and AdaptiveMaxPool3d."""

    _shown = ("output_size",)

    def __init__(self, output_size: Parts, return_indices: Literal[False] = False):
        self._no_indices(return_indices)
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """The largest elements."""
        return self.operator(x, self.output_size)


class AdaptiveMaxPool1d(AdaptiveMaxPooling):
    """The largest elements of windows that divide rows into `output_size` parts. See cygrad.adaptive_max_pool2d."""

    operator = staticmethod(pool.adaptive_max_pool1d)


class AdaptiveMaxPool2d(AdaptiveMaxPooling):
    """The largest elements of windows that divide images into `output_size` parts, an int or one for each dimension;
    None keeps a size. See cygrad.adaptive_max_pool2d."""

    operator = staticmethod(pool.adaptive_max_pool2d)


class AdaptiveMaxPool3d(AdaptiveMaxPooling):
    """The largest elements of windows that divide volumes into `output_size` parts. See AdaptiveMaxPool2d."""

    operator = staticmethod(pool.adaptive_max_pool3d)
