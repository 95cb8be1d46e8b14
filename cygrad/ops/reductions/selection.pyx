"""Functions that select and compare elements, made of operators."""

import numpy as np

from cygrad.core.dtypes cimport promote
from cygrad.core.execute.composed cimport check_broadcast
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store cimport layout as lay
from cygrad.ops.reductions.summaries cimport floating
from cygrad.kernels.array cimport BOOL, INT64, is_floating

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.core.interop.creation import ones, zeros
from cygrad.ops.elementwise.compare import (
    equal, isfinite, isnan, less_equal, logical_and, logical_not, logical_or, minimum, not_equal, where,
)
from cygrad.ops.elementwise.elementwise import abs
from cygrad.ops.shapes.index import argwhere, gather, scatter_add, take
from cygrad.ops.shapes.join import concat
from cygrad.ops.reductions.reduce import all
from cygrad.ops.reductions.scan import cumsum
from cygrad.ops.shapes.shape import broadcast_to, reshape
from cygrad.ops.shapes.sort import argsort, searchsorted, sort
from cygrad.ops.reductions.summaries import diff


# ---- selection -------------------------------------------------------------------------------------------------------

@composed
def take_along_axis(x: Data, indices: Data, axis: int | None = -1) -> Tensor:
    """The elements of `x` at `indices` along `axis`, as in numpy.take_along_axis: y[i, j] = x[i, indices[i, j]] for
    axis 1. The other dimensions broadcast. With `axis` None, of the flattened x. Raises IndexError for an index out of
    range."""
    cdef Tensor t = ensure_tensor(x), i = ensure_tensor(indices)
    cdef int a
    if axis is None: t, axis = reshape(t, (-1,)), 0
    a = lay.read_axis(axis, t.ndim)
    if i.ndim != t.ndim:
        raise ValueError(f"take_along_axis: indices has shape {i.shape} and x has {t.shape}; they must have as many "
                         f"dimensions")
    shape = [n if m == 1 else m for m, n in zip(t.shape, i.shape)]
    if [d for d, (m, n) in enumerate(zip(i.shape, shape)) if d != a and m not in (1, n)]:
        raise ValueError(f"take_along_axis: indices has shape {i.shape} and x has {t.shape}; except in dimension {a}, "
                         f"sizes must be equal or 1")
    shape[a] = t.shape[a]
    t = broadcast_to(t, tuple(shape))
    shape[a] = i.shape[a]
    return gather(t, a, broadcast_to(i, tuple(shape)))


@composed
def index_add(x: Data, axis: int, index: Data, src: Data) -> Tensor:
    """`x` with slice k of `src` added to slice index[k] of x along `axis`, as in torch.index_add. Repeated indices
    accumulate. Raises ValueError if src does not have a slice for each index, and IndexError for an index out of
    range."""
    cdef Tensor t = ensure_tensor(x), i = ensure_tensor(index), s = ensure_tensor(src)
    cdef int a = lay.read_axis(axis, t.ndim)
    wanted = (*t.shape[:a], i.size, *t.shape[a + 1:])
    if i.ndim != 1 or s.shape != wanted:
        sizes = ", ".join(["n" if d == a else str(n) for d, n in enumerate(wanted)])
        raise ValueError(f"index_add: index has shape {i.shape} and src has {s.shape}; they must have shapes (n,) and "
                         f"({sizes})")
    places = reshape(i, tuple([-1 if d == a else 1 for d in range(t.ndim)]))
    return scatter_add(t, a, broadcast_to(places, wanted), s)


@composed
def masked_fill(x: Data, mask: Data, value: Data) -> Tensor:
    """`x` with `value`, a number, where `mask`, a bool tensor that broadcasts with x, is true. Raises TypeError for a
    mask of another dtype."""
    cdef Tensor t = ensure_tensor(x), m = ensure_tensor(mask)
    if m.dtype != BOOL: raise TypeError(f"masked_fill: the mask is {DTYPES[m.dtype]}; it must be bool")
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"masked_fill: value has shape {value.shape}; it must be a number")
    check_broadcast("masked_fill", t, m)
    return where(m, value, t)


