"""Functions of the array API standard that differ from cygrad's of the same name, or that cygrad does not have: those
with a device, which is always "cpu", with a dtype or with results of other types; and questions about dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad.core.dtypes import DTYPES, get_default_dtype, promote_dtypes, read_dtype
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray as shared
from cygrad.core.interop.numpy import tensor
from cygrad.core.late_bound import namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    Data = Tensor | npt.ArrayLike

cygrad = namespace()
INT64 = np.dtype("int64")
KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
         "complex floating": "c", "numeric": "iufc"}


def check_device(device):
    """Raise ValueError for another device than the only one."""
    if device not in (None, "cpu"):
        raise ValueError(f"device must be None or \"cpu\", got {described(device)}; all memory is the CPU's")


# ---- creation --------------------------------------------------------------------------------------------------------

def asarray(obj: Data, /, *, dtype: npt.DTypeLike | None = None, device: str | None = None,
            copy: bool | None = None) -> Tensor:
    """A tensor of `obj`. With copy None, memory is shared where it can be; True always copies, and False raises
    ValueError if the memory cannot be shared. Raises ValueError for another device than "cpu"."""
    check_device(device)
    if copy: return obj.astype(dtype).copy() if isinstance(obj, Tensor) and dtype is not None else \
        obj.copy() if isinstance(obj, Tensor) else tensor(obj, dtype)
    y = shared(obj, dtype)
    if copy is False and y is not obj and not (hasattr(obj, "dtype") and obj.dtype == y.dtype):
        raise ValueError(f"asarray: {described(obj)} cannot become a tensor without a copy; leave copy out")
    return y


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: npt.DTypeLike | None = None,
           device: str | None = None) -> Tensor:
    """The numbers from `start` to `stop`, without it, in steps. See cygrad.arange."""
    check_device(device)
    return cygrad.arange(start, stop, step, dtype)


def empty(shape: int | Sequence[int], *, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor without values."""
    check_device(device)
    return cygrad.empty(shape, dtype=dtype)


