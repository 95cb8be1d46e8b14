"""Functions that rearrange elements, made of operators: tiling, rolling, rotating, stacking, splitting. NumPy's names,
arguments and results. Where NumPy returns a view, so do these."""

import math

from cpython.number cimport PyNumber_Index
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t

from cygrad.core.graph.construct cimport fresh
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.interop.numpy cimport window
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER
from cygrad.kernels.array cimport INT64, is_floating

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.core.interop.numpy import asarray
from cygrad.core.store.layout import check_size
from cygrad.ops.shapes.index import take
from cygrad.ops.shapes.join import concat, split
from cygrad.ops.shapes.shape import broadcast_to, copy, expand_dims, flip, permute, reshape


cdef tuple integers(str name, str argument, v):
    """`v`, an int or a sequence of ints, as a tuple. Raises TypeError."""
    try: return tuple([PyNumber_Index(n) for n in v]) if isinstance(v, (list, tuple)) else (PyNumber_Index(v),)
    except TypeError: raise TypeError(f"{name}: {argument} must be an integer or several, got {described(v)}") from None


cdef list distinct_axes(str name, axes, int ndim):
    """Axes as numbers from 0 on. Raises ValueError if one occurs twice."""
    out = [lay.read_axis(a, ndim) for a in axes]
    for i, a in enumerate(out):
        if a in out[:i]: raise ValueError(f"{name}: duplicate axis {a} in {described(axes)}")
    return out


# ---- repetition ------------------------------------------------------------------------------------------------------

@composed
def tile(x: Data, reps: int | Sequence[int]) -> Tensor:
    """`x` repeated `reps[d]` times along each dimension, as in numpy.tile: the shorter of `reps` and `x.shape` is
    filled with ones in front. Raises ValueError for a negative number."""
    cdef Tensor t = ensure_tensor(x)
    cdef tuple counts = integers("tile", "reps", reps)
    if min(counts, default=0) < 0: raise ValueError(f"tile: reps is {described(reps)}; it must not be negative")
    n = max(len(counts), t.ndim)
    counts, shape = (1,) * (n - len(counts)) + counts, (1,) * (n - t.ndim) + t.shape
    check_elements("tile", [c * size for c, size in zip(counts, shape)])
    if all([c == 1 for c in counts]): return copy(reshape(t, shape))
    wide = broadcast_to(reshape(t, tuple([k for size in shape for k in (1, size)])),
                        tuple([k for c, size in zip(counts, shape) for k in (c, size)]))
    return reshape(wide, tuple([c * size for c, size in zip(counts, shape)]))


@composed
def repeat(x: Data, repeats: Data, axis: int | None = None) -> Tensor:
    """Each element of `x` (each slice along `axis`) `repeats` times in a row, as in numpy.repeat. `repeats` is an
    integer, or one for each; with `axis` None, `x` is flattened. Raises ValueError for a negative number, or if there
    are not as many as slices."""
    cdef Tensor t = ensure_tensor(x), given
    cdef int a
    if axis is None: t, axis = reshape(t, (-1,)), 0
    a = lay.read_axis(axis, t.ndim)
    n = t.shape[a]
    given = ensure_tensor(repeats)
    if given.layout.size and is_floating(given.dtype):
        raise TypeError(f"repeat: repeats must be integers, got {described(repeats)}")
    counts = given.tolist() if repeats is given else window(given, True).tolist()
    many = isinstance(counts, list) and len(counts) != 1
    for c in counts if isinstance(counts, list) else [counts]: lay.read_integer("repeat", "repeats", c, 0)
    if many:
        if len(counts) != n:
            raise ValueError(f"repeat: {len(counts)} numbers of repeats for {n} slices; there must be one for each")
        check_elements("repeat", [*t.shape[:a], sum(counts), *t.shape[a + 1:]])
        return take(t, repeated(counts, sum(counts)), a)
    c = counts[0] if isinstance(counts, list) else counts
    if c == 1: return copy(t)
    shape = t.shape
    check_elements("repeat", [*shape, c])
    wide = broadcast_to(expand_dims(t, a + 1), (*shape[:a + 1], c, *shape[a + 1:]))
    return reshape(wide, (*shape[:a], n * c, *shape[a + 1:]))


cdef int check_elements(str name, sizes) except -1:
    """Raise ValueError if a result has too many elements."""
    most = math.prod(sizes) or max(sizes)
    if most >= 1 << 40: check_size(most, f"{name}: the result would have the sizes {described(tuple(sizes))}")


cdef Tensor repeated(counts, Py_ssize_t n):
    """Each index of `counts` as often as its number, `n` in all."""
    cdef Tensor index = fresh(lay.dense(1, &n), INT64, OTHER)
    cdef int64_t* y = <int64_t*>index.buffer.data
    cdef Py_ssize_t i, k, at = 0
    for i, c in enumerate(counts):
        for k in range(at, at + <Py_ssize_t>c): y[k] = i
        at += c
    return index


# ---- order -----------------------------------------------------------------------------------------------------------

