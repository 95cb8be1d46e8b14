"""Normalization: BatchNorm, InstanceNorm, GroupNorm, LocalResponseNorm, LayerNorm and RMSNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import ones, zeros
from cygrad.core.interop.numpy import asarray
from cygrad.core.thread_state import set_recording
from cygrad.nn.factory import floating, number, size
from cygrad.nn.factory import size as whole
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter
from cygrad.nn.waiting import has_bias
from cygrad.ops.layers.channels import batch_norm, group_norm, instance_norm, local_response_norm
from cygrad.ops.layers.normalize import layer_norm, rms_norm
from cygrad.ops.reductions.reduce import mean
from cygrad.ops.reductions.statistics import var


def scale(shape, how):
    """The plan (see waiting.py) of a weight of ones and a bias of zeros."""
    return {"weight": (shape, lambda shape: Parameter(ones(shape, dtype=how["dtype"]))),
            "bias": (shape, lambda shape: Parameter(zeros(shape, dtype=how["dtype"])))}


def wait_for(layer, bias):
    """Register the parameters of scale(), which are made later."""
    for name in ("weight", "bias")[:1 + bias]: layer.register_parameter(name, None)


def count(batches):
    """Add 1 to a counter."""
    batches += 1


class ChannelNormBase(Module):
    """The base of the layers with running statistics of channels. Subclasses set the numbers of dimensions that x may
    have, with words for them."""

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    ndims: tuple[int, ...] = ()
    wanted = ""

    def __init__(self, num_features: int | None, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True):
        self.num_features, self.eps = None, number(self, "eps", eps)
        self.momentum = None if momentum is None else number(self, "momentum", momentum)
        self.affine, self.track_running_stats = bool(affine), bool(track_running_stats)
        self._how = {"dtype": floating(self, device, dtype)}
        self.weight = self.bias = self.running_mean = self.running_var = self.num_batches_tracked = None
        if self.affine: wait_for(self, bool(bias))
        for name in ("running_mean", "running_var", "num_batches_tracked") if self.track_running_stats else ():
            self.register_buffer(name, None)
        if num_features is not None: self._settle(size(self, "num_features", num_features))
        elif self.affine or self.track_running_stats: self._wait(1, 2)

    def _plan(self, n):
        how = self._how
        return {**scale((n,), how), "running_mean": ((n,), lambda shape: zeros(shape, dtype=how["dtype"])),
                "running_var": ((n,), lambda shape: ones(shape, dtype=how["dtype"])),
                "num_batches_tracked": ((), lambda shape: zeros(shape, dtype="int64"))}

    def _size_of(self, x):
        shape = np.shape(x)
        if len(shape) not in self.ndims: self._refuse(shape)
        return shape[self._axis(len(shape))]

    def _axis(self, ndim):
        """The axis of the channels."""
        return 1

    def _dtype_of(self, name):
        return "int64" if name == "num_batches_tracked" else self._how["dtype"]

    def _size_in(self, state):
        for name in ("weight", "running_mean"):
            if name in state and state[name].ndim == 1: return state[name].shape[0]
        return None

    def _set_size(self, n):
        self.num_features = n

    def _refuse(self, shape):
        raise ValueError(f"{type(self).__name__}: x must be {self.wanted}, got {shape}")

    def _factor(self):
        """The factor by which running statistics move: momentum, or 1 / (number of batches with this one)."""
        return self.momentum if self.momentum is not None else 1 / (self.num_batches_tracked.item() + 1)

    def reset_running_stats(self) -> None:
        """Set running_mean to zeros, running_var to ones, and num_batches_tracked to 0."""
        for x, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if x is not None: x.fill_(value)

    def extra_repr(self) -> str:
        """The arguments."""
        more = ", bias=False" * (self.affine and not has_bias(self))
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}{more}, "
                f"track_running_stats={self.track_running_stats}")


class BatchNormBase(ChannelNormBase):
    """The base of BatchNorm1d, BatchNorm2d and BatchNorm3d."""

    _frozen = False

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized."""
        if (x.ndim if type(x) is Tensor else np.ndim(x)) not in self.ndims: self._refuse(np.shape(x))
        average, variance = self.running_mean, self.running_var
        if average is None: return batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        if self._frozen or not self._training():
            return batch_norm(x, average, variance, self.weight, self.bias, False, 0.0, self.eps)
        y = batch_norm(x, average, variance, self.weight, self.bias, True, self._factor(), self.eps)
        count(self.num_batches_tracked)
        return y

    def freeze_statistics(self, freeze: bool = True) -> BatchNormBase:
        """Use the running statistics in train mode too and do not move them, as fine-tuning on small batches needs; the
        layer then does not depend on the mode. False: as before. weight and bias stay trainable; `freeze()` freezes
        them. Returns the layer. Raises ValueError for a layer without running statistics."""
        if freeze and not self.track_running_stats:
            raise ValueError(f"{type(self).__name__}: freeze_statistics needs running statistics; make the layer with "
                             f"track_running_stats=True")
        self._frozen = bool(freeze)
        return self

    def extra_repr(self) -> str:
        """The arguments, and whether the statistics are frozen."""
        return super().extra_repr() + ", frozen statistics" * self._frozen


