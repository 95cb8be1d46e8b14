"""Initializers: distributions that fill a tensor in place, with the names and arguments of torch.nn.init, and those of
nnabla, which make a tensor of a shape. Each draws from `generator` (None: the default one).

fan_in is the number of inputs of one output, size(1) times the size of the kernel, and fan_out the number of outputs of
one input, size(0) times the size of the kernel. The formulas keep the variance of activations (forward) or gradients
(backward): Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming), Saxe et al. 2013 (orthogonal).

A parameter of a layer that waits for its sizes is filled when the layer has them: after the layer has drawn its own
values, in the order of the calls, from the generator as it is then. The arguments are checked in the call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any, Literal, ParamSpec

import numpy as np

from cygrad.core.dtypes import get_default_dtype
from cygrad.core.errors import as_float, described
from cygrad.core.execute.generator import Generator
from cygrad.core.graph.tensor import Tensor
from cygrad.core.graph.waiting import is_waiting, outside_trace, waiting, write_later
from cygrad.core.interop.creation import eye, full, zeros
from cygrad.core.interop.numpy import asarray
from cygrad.core.thread_state import set_recording
from cygrad.nn.factory import source
from cygrad.nn.waiting import MAKING

GAINS = {"linear": 1.0, "identity": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
         **{f"conv{t}{d}d": 1.0 for t in ("", "_transpose") for d in (1, 2, 3)}}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which the weights before a nonlinearity are larger: 1 for linear, conv1d to conv_transpose3d and
    sigmoid, 5/3 for tanh, sqrt(2) for relu, sqrt(2 / (1 + a^2)) for leaky_relu with the slope a = `param` (None: 0.01),
    3/4 for selu. Raises ValueError for another name."""
    if nonlinearity == "leaky_relu":
        a = 0.01 if param is None else number("calculate_gain", "param", param)
        return math.sqrt(2 / (1 + a * a))           # (** raises for a large a)
    if nonlinearity not in GAINS:
        raise ValueError(f"calculate_gain: nonlinearity must be one of {', '.join(GAINS)} and leaky_relu, got "
                         f"{described(nonlinearity)}")
    return GAINS[nonlinearity]


def number(caller, name, value):
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{caller}: {name} must be a number, got {described(value)}")
    return as_float(value, f"{caller}: {name}")


def fans(caller, shape):
    """(fan_in, fan_out) of a weight."""
    if len(shape) < 2:
        raise ValueError(f"{caller}: a tensor of shape {shape} has no fan_in and fan_out; it must have at least 2 "
                         f"dimensions")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def check(caller, x, ndim=0):
    if not isinstance(x, Tensor) or x.dtype.kind != "f":
        raise TypeError(f"{caller} fills a tensor of float32 or float64, got {described(x)}")
    if ndim and x.ndim != ndim:
        raise ValueError(f"{caller}: the tensor must have {ndim} dimensions, got {x.shape}")


def write(x, values):
    """Write into a tensor, also into a variable, without recording it."""
    recording = set_recording(False)
    try:
        x.detach().copy_(values)
    finally:
        set_recording(recording)
    return x


Arguments = ParamSpec("Arguments")