@composed
def roll(x: Data, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` with its elements moved on by `shift` along `axis` (both may be several); those that pass the end come in at
    the start. With `axis` None, the flattened x is rolled and has its shape again. As in numpy.roll."""
    cdef Tensor t = ensure_tensor(x)
    cdef tuple shifts = integers("roll", "shift", shift), axes
    if axis is None: return reshape(roll(reshape(t, (-1,)), sum(shifts), 0), t.shape)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if len(shifts) == 1: shifts *= len(axes)
    if len(axes) == 1: axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift has {len(shifts)} numbers and axis has {len(axes)}; there must be one for each")
    for n, a in zip(shifts, axes):
        d = lay.read_axis(a, t.ndim)
        n = n % t.shape[d] if t.shape[d] else 0
        if n: t = concat(split(t, [t.shape[d] - n], d)[::-1], d)
    return copy(t) if t is x else t


@composed
def moveaxis(x: Data, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """`x` with the axes `source` moved to `destination`, the others in their order: a view, as in numpy.moveaxis."""
    cdef Tensor t = ensure_tensor(x)
    given, places = (v if isinstance(v, (list, tuple)) else (v,) for v in (source, destination))
    start, stop = distinct_axes("moveaxis", given, t.ndim), distinct_axes("moveaxis", places, t.ndim)
    if len(start) != len(stop):
        raise ValueError(f"moveaxis: source has {len(start)} axes and destination has {len(stop)}; there must be as "
                         f"many")
    order = [d for d in range(t.ndim) if d not in start]
    for to, d in sorted(zip(stop, start)): order.insert(to, d)
    return permute(t, tuple(order))


@composed
def rot90(x: Data, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """`x` turned by `k` right angles in the plane of two axes, from the first towards the second: a view, as in
    numpy.rot90."""
    cdef Tensor t = ensure_tensor(x)
    if not isinstance(axes, (list, tuple)) or len(axes) != 2:
        raise ValueError(f"rot90: axes is {described(axes)}; it must be two axes")
    a, b = distinct_axes("rot90", axes, t.ndim)
    n = lay.read_integer("rot90", "k", k) % 4
    if n == 0: return permute(t, tuple(range(t.ndim)))
    if n == 2: return flip(t, (a, b))
    order = list(range(t.ndim))
    order[a], order[b] = b, a
    return permute(flip(t, b), tuple(order)) if n == 1 else flip(permute(t, tuple(order)), b)


@composed
def fliplr(x: Data) -> Tensor:
    """`x`, of at least 2 dimensions, reversed along axis 1: a view."""
    return flip(at_least("fliplr", x, 2), 1)


@composed
def flipud(x: Data) -> Tensor:
    """`x`, of at least 1 dimension, reversed along axis 0: a view."""
    return flip(at_least("flipud", x, 1), 0)


cdef Tensor at_least(str name, x, int ndim):
    cdef Tensor t = ensure_tensor(x)
    if t.ndim < ndim:
        raise ValueError(f"{name} needs a tensor with at least {ndim} dimension{'s' * (ndim > 1)}, got shape {t.shape}")
    return t


# ---- shapes that match -----------------------------------------------------------------------------------------------

cdef object each(function, tuple xs):
    """function(x) for each of `xs`: one result for one, else a tuple."""
    found = tuple([function(ensure_tensor(x)) for x in xs])
    return found[0] if len(found) == 1 else found


@composed
def atleast_1d(*xs: Data) -> Tensor | tuple[Tensor, ...]:
    """Each of `xs` with at least one dimension: views. A tuple of results for several."""
    return each(lambda t: reshape(t, (1,)) if t.ndim == 0 else t, xs)


@composed
def atleast_2d(*xs: Data) -> Tensor | tuple[Tensor, ...]:
    """Each of `xs` with at least two dimensions; new ones of size 1 are in front. A tuple of results for several."""
    return each(lambda t: reshape(t, (1,) * (2 - t.ndim) + t.shape) if t.ndim < 2 else t, xs)


@composed
def atleast_3d(*xs: Data) -> Tensor | tuple[Tensor, ...]:
    """Each of `xs` with at least three dimensions, as in numpy.atleast_3d: (n,) becomes (1, n, 1), (m, n) becomes
    (m, n, 1). A tuple of results for several."""
    return each(three, xs)


def three(t):
    if t.ndim == 2: return expand_dims(t, 2)
    return reshape(t, (1, t.size, 1)) if t.ndim < 2 else t


@composed
def broadcast_arrays(*xs: Data) -> tuple[Tensor, ...]:
    """The tensors broadcast to their common shape: views. Raises ValueError if the shapes do not match."""
    tensors = [ensure_tensor(x) for x in xs]
    shape = ()
    for i, t in enumerate(tensors):
        n = max(len(shape), t.ndim)
        a, b = (1,) * (n - len(shape)) + shape, (1,) * (n - t.ndim) + t.shape
        for p, q in zip(a, b):
            if p != q and p != 1 and q != 1:
                raise ValueError(f"broadcast_arrays: tensor {i} has shape {t.shape}, those before it {shape}; from the "
                                 f"last dimension on, sizes must be equal or 1")
        shape = tuple([q if p == 1 else p for p, q in zip(a, b)])
    return tuple([t if t.shape == shape else broadcast_to(t, shape) for t in tensors])


@composed
def meshgrid(*xs: Data, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Grids of coordinates from vectors, as in numpy.meshgrid with copy=False: result i has the elements of `xs[i]`
    along its own axis and repeats them along the others. With "xy", the first two axes are exchanged. Views."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {described(indexing)}")
    tensors = [ensure_tensor(x) for x in xs]
    for i, t in enumerate(tensors):
        if t.ndim > 1: raise ValueError(f"meshgrid: tensor {i} has shape {t.shape}; each must be a vector")
    n = len(tensors)
    swapped = indexing == "xy" and n > 1
    where = [1 - i if swapped and i < 2 else i for i in range(n)]
    columns = [reshape(t, (1,) * d + (t.size,) + (1,) * (n - 1 - d)) for d, t in zip(where, tensors)]
    return broadcast_arrays(*columns)


# ---- stacking and splitting ------------------------------------------------------------------------------------------

cdef list listed(str name, xs):
    if isinstance(xs, Tensor) and (<Tensor>xs).ndim: xs = [xs[i] for i in range(len(xs))]
    elif not hasattr(xs, "__iter__") or isinstance(xs, (str, Tensor)) or getattr(xs, "ndim", 1) == 0:
        raise TypeError(f"{name}: xs must be a sequence of tensors, got {described(xs)}")
    tensors = [ensure_tensor(x) for x in xs]
    if not tensors: raise ValueError(f"{name} needs at least one tensor, got none")
    return tensors


@composed
def vstack(xs: Iterable[Data]) -> Tensor:
    """The tensors joined along axis 0; vectors are rows, as in numpy.vstack."""
    return concat([atleast_2d(t) for t in listed("vstack", xs)], 0)


@composed
def hstack(xs: Iterable[Data]) -> Tensor:
    """The tensors joined along axis 1; vectors along axis 0, as in numpy.hstack."""
    tensors = [atleast_1d(t) for t in listed("hstack", xs)]
    return concat(tensors, 0 if tensors[0].ndim == 1 else 1)


@composed
def dstack(xs: Iterable[Data]) -> Tensor:
    """The tensors joined along axis 2, with the shapes of atleast_3d, as in numpy.dstack."""
    return concat([three(t) for t in listed("dstack", xs)], 2)


@composed
def column_stack(xs: Iterable[Data]) -> Tensor:
    """The tensors joined along axis 1; vectors are columns, as in numpy.column_stack."""
    return concat([reshape(t, (-1, 1)) if t.ndim < 2 else t for t in listed("column_stack", xs)], 1)


@composed
def unstack(x: Data, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of `x` along `axis`, a tuple of views: what stack() would join."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.ndim)
    return tuple([t[(slice(None),) * a + (i,)] for i in range(t.shape[a])])


@composed
def append(x: Data, values: Data, axis: int | None = None) -> Tensor:
    """`x` with `values` after it along `axis`, as in numpy.append: a new tensor. With `axis` None both are flattened
    first, and values may be a number."""
    cdef Tensor t = ensure_tensor(x), v
    v = asarray(values, DTYPES[t.dtype]) if type(values) in (bool, int, float) else ensure_tensor(values)
    return concat([t, v], axis) if axis is not None else concat([reshape(t, (-1,)), reshape(v, (-1,))])


@composed
def chunk(x: Data, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """`x` in at most `chunks` parts along `axis`, of equal length except for the last, as in torch.chunk: a tuple of
    views. array_split() makes exactly as many parts."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.ndim)
    n, count = t.shape[a], lay.read_integer("chunk", "chunks", chunks, 1, INT_MAX)
    size = max(-(-n // count), 1)
    return split(t, list(range(size, n, size)), a)


@composed
def array_split(x: Data, sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """split() that allows a number of parts which does not divide the size: the first ones are longer by one. A tuple
    of views."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.ndim), count
    if isinstance(sections, (list, tuple)): return split(t, sections, a)
    count = lay.read_integer("array_split", "sections", sections, 1, INT_MAX)
    size, longer = divmod(t.shape[a], count)
    return split(t, [i * size + min(i, longer) for i in range(1, count)], a)


@composed
def hsplit(x: Data, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """split() along axis 1; of a vector along axis 0."""
    cdef Tensor t = at_least("hsplit", x, 1)
    return split(t, sections, 0 if t.ndim == 1 else 1)


@composed
def vsplit(x: Data, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """split() along axis 0, of a tensor with at least 2 dimensions."""
    return split(at_least("vsplit", x, 2), sections, 0)


@composed
def dsplit(x: Data, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """split() along axis 2, of a tensor with at least 3 dimensions."""
    return split(at_least("dsplit", x, 3), sections, 2)