class BatchNorm1d(BatchNormBase):
    """Batch normalization of (n, num_features) or (n, num_features, length). See BatchNorm2d."""

    ndims, wanted = (2, 3), "(n, channels) or (n, channels, length)"


class BatchNorm2d(BatchNormBase):
    """Normalize each channel of (n, num_features, height, width), then multiply it by its weight and add its bias. In
    train mode each channel gets mean 0 and variance 1 over the batch; in predict mode the running statistics are its
    mean and variance. See cygrad.batch_norm.

    weight, bias                (num_features,), ones and zeros; None with affine=False; without bias with bias=False
    running_mean, running_var   buffers (num_features,), zeros and ones: in train mode they move by the factor
                                `momentum` towards the mean and the unbiased variance of the batch
    num_batches_tracked         a buffer, int64: how many batches moved them

    With momentum None they are the averages of all batches: the factor is 1 / num_batches_tracked. With
    track_running_stats=False there are none, and predict mode uses the batch too. With num_features None the first call
    decides. `dtype` is float32 or float64 (None: the default one)."""

    ndims, wanted = (4,), "(n, channels, height, width)"


class BatchNorm3d(BatchNormBase):
    """Batch normalization of (n, num_features, depth, height, width). See BatchNorm2d."""

    ndims, wanted = (5,), "(n, channels, depth, height, width)"


class InstanceNormBase(ChannelNormBase):
    """The base of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d."""

    def __init__(self, num_features: int | None, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True):
        super().__init__(num_features, eps, number(self, "momentum", momentum), affine, track_running_stats, device,
                         dtype, bias=bias)

    def _axis(self, ndim):
        return 1 if ndim == self.ndims[-1] else 0

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized."""
        ndim = x.ndim if type(x) is Tensor else np.ndim(x)
        if ndim not in self.ndims: self._refuse(np.shape(x))
        if ndim != self.ndims[-1]: return self._normalized(asarray(x)[None])[0]
        return self._normalized(x)

    def _normalized(self, x):
        average, variance = self.running_mean, self.running_var
        if average is None: return instance_norm(x, self.weight, self.bias, self.eps)
        if not self._training():
            return batch_norm(x, average, variance, self.weight, self.bias, False, 0.0, self.eps)
        x = asarray(x)
        y = instance_norm(x, self.weight, self.bias, self.eps)
        recording = set_recording(False)
        try:
            axes = tuple(range(2, x.ndim))
            found = [mean(f, 0) for f in (mean(x, axes), var(x, axes, correction=1))]
            moved = [kept + (f - kept) * self.momentum for kept, f in zip((average, variance), found, strict=True)]
            for kept, value in zip((average, variance), moved, strict=True): kept.copy_(value)
        finally:
            set_recording(recording)
        return y


class InstanceNorm1d(InstanceNormBase):
    """Instance normalization of (n, num_features, length) or (num_features, length). See InstanceNorm2d."""

    ndims, wanted = (2, 3), "(n, channels, length) or (channels, length)"


class InstanceNorm2d(InstanceNormBase):
    """Normalize each channel of each sample of (n, num_features, height, width), or without n, to mean 0 and variance
    1; with affine=True, then multiply it by its weight and add its bias. See cygrad.instance_norm.

    With track_running_stats=True, predict mode uses running statistics, which in train mode move by the factor
    `momentum` towards the mean over the batch of the means and unbiased variances. The parameters and buffers are those
    of BatchNorm2d; num_batches_tracked stays 0, as in PyTorch. With num_features None the first call decides."""

    ndims, wanted = (3, 4), "(n, channels, height, width) or (channels, height, width)"


class InstanceNorm3d(InstanceNormBase):
    """Instance normalization of (n, num_features, depth, height, width), or without n. See InstanceNorm2d."""

    ndims, wanted = (4, 5), "(n, channels, depth, height, width) or (channels, depth, height, width)"


class GroupNorm(Module):
    """Normalize groups of adjacent channels of each sample of (n, num_channels, ...) to mean 0 and variance 1, then
    multiply each channel by its weight and add its bias. See cygrad.group_norm.

    weight, bias   (num_channels,), ones and zeros; None with affine=False; without bias with bias=False

    With num_channels None the first call decides. `dtype` is float32 or float64 (None: the default one)."""

    weight: Tensor | None
    bias: Tensor | None

    def __init__(self, num_groups: int, num_channels: int | None, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True):
        self.num_groups, self.num_channels = size(self, "num_groups", num_groups), None
        self.eps, self.affine = number(self, "eps", eps), bool(affine)
        self._how = {"dtype": floating(self, device, dtype)}
        self.weight = self.bias = None
        if self.affine: wait_for(self, bool(bias))
        if num_channels is not None: self._settle(size(self, "num_channels", num_channels))
        elif self.affine: self._wait(self.num_groups, 2 * self.num_groups)

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized."""
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def _plan(self, n):
        if n % self.num_groups:
            raise ValueError(f"GroupNorm: num_channels must be a multiple of num_groups, got {n} in {self.num_groups} "
                             f"groups")
        return scale((n,), self._how)

    def _size_of(self, x):
        shape = np.shape(x)
        if len(shape) < 2: raise ValueError(f"GroupNorm: x must be (n, channels, ...), got {shape}")
        return shape[1]

    def _size_in(self, state):
        return state["weight"].shape[0] if "weight" in state and state["weight"].ndim == 1 else None

    def _set_size(self, n):
        self.num_channels = n

    def extra_repr(self) -> str:
        """The arguments."""
        more = ", bias=False" * (self.affine and not has_bias(self))
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}{more}"