def fills(f: Callable[Arguments, Tensor]) -> Callable[Arguments, Tensor]:
    """A function that fills its first argument, `tensor`, which is checked. One that waits for its shape is filled when
    it has it."""
    parameters = signature(f)

    @wraps(f)
    def filled(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Tensor:
        x: Any = args[0] if args else kwargs.get("tensor")
        if is_waiting(x):
            with MAKING:                            # (after which another thread may have given it its shape)
                if is_waiting(x):
                    given = dict(parameters.bind(*args, **kwargs).arguments)
                    del given["tensor"]
                    outside_trace(partial(check_arguments, f, x, given, "generator" in parameters.parameters))
                    write_later(x, partial(filled, **given))
                    return x
        if args or "tensor" in kwargs: check(f.__name__, x)
        return f(*args, **kwargs)

    return filled


def check_arguments(f, x, given, draws):
    """Raise what f(x, **given) will, by filling a small tensor with as many dimensions, from another generator."""
    if draws: source(given.get("generator"))
    shape, groups = waiting(x).shape, given.get("groups", 1)
    first = shape[0] if shape and shape[0] is not None else groups if isinstance(groups, int) and groups > 0 else 1
    small = zeros((first, *(1 for _ in shape[1:])) if shape else (), dtype=x.dtype)
    try: f(small, **given | ({"generator": Generator(0)} if draws else {}))
    except (TypeError, ValueError) as e:
        text = str(shape).replace("None", "?")
        raise type(e)(str(e).replace(str(small.shape), text)) from None


def draw_uniform(x, bound, generator):
    return write(x, source(generator).uniform(x.shape, -bound, bound, dtype=x.dtype))


def draw_normal(x, std, generator):
    return write(x, source(generator).normal(x.shape, 0.0, std, dtype=x.dtype))


# ---- torch.nn.init ---------------------------------------------------------------------------------------------------

@fills
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from U(a, b). Returns the tensor, as all functions of this module do."""
    return write(tensor, source(generator).uniform(tensor.shape, a, b, dtype=tensor.dtype))


@fills
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from N(mean, std^2)."""
    return write(tensor, source(generator).normal(tensor.shape, mean, std, dtype=tensor.dtype))


@fills
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Fill with numbers from N(mean, std^2), given that they are between a and b."""
    drawn = source(generator).truncated_normal(tensor.shape, a, b, mean, std, dtype=tensor.dtype)
    return write(tensor, drawn)


@fills
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    return write(tensor, val)


@fills
def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return write(tensor, 0.0)


@fills
def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return write(tensor, 1.0)


@fills
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity: a Linear then passes its inputs on."""
    check("eye_", tensor, 2)
    rows, columns = tensor.shape
    return write(tensor, eye(rows, columns, dtype=tensor.dtype))


@fills
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution (out, in, *kernel) with deltas: the layer then passes on as many channels of
    each group as possible. Raises ValueError if `groups` does not divide the number of outputs."""
    fans("dirac_", tensor.shape)
    if not isinstance(groups, int): raise TypeError(f"dirac_: groups must be an int, got {described(groups)}")
    if len(tensor.shape) < 3 or groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: a weight of shape {tensor.shape} in {groups} groups; it must be (out, in, *kernel), "
                         f"and groups must divide out")
    out = tensor.shape[0] // groups
    deltas = zeros(tensor.shape, dtype=tensor.dtype)
    centre = tuple(n // 2 for n in tensor.shape[2:])
    for g in range(groups):
        for c in range(min(out, tensor.shape[1])): deltas[(g * out + c, c, *centre)] = 1
    return write(tensor, deltas)


@fills
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill from U(-b, b) with b = gain sqrt(6 / (fan_in + fan_out)), also known as Glorot's."""
    bound = number("xavier_uniform_", "gain", gain) * math.sqrt(6 / sum(fans("xavier_uniform_", tensor.shape)))
    return draw_uniform(tensor, bound, generator)


@fills
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill from N(0, std^2) with std = gain sqrt(2 / (fan_in + fan_out))."""
    std = number("xavier_normal_", "gain", gain) * math.sqrt(2 / sum(fans("xavier_normal_", tensor.shape)))
    return draw_normal(tensor, std, generator)


def kaiming_std(caller, shape, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{caller}: mode must be \"fan_in\" or \"fan_out\", got {described(mode)}")
    fan = fans(caller, shape)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


@fills
def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: Literal["fan_in", "fan_out"] = "fan_in",
                     nonlinearity: str = "leaky_relu", generator: Generator | None = None) -> Tensor:
    """Fill from U(-b, b) with b = gain sqrt(3 / fan), where the gain is calculate_gain(nonlinearity, a); also known as
    He's."""
    std = kaiming_std("kaiming_uniform_", tensor.shape, a, mode, nonlinearity)
    return draw_uniform(tensor, math.sqrt(3) * std, generator)


@fills
def kaiming_normal_(tensor: Tensor, a: float = 0, mode: Literal["fan_in", "fan_out"] = "fan_in",
                    nonlinearity: str = "leaky_relu", generator: Generator | None = None) -> Tensor:
    """Fill from N(0, std^2) with std = gain / sqrt(fan), where the gain is calculate_gain(nonlinearity, a)."""
    return draw_normal(tensor, kaiming_std("kaiming_normal_", tensor.shape, a, mode, nonlinearity), generator)


def orthogonal(shape, gain, dtype, generator):
    """A matrix with orthonormal rows or columns, in the shape (first, *rest), times gain: the q of a random normal
    matrix, with the signs that make r's diagonal positive, so that it is uniform among all."""
    from cygrad.ops.linalg.decompose import qr

    rows, columns = shape[0], math.prod(shape[1:])
    if not rows * columns: return zeros(shape, dtype=dtype)
    x = source(generator).normal((max(rows, columns), min(rows, columns)), dtype=dtype)
    q, r = qr(x)
    n = r.numpy().diagonal()
    q = q * full(n.shape, gain, dtype).numpy() * (1 - 2 * (n < 0)).astype(dtype)
    return (q.T if rows < columns else q).reshape(shape)


@fills
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with a random matrix whose rows or columns are orthonormal, times gain; all dimensions but the first are
    flattened."""
    fans("orthogonal_", tensor.shape)
    recording = set_recording(False)
    try:
        return write(tensor, orthogonal(tensor.shape, number("orthogonal_", "gain", gain), tensor.dtype, generator))
    finally:
        set_recording(recording)


@fills
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix from N(0, std^2) and set the fraction `sparsity` of each column to zero."""
    check("sparse_", tensor, 2)
    if not 0 <= number("sparse_", "sparsity", sparsity) <= 1:
        raise ValueError(f"sparse_: sparsity must be from 0 to 1, got {described(sparsity)}")
    generator, (rows, columns) = source(generator), tensor.shape
    drawn = generator.normal(tensor.shape, 0.0, std, dtype=tensor.dtype)
    a = drawn.numpy()
    for j in range(columns): a[generator.permutation(rows).numpy()[:math.ceil(sparsity * rows)], j] = 0
    return write(tensor, drawn)


# ---- nnabla ----------------------------------------------------------------------------------------------------------

def calc_normal_std_he_forward(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> float:
    """sqrt(2 / (k inmaps)), where k is the product of kernel: He's std for the variance of activations."""
    return math.sqrt(2 / (math.prod(kernel) * inmaps))


def calc_normal_std_he_backward(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> float:
    """sqrt(2 / (k outmaps)): He's std for the variance of gradients."""
    return math.sqrt(2 / (math.prod(kernel) * outmaps))


def calc_normal_std_glorot(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> float:
    """sqrt(2 / (k inmaps + outmaps)): nnabla's std by Glorot, in which the kernel counts for the inputs only."""
    return math.sqrt(2 / (math.prod(kernel) * inmaps + outmaps))


def calc_uniform_lim_glorot(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> tuple[float, float]:
    """(-d, d) with d = sqrt(6 / (k inmaps + outmaps)): nnabla's limits by Glorot."""
    d = math.sqrt(6 / (math.prod(kernel) * inmaps + outmaps))
    return -d, d


class Initializer:
    """The base of nnabla's initializers: a call with a shape makes a tensor, for nn.Parameter."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape, of the default dtype or `dtype`."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__; use one of its subclasses")


class ConstantInitializer(Initializer):
    """One number."""

    def __init__(self, value: float = 0):
        self.value = value

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape."""
        return full(shape, number("ConstantInitializer", "value", self.value), dtype=dtype)


class NormalInitializer(Initializer):
    """N(0, sigma^2)."""

    def __init__(self, sigma: float = 1.0, generator: Generator | None = None):
        self.sigma, self.generator = sigma, generator

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape."""
        return source(self.generator).normal(shape, 0.0, self.sigma, dtype=dtype)


def limits(initializer, lim):
    """The two limits of a uniform distribution."""
    if not isinstance(lim, (tuple, list)) or len(lim) != 2:
        raise TypeError(f"{type(initializer).__name__}: lim must be a pair (low, high), got {described(lim)}")
    return tuple(lim)


class UniformInitializer(Initializer):
    """U(lim[0], lim[1])."""

    def __init__(self, lim: tuple[float, float] = (-1, 1), generator: Generator | None = None):
        self.lim, self.generator = limits(self, lim), generator

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape."""
        return source(self.generator).uniform(shape, *self.lim, dtype=dtype)


class OrthogonalInitializer(Initializer):
    """Orthonormal rows or columns, times gain. See `orthogonal_`."""

    def __init__(self, gain: float = 1.0, generator: Generator | None = None):
        self.gain, self.generator = gain, generator

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape."""
        return orthogonal_(zeros(shape, dtype=dtype), self.gain, self.generator)


class UniformIntInitializer(Initializer):
    """Integers of [lim[0], lim[1]), each with the same probability, as numbers of the dtype."""

    def __init__(self, lim: tuple[int, int] = (0, 10), generator: Generator | None = None):
        self.lim, self.generator = limits(self, lim), generator

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape. Raises TypeError for limits that are not integers, ValueError for an empty range."""
        drawn = source(self.generator).integers(shape, *self.lim)
        return drawn.astype(get_default_dtype() if dtype is None else dtype)


class RangeInitializer(Initializer):
    """x[..., i] = start + step i: the same numbers in each row."""

    def __init__(self, start: float = 0, step: float = 1):
        self.start, self.step = start, step

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape. The numbers are rounded once, to the dtype."""
        start, step = number("RangeInitializer", "start", self.start), number("RangeInitializer", "step", self.step)
        x = zeros(shape, dtype=dtype)
        x.numpy()[...] = start + step * np.arange(x.shape[-1] if x.ndim else 1)
        return x


class WeightNormalizationScaleInitializer(Initializer):
    """g[i] = sqrt(sum of w^2 over all axes but `dim` + eps): the scale g with which weight normalization, g w / |w|
    (Salimans and Kingma 2016), leaves a weight w as it is. `w` is a tensor or an array, which is read in each call."""

    def __init__(self, w: Any, dim: int = 0, eps: float = 1e-12):
        self.w, self.dim, self.eps = w, dim, eps

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """A tensor of this shape, which has as many elements as `w` has along `dim`. The sum is in float64. Raises
        ValueError for another shape."""
        y, w = zeros(shape, dtype=dtype), asarray(self.w).detach()
        if isinstance(self.dim, bool) or not isinstance(self.dim, int) or not -w.ndim <= self.dim < w.ndim:
            raise ValueError(f"WeightNormalizationScaleInitializer: dim must be an axis of w, which is {w.shape}, got "
                             f"{described(self.dim)}")
        axis = self.dim % w.ndim
        if y.size != w.shape[axis]:
            raise ValueError(f"WeightNormalizationScaleInitializer: the shape must have {w.shape[axis]} elements, as "
                             f"many as axis {axis} of w, got {y.shape}")
        squares = np.square(w.numpy(), dtype="float64").sum(axis=tuple(i for i in range(w.ndim) if i != axis))
        eps = number("WeightNormalizationScaleInitializer", "eps", self.eps)
        y.numpy()[...] = np.sqrt(squares + eps).reshape(y.shape)
        return y
