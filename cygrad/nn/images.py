"""Layers that pad, resize and rearrange images, rows and volumes. None has parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.nn.conv import Sizes, with_margins
from cygrad.nn.factory import size
from cygrad.nn.module import Module
from cygrad.ops.images.patches import fold, unfold
from cygrad.ops.images.resize import interpolate, pixel_shuffle, pixel_unshuffle


class Unfold(Module):
    """The patches of images as columns: (n, channels, height, width) becomes (n, channels * elements of the kernel,
    patches). See cygrad.unfold."""

    _shown = "kernel_size", "dilation", "padding", "stride"

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1):
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        """The patches."""
        return unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Images of `output_size` that are the sums of patches. See cygrad.fold."""

    _shown = "output_size", "kernel_size", "dilation", "padding", "stride"

    def __init__(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
                 stride: Sizes = 1):
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        """The images."""
        return fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class PixelShuffle(Module):
    """Channels as pixels: (..., channels r r, height, width) becomes (..., channels, r height, r width), where r is
    `upscale_factor` (Shi et al. 2016)."""

    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int):
        self.upscale_factor = size(self, "upscale_factor", upscale_factor)

    def forward(self, x: Tensor) -> Tensor:
        """The larger images."""
        return pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """Pixels as channels, the inverse of PixelShuffle: (..., channels, r height, r width) becomes (..., channels r r,
    height, width), where r is `downscale_factor`."""

    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int):
        self.downscale_factor = size(self, "downscale_factor", downscale_factor)

    def forward(self, x: Tensor) -> Tensor:
        """The smaller images."""
        return pixel_unshuffle(x, self.downscale_factor)


class Upsample(Module):
    """Images of another size, or `scale_factor` times as large. See cygrad.interpolate for the modes."""

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
                 mode: Literal["nearest", "linear", "bilinear", "bicubic", "trilinear"] = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: Literal[None, False] = None):
        if recompute_scale_factor:
            raise ValueError("Upsample: recompute_scale_factor=True is not supported; pass size instead")
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def forward(self, x: Tensor) -> Tensor:
        """The images of the other size."""
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        """size or scale_factor, and mode."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class Padding(Module):
    """The base of the padding layers: margins around the last `nd` dimensions. `padding` is one number, or (left,
    right), (left, right, top, bottom) or (left, right, top, bottom, front, back)."""

    nd = 0
    mode = "constant"
    value: float = 0

    def __init__(self, padding: Sizes):
        name, count = type(self).__name__, 2 * self.nd
        numbers = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * count
        if len(numbers) != count:
            raise ValueError(f"{name}: padding must be an int or {count} ints, got {described(padding)}")
        self.padding = tuple(size(self, "padding", n, 0) for n in numbers)
        self._margins = tuple(zip(self.padding[-2::-2], self.padding[::-2], strict=True))

    def forward(self, x: Tensor) -> Tensor:
        """`x` with margins."""
        return with_margins(x, self._margins, self.mode, self.value)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class ConstantPadding(Padding):
    """The base of ConstantPad1d, ConstantPad2d and ConstantPad3d."""

    def __init__(self, padding: Sizes, value: float):
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class ZeroPad1d(Padding):
    """Zeros around rows: `padding` is an int or (left, right)."""

    nd = 1


class ZeroPad2d(Padding):
    """Zeros around images: `padding` is an int or (left, right, top, bottom)."""

    nd = 2


class ZeroPad3d(Padding):
    """Zeros around volumes: `padding` is an int or (left, right, top, bottom, front, back)."""

    nd = 3


class ConstantPad1d(ConstantPadding):
    """A constant around rows: `padding` is an int or (left, right)."""

    nd = 1


class ConstantPad2d(ConstantPadding):
    """A constant around images: `padding` is an int or (left, right, top, bottom)."""

    nd = 2


class ConstantPad3d(ConstantPadding):
    """A constant around volumes: `padding` is an int or (left, right, top, bottom, front, back)."""

    nd = 3


class ReflectionPad1d(Padding):
    """Mirrored elements of x around rows: `padding` is an int or (left, right)."""

    nd, mode = 1, "reflect"


class ReflectionPad2d(Padding):
    """Mirrored elements of x around images: `padding` is an int or (left, right, top, bottom)."""

    nd, mode = 2, "reflect"


class ReflectionPad3d(Padding):
    """Mirrored elements of x around volumes: `padding` is an int or (left, right, top, bottom, front, back)."""

    nd, mode = 3, "reflect"


class ReplicationPad1d(Padding):
    """The edge elements around rows: `padding` is an int or (left, right)."""

    nd, mode = 1, "edge"


class ReplicationPad2d(Padding):
    """The edge elements around images: `padding` is an int or (left, right, top, bottom)."""

    nd, mode = 2, "edge"


class ReplicationPad3d(Padding):
    """The edge elements around volumes: `padding` is an int or (left, right, top, bottom, front, back)."""

    nd, mode = 3, "edge"


class CircularPad1d(Padding):
    """Periodic copies of x around rows: `padding` is an int or (left, right)."""

    nd, mode = 1, "wrap"


class CircularPad2d(Padding):
    """Periodic copies of x around images: `padding` is an int or (left, right, top, bottom)."""

    nd, mode = 2, "wrap"


class CircularPad3d(Padding):
    """Periodic copies of x around volumes: `padding` is an int or (left, right, top, bottom, front, back)."""

    nd, mode = 3, "wrap"