def empty_like(x: Tensor, /, *, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor without values, with the shape and dtype of x."""
    check_device(device)
    return cygrad.empty_like(x, dtype)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: npt.DTypeLike | None = None,
        device: str | None = None) -> Tensor:
    """Ones on diagonal k of a matrix of zeros."""
    check_device(device)
    return cygrad.eye(n_rows, n_cols, k, dtype)


def full(shape: int | Sequence[int], fill_value: float, *, dtype: npt.DTypeLike | None = None,
         device: str | None = None) -> Tensor:
    """A tensor of one value, which decides the dtype: bool, int64 or the default dtype."""
    check_device(device)
    return cygrad.full(shape, fill_value, dtype)


def full_like(x: Tensor, /, fill_value: float, *, dtype: npt.DTypeLike | None = None,
              device: str | None = None) -> Tensor:
    """A tensor of one value, with the shape and dtype of x."""
    check_device(device)
    return cygrad.full_like(x, fill_value, dtype)


def linspace(start: float, stop: float, /, num: int, *, dtype: npt.DTypeLike | None = None, device: str | None = None,
             endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers. See cygrad.linspace."""
    check_device(device)
    return cygrad.linspace(start, stop, num, dtype, endpoint)


def ones(shape: int | Sequence[int], *, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor of ones."""
    check_device(device)
    return cygrad.ones(shape, dtype=dtype)


def ones_like(x: Tensor, /, *, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Ones, with the shape and dtype of x."""
    check_device(device)
    return cygrad.ones_like(x, dtype)


def zeros(shape: int | Sequence[int], *, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    check_device(device)
    return cygrad.zeros(shape, dtype=dtype)


def zeros_like(x: Tensor, /, *, dtype: npt.DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Zeros, with the shape and dtype of x."""
    check_device(device)
    return cygrad.zeros_like(x, dtype)


# ---- dtypes ----------------------------------------------------------------------------------------------------------

class FloatInfo(NamedTuple):
    """What finfo() tells about a floating-point dtype."""
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IntegerInfo(NamedTuple):
    """What iinfo() tells about an integer dtype."""
    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def dtype_of(x):
    return x.dtype if isinstance(x, Tensor) else read_dtype(x)


def astype(x: Tensor, dtype: npt.DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """x in another dtype: a copy, or x itself if it has that dtype and copy is False."""
    check_device(device)
    y = x.astype(dtype)
    return y.copy() if copy and y is x else y


def can_cast(from_: npt.DTypeLike | Tensor, to: npt.DTypeLike, /) -> bool:
    """Whether a dtype, or that of a tensor, promotes to the dtype `to` within its kind."""
    a, b = dtype_of(from_), read_dtype(to)
    if a.kind != b.kind and {a.kind, b.kind} != {"i", "u"}: return False
    try: return promote_dtypes(a, b) == b
    except TypeError: return False


def finfo(type: npt.DTypeLike | Tensor, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of that of a tensor. Raises TypeError for another dtype."""
    dtype = dtype_of(type)
    if dtype.kind != "f": raise TypeError(f"finfo takes a floating-point dtype, got {dtype}")
    i = np.finfo(dtype)
    return FloatInfo(i.bits, float(i.eps), float(i.max), float(i.min), float(i.smallest_normal), dtype)


def iinfo(type: npt.DTypeLike | Tensor, /) -> IntegerInfo:
    """The limits of an integer dtype, or of that of a tensor. Raises TypeError for another dtype."""
    dtype = dtype_of(type)
    if dtype.kind not in "iu": raise TypeError(f"iinfo takes an integer dtype, got {dtype}")
    i = np.iinfo(dtype)
    return IntegerInfo(i.bits, int(i.max), int(i.min), dtype)


def isdtype(dtype: npt.DTypeLike, kind: npt.DTypeLike | tuple[npt.DTypeLike, ...]) -> bool:
    """Whether a dtype is of a kind: a dtype, the name of a kind such as "real floating", or a tuple of these. Raises
    TypeError for an unknown kind."""
    if isinstance(kind, tuple): return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise TypeError(f"isdtype: kind must be a dtype or one of {', '.join(KINDS)}; got {described(kind)}")
        return read_dtype(dtype).kind in KINDS[kind]
    return read_dtype(dtype) == read_dtype(kind)


def result_type(*arrays_and_dtypes: Data) -> np.dtype[Any]:
    """The dtype to which tensors, dtypes and Python numbers promote. The numbers decide only the kind."""
    numbers = [v for v in arrays_and_dtypes if isinstance(v, (bool, int, float))]
    dtypes = [dtype_of(v) for v in arrays_and_dtypes if not isinstance(v, (bool, int, float))]
    if not dtypes: raise ValueError("result_type takes at least one tensor or dtype")
    y = dtypes[0]
    for d in dtypes[1:]: y = promote_dtypes(y, d)
    for v in numbers:
        if isinstance(v, float) and y.kind != "f": y = get_default_dtype()
        elif not isinstance(v, bool) and y.kind == "b": y = INT64
    return y


class Info:
    """What __array_namespace_info__() of the namespace returns: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """What is optional in the standard, and whether it is here."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> str:
        """ "cpu" """
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of Python numbers and of indices."""
        check_device(device)
        return {"real floating": get_default_dtype(), "integral": INT64, "indexing": INT64}

    def devices(self) -> list[str]:
        """The devices: the CPU."""
        return ["cpu"]

    def dtypes(self, *, device: str | None = None,
               kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind, by name."""
        check_device(device)
        return {d.name: d for d in DTYPES if kind is None or isdtype(d, kind)}


def namespace_info() -> Info:
    """What the namespace has: capabilities, devices and dtypes."""
    return Info()


# ---- elements --------------------------------------------------------------------------------------------------------

def positive(x: Tensor, /) -> Tensor:
    """+x"""
    return +x


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate, which is x itself: cygrad's numbers are real."""
    return +x


def real(x: Tensor, /) -> Tensor:
    """The real part, which is x itself."""
    return +x


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part, which is 0."""
    return cygrad.zeros_like(x)


def bitwise_invert(x: Tensor, /) -> Tensor:
    """~x, bit by bit."""
    return ~x


def floor_divide(x1: Data, x2: Data, /) -> Tensor:
    """The largest integer not above x1 / x2. An infinity divided by a number is an infinity, as the standard wants; it
    is NaN in NumPy, and of cygrad.floor_divide."""
    y = cygrad.floor_divide(x1, x2)
    if y.dtype.kind != "f": return y
    infinite = cygrad.logical_and(cygrad.isinf(x1), cygrad.isfinite(x2))
    return cygrad.where(infinite, cygrad.divide(x1, x2), y)


# ---- shapes ----------------------------------------------------------------------------------------------------------

def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which these broadcast. Raises ValueError if they do not."""
    return np.broadcast_shapes(*shapes)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """x with its axes in this order: a view."""
    return cygrad.permute(x, tuple(axes))


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """x in another shape. With copy None it is a view where the strides allow; True always copies, and False raises
    ValueError if a view is impossible."""
    y = cygrad.reshape(x, shape)
    if copy is False and x.size and not np.may_share_memory(x, y):
        raise ValueError(f"reshape: x of shape {x.shape} and strides {x.strides} cannot become {tuple(shape)} without "
                         f"a copy; leave copy out")
    return y.copy() if copy else y


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x repeated along each axis. See cygrad.tile."""
    return cygrad.tile(x, repetitions)


# ---- sums, sets and sorting ------------------------------------------------------------------------------------------

def with_dtype(f, x, dtype, *args):
    """f of x in a dtype. The result has it too: a sum of int32 would be int64."""
    return f(x, *args) if dtype is None else f(x.astype(dtype), *args).astype(dtype)


def sum(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: npt.DTypeLike | None = None,
        keepdims: bool = False) -> Tensor:
    """The sum over axes, in `dtype` if it is given. See cygrad.sum."""
    return with_dtype(cygrad.sum, x, dtype, axis, keepdims)


def prod(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, dtype: npt.DTypeLike | None = None,
         keepdims: bool = False) -> Tensor:
    """The product over axes, in `dtype` if it is given. See cygrad.prod."""
    return with_dtype(cygrad.prod, x, dtype, axis, keepdims)


def accumulated(name, f, start, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim != 1: raise ValueError(f"{name}: x has shape {x.shape}; pass axis, unless it has one dimension")
        axis = 0
    y = with_dtype(f, x, dtype, axis)
    if not include_initial: return y
    shape = list(y.shape)
    shape[axis] = 1
    return cygrad.concat([cygrad.full(shape, start, y.dtype), y], axis)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None,
                   include_initial: bool = False) -> Tensor:
    """The sums of the first elements along an axis, in `dtype` if it is given; with include_initial, a 0 comes
    first. Raises ValueError without an axis, unless x has one dimension."""
    return accumulated("cumulative_sum", cygrad.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None,
                    include_initial: bool = False) -> Tensor:
    """The products of the first elements along an axis, in `dtype` if it is given; with include_initial, a 1 comes
    first. Raises ValueError without an axis, unless x has one dimension."""
    return accumulated("cumulative_prod", cygrad.cumprod, 1, x, axis, dtype, include_initial)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along an axis in order. Every sort is stable."""
    return cygrad.sort(x, axis, descending)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x along an axis. Every sort is stable."""
    return cygrad.argsort(x, axis, descending)


def isin(x1: Data, x2: Data, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is in x2, or with invert, is not. See cygrad.isin."""
    return cygrad.isin(x1, x2, invert)


class UniqueAllResult(NamedTuple):
    """What unique_all() returns."""
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What unique_counts() returns."""
    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What unique_inverse() returns."""
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements, the first index of each, the index of the value of each element, and how many of each
    there are. Each NaN is another element."""
    return UniqueAllResult(*cygrad.unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements and how many of each there are. Each NaN is another element."""
    return UniqueCountsResult(*cygrad.unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements and the index of the value of each element. Each NaN is another element."""
    return UniqueInverseResult(*cygrad.unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements. Each NaN is another element."""
    return cygrad.unique(x, equal_nan=False)