@composed
def nonzero(x: Data) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0, an int64 vector for each dimension, as in numpy.nonzero:
    x[nonzero(x)] are these elements. Raises ValueError for a tensor without dimensions."""
    cdef Tensor t = ensure_tensor(x)
    if t.ndim == 0: raise ValueError("nonzero: x has no dimensions; it must have at least one")
    places = argwhere(t)
    return tuple([places[:, d] for d in range(t.ndim)])


@composed
def unique(x: Data, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, *,
           equal_nan: bool = True) -> Tensor | tuple[Tensor, ...]:
    """The different elements of `x` in order, as in numpy.unique; all NaN count as one, unless equal_nan is False. On
    request also, as int64: the index of the first of each in the flattened x, for each element of x the index of its
    value (in the shape of x), and how many there are of each. Has no gradient."""
    cdef Tensor t = ensure_tensor(x)
    flat = reshape(t.detach(), (-1,))
    order = argsort(flat) if return_index or return_inverse or return_counts else None
    s = sort(flat) if order is None else take(flat, order)
    differs = not_equal(s[1:], s[:-1])
    if is_floating(t.dtype) and equal_nan:          # NaN are last, all equal
        differs = logical_and(differs, logical_not(isnan(s[:-1])))
    new = concat([ones((min(t.size, 1),), DTYPES[BOOL]), differs])
    if order is None: return s[new]
    found = [s[new]]
    if return_index: found.append(order[new])
    if return_inverse:
        inverse = zeros((t.size,), DTYPES[INT64])
        inverse[order] = cumsum(new) - 1
        found.append(reshape(inverse, t.shape))
    if return_counts:
        starts = argwhere(new)[:, 0]
        found.append(diff(starts, append=t.size))
    return tuple(found)


@composed
def isin(x: Data, y: Data, invert: bool = False) -> Tensor:
    """Whether each element of `x` equals one of `y`, or with `invert`, none of them: a bool tensor of the shape of x,
    as in numpy.isin. NaN equals nothing."""
    cdef Tensor t = ensure_tensor(x), s = ensure_tensor(y)
    dtype = DTYPES[promote(t.dtype, s.dtype)]
    t, s = t.detach().astype(dtype), sort(reshape(s.detach(), (-1,)).astype(dtype))
    if s.size == 0: found = zeros(t.shape, DTYPES[BOOL])
    else: found = equal(t, take(s, minimum(searchsorted(s, t), s.size - 1)))
    return logical_not(found) if invert else found


@composed
def nan_to_num(x: Data, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`x` with `nan` for NaN and `posinf` and `neginf` for the infinities (None: the largest and smallest number of the
    dtype), as in numpy.nan_to_num. Backward saves a bit for each element: the gradient is g where x is finite, else
    0."""
    cdef Tensor t = ensure_tensor(x)
    if not is_floating(t.dtype): return t
    dtype = DTYPES[t.dtype]
    largest = float(np.finfo(dtype).max)
    for what, v in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if v is None and what != "nan": continue
        if isinstance(v, bool) or not isinstance(v, (int, float, np.integer, np.floating)):
            raise TypeError(f"nan_to_num: {what} must be a number, got {described(v)}")
    fixed = t.detach()
    numbers = np.array([nan, largest if posinf is None else posinf, -largest if neginf is None else neginf], dtype)
    for_nan, up, down = ensure_tensor(numbers)
    return where(isfinite(fixed), t, where(isnan(fixed), for_nan, where(fixed > 0, up, down)))


# ---- comparison ------------------------------------------------------------------------------------------------------

@composed
def isclose(x: Data, y: Data, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where |x - y| <= atol + rtol |y|, or both are the same infinity; with `equal_nan`, also where both are NaN. As in
    numpy.isclose."""
    cdef Tensor a = floating(x), b = floating(y)
    for what, v in (("rtol", rtol), ("atol", atol)):
        if not isinstance(v, (int, float, np.generic, np.ndarray, Tensor)):
            raise TypeError(f"isclose: {what} must be a number, got {described(v)}")
    check_broadcast("isclose", a, b)
    near = logical_and(isfinite(b), less_equal(abs(a.detach() - b.detach()), atol + rtol * abs(b.detach())))
    close = logical_or(near, equal(a, b))
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close


@composed
def allclose(x: Data, y: Data, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether isclose() holds for all elements. A Python bool."""
    return bool(all(isclose(x, y, rtol, atol, equal_nan)))


@composed
def array_equal(x: Data, y: Data, equal_nan: bool = False) -> bool:
    """Whether two tensors have the same shape and elements; with `equal_nan`, NaN equal NaN. A Python bool."""
    cdef Tensor a = ensure_tensor(x), b = ensure_tensor(y)
    if a.shape != b.shape: return False
    same = equal(a, b)
    if equal_nan: same = logical_or(same, logical_and(isnan(a), isnan(b)))
    return bool(all(same))