class LastAxesNorm(Module):
    """The base of LayerNorm and RMSNorm."""

    weight: Tensor | None
    bias: Tensor | None
    normalized_shape: tuple[int, ...] | None
    eps: Any                # a number; RMSNorm: or None

    def _set_up(self, normalized_shape, elementwise_affine, bias, device, dtype):
        self.normalized_shape, self.elementwise_affine = None, bool(elementwise_affine)
        self._how = {"dtype": floating(self, device, dtype)}
        self.weight = self.bias = None
        if self.elementwise_affine: wait_for(self, bool(bias))
        if normalized_shape is None:
            if self.elementwise_affine: self._wait((1,), (2,))
            return
        given = normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
        shape = tuple(size(self, "normalized_shape", n) for n in given)
        if not shape:
            raise ValueError(f"{type(self).__name__}: normalized_shape must have at least one size, got ()")
        self._settle(shape)

    def _plan(self, shape):
        return scale(shape, self._how)

    def _axes(self, x):
        """The axes that normalized_shape has, for a layer without a weight."""
        wanted = self.normalized_shape or (np.shape(x) or (1,))[-1:]
        shape = np.shape(x)
        if shape[-len(wanted):] != wanted:
            raise ValueError(f"{type(self).__name__}: x must be (..., {', '.join(map(str, wanted))}), got {shape}")
        return tuple(range(-len(wanted), 0))

    def _size_of(self, x):
        shape = np.shape(x)
        if not shape:
            raise ValueError(f"{type(self).__name__}: x must have at least one dimension, got {described(x)}")
        return shape[-1:]

    def _size_in(self, state):
        return state["weight"].shape if "weight" in state and state["weight"].ndim == 1 else None

    def _set_size(self, shape):
        self.normalized_shape = shape

    def extra_repr(self) -> str:
        """The arguments."""
        more = ", bias=False" * (self.elementwise_affine and not has_bias(self))
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}{more}"


class LocalResponseNorm(Module):
    """Divide x (N, C, ...) by (k + alpha mean(x^2))^beta, where the mean is over `size` neighbouring channels: see
    local_response_norm."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        self.size = whole(self, "size", size)
        self.alpha, self.beta, self.k = (number(self, *x) for x in (("alpha", alpha), ("beta", beta), ("k", k)))

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized."""
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LayerNorm(LastAxesNorm):
    """Normalize `x` to mean 0 and variance 1 over its last dimensions, whose sizes are `normalized_shape` (an int: one
    dimension), then multiply by the weight and add the bias. See cygrad.layer_norm.

    weight, bias   of normalized_shape, ones and zeros; None with elementwise_affine=False; without bias with bias=False

    With normalized_shape None the first call decides: the last dimension is normalized. `dtype` is float32 or float64
    (None: the default one)."""

    def __init__(self, normalized_shape: int | Sequence[int] | None, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None):
        self.eps = number(self, "eps", eps)
        self._set_up(normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized."""
        weight = self.weight
        return layer_norm(x, weight, self.bias, self.eps, None if weight is not None else self._axes(x))


class RMSNorm(LastAxesNorm):
    """Divide `x` by its root mean square over its last dimensions, whose sizes are `normalized_shape` (an int: one
    dimension), then multiply by the weight. See cygrad.rms_norm.

    weight   of normalized_shape, ones; None with elementwise_affine=False

    `eps` is added to the mean square; None: the machine epsilon of x's dtype. With normalized_shape None the first call
    decides: the last dimension is normalized. `dtype` is float32 or float64 (None: the default one)."""

    def __init__(self, normalized_shape: int | Sequence[int] | None, eps: float | None = None,
                 elementwise_affine: bool = True, device: Any = None, dtype: Any = None):
        self.eps = None if eps is None else number(self, "eps", eps)
        self._set_up(normalized_shape, elementwise_affine, False, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """`x`, normalized."""
        weight = self.weight
        return rms_norm(x, weight, self.eps, None if weight is not None else self._axes(x))

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
