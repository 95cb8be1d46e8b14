"""Statistics that are made of operators: differences, quantiles, means that skip NaN or have weights. NumPy's names,
arguments and results."""

import math

import numpy as np

from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store cimport layout as lay
from cygrad.kernels.array cimport BOOL, is_floating

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.ops.elementwise.compare import isnan, logical_not, not_equal, where
from cygrad.ops.shapes.index import take
from cygrad.ops.shapes.join import concat
from cygrad.ops.reductions.minmax import max, min
from cygrad.ops.reductions.reduce import mean, sum
from cygrad.ops.shapes.shape import broadcast_to, permute, reshape
from cygrad.ops.shapes.sort import sort

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


cdef Tensor floating(x):
    """`x` in a floating-point dtype."""
    cdef Tensor t = ensure_tensor(x)
    return t if is_floating(t.dtype) else t.astype(DTYPES[default_dtype()])


cdef list reduced_axes(str name, axis, int ndim):
    """The axes of a reduction as numbers from 0 on. Raises ValueError if one occurs twice."""
    if axis is None: return list(range(ndim))
    out = [lay.read_axis(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(out)) < len(out): raise ValueError(f"{name}: duplicate axis in {described(axis)}")
    return out


# ---- differences -----------------------------------------------------------------------------------------------------

@composed
def diff(x: Data, n: int = 1, axis: int = -1, prepend: Data | None = None, append: Data | None = None) -> Tensor:
    """The differences of adjacent elements along `axis`, taken `n` times, as in numpy.diff. `prepend` and `append` are
    joined to x first: a number, or a tensor that fits. Of bools: whether they differ. Raises ValueError for n < 0."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a
    n = lay.read_integer("diff", "n", n, 0)
    if n == 0: return t
    if t.ndim == 0: raise ValueError("diff: x has no dimensions; it must have at least one")
    a = lay.read_axis(axis, t.ndim)
    parts = [margin("prepend", prepend, t, a), t, margin("append", append, t, a)]
    if prepend is not None or append is not None: t = concat([p for p in parts if p is not None], a)
    before = (slice(None),) * a
    for _ in range(n if n < t.shape[a] else t.shape[a]):       # afterwards, nothing is left
        later, earlier = t[(*before, slice(1, None))], t[(*before, slice(None, -1))]
        t = later ^ earlier if t.dtype == BOOL else later - earlier
    return t


cdef object margin(str what, v, Tensor x, int axis):
    """What diff() joins to x: a number is repeated to one slice. Raises ValueError for a tensor that does not fit."""
    cdef Tensor t
    if v is None: return None
    t = ensure_tensor(v)
    if t.ndim:
        if t.ndim != x.ndim or [d for d in range(t.ndim) if d != axis and t.shape[d] != x.shape[d]]:
            raise ValueError(f"diff: {what} has shape {t.shape} and x has {x.shape}; only the sizes of dimension "
                             f"{axis} may differ")
        return t
    return broadcast_to(t.astype(DTYPES[x.dtype]) if isinstance(v, (int, float)) else t,
                        (*x.shape[:axis], 1, *x.shape[axis + 1:]))


cdef object weighted(Tensor t, tuple before, list parts):
    """The sum of weights times slices of `t` along an axis: `parts` are (weight, start, stop)."""
    y = None
    for w, start, stop in parts:
        part = w * t[(*before, slice(start, stop))]
        y = part if y is None else y + part
    return y


cdef object derivative(Tensor t, int a, h, int edge_order):
    """The derivative of `t` along axis `a`; `h` is the distance of all points, or a column of the distances."""
    before, n = (slice(None),) * a, t.shape[a]
    if isinstance(h, Tensor) and h.ndim:
        h = reshape(h, tuple([n - 1] + [1] * (t.ndim - 1 - a)))
        p, q = h[:-1], h[1:]                        # the distances to the point before and to the one after
        first, second, almost, last = h[:1], h[1:2], h[-2:-1], h[-1:]
        inner = [(-q / (p * (p + q)), 0, n - 2), ((q - p) / (p * q), 1, n - 1), (p / (q * (p + q)), 2, n)]
    else:
        first = second = almost = last = h
        inner = [(-0.5 / h, 0, n - 2), (0.5 / h, 2, n)]
    if edge_order == 1:
        left, right = [(-1 / first, 0, 1), (1 / first, 1, 2)], [(-1 / last, n - 2, n - 1), (1 / last, n - 1, n)]
    else:
        p, q = first, second
        left = [(-(2 * p + q) / (p * (p + q)), 0, 1), ((p + q) / (p * q), 1, 2), (-p / (q * (p + q)), 2, 3)]
        p, q = almost, last
        right = [(q / (p * (p + q)), n - 3, n - 2), (-(p + q) / (p * q), n - 2, n - 1),
                 ((p + 2 * q) / (q * (p + q)), n - 1, n)]
    parts = [weighted(t, before, left), weighted(t, before, right)]
    if n > 2: parts.insert(1, weighted(t, before, inner))
    return concat(parts, a)


@composed
def gradient(x: Data, *spacing: Data, axis: int | Sequence[int] | None = None,
             edge_order: Literal[1, 2] = 1) -> Tensor | tuple[Tensor, ...]:
    """The derivative of samples `x` along each axis, as in numpy.gradient: second-order central differences inside, and
    one-sided ones of `edge_order` at the edges. A tensor of the shape of x for one axis, a tuple for several.

    `spacing` is one number for all axes, or for each axis the distance of its samples or a vector of their coordinates;
    1 without it. Coordinates have gradients too. Integers are cast to the default dtype. Raises ValueError for too few
    samples, or spacings that do not fit. Source of the formulas: B. Fornberg, Generation of finite difference formulas
    on arbitrarily spaced grids (1988)."""
    cdef Tensor t = floating(x), s
    axes = reduced_axes("gradient", axis, t.ndim)
    if edge_order not in (1, 2): raise ValueError(f"gradient: edge_order must be 1 or 2, got {described(edge_order)}")
    if len(spacing) not in (0, 1, len(axes)):
        raise ValueError(f"gradient: got {len(spacing)} spacings for {len(axes)} axes; give none, one, or one for each")
    steps = []
    for a, h in zip(axes, (spacing or (1.0,)) * (len(axes) if len(spacing) < 2 else 1)):
        if t.shape[a] < edge_order + 1:
            raise ValueError(f"gradient: x has {t.shape[a]} samples along axis {a}; edge_order {edge_order} needs at "
                             f"least {edge_order + 1}")
        if not isinstance(h, (int, float)):
            s = floating(h)
            if s.ndim and s.shape != (t.shape[a],):
                raise ValueError(f"gradient: a spacing has shape {s.shape}; wanted a number or ({t.shape[a]},), a "
                                 f"coordinate for each sample along axis {a}")
            h = diff(s) if s.ndim else s
        steps.append(h)
    found = [derivative(t, a, h, edge_order) for a, h in zip(axes, steps)]
    return found[0] if len(found) == 1 else tuple(found)


@composed
def ptp(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The largest element minus the smallest, along `axis` (an int, several, or None for all)."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


# ---- quantiles -------------------------------------------------------------------------------------------------------

cdef tuple sorted_along(str name, x, axis, keepdims):
    """(`x` sorted along one last dimension that joins the axes, the shape of a result)."""
    cdef Tensor t = floating(x)
    axes = reduced_axes(name, axis, t.ndim)
    rest = [d for d in range(t.ndim) if d not in axes]
    n = math.prod([t.shape[d] for d in axes])
    if n == 0: raise ValueError(f"{name}: cannot reduce a tensor of shape {t.shape} over axes of size 0")
    shape = tuple([1 if d in axes else t.shape[d] for d in range(t.ndim) if keepdims or d not in axes])
    together = reshape(permute(t, tuple(rest + axes)), tuple([t.shape[d] for d in rest] + [n]))
    return sort(together, -1), shape


@composed
def median(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The median along `axis` (an int, several, or None for all): the middle element of the order, or the mean of
    the two. NaN where an element is NaN. As in numpy.median; the gradient goes to these elements."""
    s, shape = sorted_along("median", x, axis, keepdims)
    n = s.shape[-1]
    middle = s[..., n // 2] if n % 2 else mean(s[..., n // 2 - 1:n // 2 + 1], -1)
    return reshape(with_nan(middle, s), shape)


cdef object with_nan(y, s):
    """`y`, with NaN where the sorted `s` has NaN, which is last."""
    return where(isnan(s[..., -1]), s[..., -1], y)


cdef object in_float64(str name, q):
    """`q` as an array: a list of Python floats would be a float32 tensor. Raises TypeError for what is not numbers."""
    try: return np.asarray(q.detach() if isinstance(q, Tensor) else q, "float64")
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: q must be numbers, got {described(q)}") from None


@composed
def quantile(x: Data, q: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False,
             method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear") -> Tensor:
    """The quantiles `q` (numbers from 0 to 1, of any shape, which comes first in the result) along `axis`, as in
    numpy.quantile. Between two elements of the order, `method` interpolates or chooses. NaN where an element is NaN.
    The gradient goes to x; q has none. Raises ValueError for a q outside of 0 to 1."""
    if method not in METHODS:
        raise ValueError(f"quantile: method must be one of {', '.join(METHODS)}, got {described(method)}")
    numbers = in_float64("quantile", q)
    flat = numbers.ravel().tolist()
    if not all(0 <= p <= 1 for p in flat):
        raise ValueError(f"quantile: q is {described(q)}; wanted numbers from 0 to 1")
    s, shape = sorted_along("quantile", x, axis, keepdims)
    last = s.shape[-1] - 1
    low = [math.floor(p * last) for p in flat]
    high = [math.ceil(p * last) for p in flat]
    if method == "linear": weights = [p * last - i for p, i in zip(flat, low)]
    elif method == "midpoint": weights = [0.5 * (j > i) for i, j in zip(low, high)]
    else:
        nearest = [round(p * last) for p in flat]   # to even, as NumPy
        low = {"lower": low, "higher": high, "nearest": nearest}[method]
        weights, high = [0.0] * len(flat), low
    a, b = take(s, low, -1), take(s, high, -1)
    y = a
    if high != low:
        w = ensure_tensor(np.array(weights, s.dtype))
        y = where(w >= 0.5, b - (b - a) * (1 - w), a + (b - a) * w)
        y = where(a == b, a, y)                     # (inf - inf is NaN)
    y = where(isnan(s[..., -1:]), s[..., -1:], y)
    order = (y.ndim - 1, *range(y.ndim - 1))
    return reshape(permute(y, order), (*numbers.shape, *shape))


@composed
def percentile(x: Data, q: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False,
               method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear") -> Tensor:
    """quantile() with `q` from 0 to 100."""
    numbers = in_float64("percentile", q)
    if not all(0 <= p <= 100 for p in numbers.ravel().tolist()):
        raise ValueError(f"percentile: q is {described(q)}; wanted numbers from 0 to 100")
    return quantile(x, numbers / 100, axis, keepdims, method)


# ---- sums and means --------------------------------------------------------------------------------------------------

@composed
def count_nonzero(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0, along `axis` (an int, several, or None for all), as int64."""
    return sum(not_equal(x, 0), axis, keepdims)


@composed
def nansum(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements that are not NaN, along `axis`; 0 where there are none. The gradient of a NaN is 0."""
    cdef Tensor t = ensure_tensor(x)
    return sum(where(isnan(t), 0, t) if is_floating(t.dtype) else t, axis, keepdims)


@composed
def nanmean(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN, along `axis`; NaN where there are none. The gradient of a NaN is 0."""
    cdef Tensor t = floating(x)
    bad = isnan(t)
    return sum(where(bad, 0, t), axis, keepdims) / sum(logical_not(bad), axis, keepdims).astype(DTYPES[t.dtype])


@composed
def average(x: Data, axis: int | Sequence[int] | None = None, weights: Data | None = None,
            keepdims: bool = False) -> Tensor:
    """The mean along `axis` (an int, several, or None for all) with `weights`, of the shape of x, or of one dimension
    along one axis: sum(x w) / sum(w), as in numpy.average, but NaN or infinite where weights sum to 0.
    Both have gradients. Raises ValueError if the shapes differ."""
    cdef Tensor t = floating(x), w
    if weights is None: return mean(t, axis, keepdims)
    w = ensure_tensor(weights)
    if not is_floating(w.dtype): w = w.astype(DTYPES[t.dtype])
    if w.shape != t.shape:
        axes = reduced_axes("average", axis, t.ndim)
        if len(axes) != 1 or w.shape != (t.shape[axes[0]],):
            raise ValueError(f"average: weights has shape {w.shape} and x has {t.shape}; it must have the shape of x, "
                             f"or one dimension of the size of one axis")
        w = broadcast_to(reshape(w, tuple([-1 if d == axes[0] else 1 for d in range(t.ndim)])), t.shape)
    return sum(t * w, axis, keepdims) / sum(w, axis, keepdims)
