"""x[index] and x[index] = v: slices, which are views, and index arrays and masks in full NumPy semantics.

An index is read once. Its slices, numbers and new dimensions are a view; where it has arrays, those are taken from that
view (take), with their dimensions first in order if they are not neighbours; one mask over the first dimensions is a
select. Writing goes the same ways."""

import operator

import numpy as np

from cython cimport final
from libc.stdint cimport uint64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport check_capture
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, array_of, ensure_tensor, ready
from cygrad.core.execute.inplace cimport apply_inplace, check_writable, run_into
from cygrad.core.thread_state cimport flags
from cygrad.core.execute.operands cimport Operand, read_tensor
from cygrad.core.execute.run cimport apply1, apply2, apply_list
from cygrad.core.graph.views cimport is_place
from cygrad.kernels cimport driver
from cygrad.kernels cimport index as kernel
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, Array, Layout, is_floating, is_real, itemsize
from cygrad.ops.base cimport Part
from cygrad.ops.index cimport check_indices, index_tensor, own, zero_like
from cygrad.ops.shape cimport permuted

from cygrad.core.interop.creation import arange, zeros
from cygrad.core.interop.numpy import tensor
from cygrad.core.dtypes import DTYPES
from cygrad.ops import index as by_index
from cygrad.ops import masks as by_mask
from cygrad.ops.compare import where as choose
from cygrad.ops.join import stack
from cygrad.ops.masks import select
from cygrad.ops.shape import astype, broadcast_to, expand_dims, reshape, transpose

cdef Operator TAKE = by_index.OPERATORS["take"], ARGWHERE = by_index.OPERATORS["argwhere"]
cdef Operator MASK_PUT = by_mask.OPERATORS["mask_put"]


# ---- slices ----------------------------------------------------------------------------------------------------------
# An index is kept as a tuple with one entry for each dimension of x: (start, step, count), or start alone where the
# dimension goes; None for a new one.

cdef Layout* sliced(const Layout* x, tuple index) except NULL:
    cdef Layout* l
    cdef Py_ssize_t start, step, count
    cdef int n = 0, d = 0
    for entry in index:
        if type(entry) is not int: n += 1
    if n > MAX_NDIM: raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, this index would give {n}")
    l = lay.blank(n)
    l.offset = x.offset
    n = 0
    for entry in index:
        if entry is None:
            l.shape[n], l.strides[n] = 1, 0
            n += 1
            continue
        if type(entry) is int:
            start = entry
        else:
            start, step, count = entry
            l.shape[n], l.strides[n] = count, x.strides[d] * step
            n += 1
        l.offset += start * x.strides[d]
        d += 1
    return lay.finish(l)


@final
cdef class GetItem(Part):
    """y = x[index], a view        dx = 0, with dx[index] = g"""

    def __cinit__(self):
        self.name = "getitem"

    cdef Layout* see(self, const Layout* x, index) except NULL:
        return sliced(x, index)

    cdef object formula(self, c, int i, g):
        return put_slice(g, c.shape(0), c.attributes)


cdef int put_into(const Array* x, tuple index, const Array* v) except -1:
    """x[index] = v"""
    cdef Array a[2]
    cdef Layout* l = sliced(x.layout, index)
    a[0], a[1] = v[0], x[0]
    a[1].layout = l
    a[1].data += (l.offset - x.layout.offset) * itemsize(x.dtype)
    try:
        if is_real(x.dtype): driver.each(COPY_LOOP, a)
        else: kernel.copy(&a[0], &a[1])
    finally:
        lay.decref(l)
    return 0


@final
cdef class PutSlice(Operator):
    """y = 0, with y[index] = x        dx = g[index]"""

    def __cinit__(self):
        self.name, self.differentiable = "put_slice", True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.from_shape((<tuple>c.attributes)[0])
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        memset(c.y[0].data, 0, c.y[0].layout.size * itemsize(c.y[0].dtype))
        return put_into(&c.y[0], (<tuple>c.attributes)[1], &c.x[0])

    cdef object formula(self, c, int i, g):
        return apply1(GETITEM, g, c.attributes[1])


@final
cdef class Assign(Operator):
    """y = x, with y[index] = v (in place)        dx = g, with dx[index] = 0        dv = g[index]"""

    def __cinit__(self):
        self.name, self.differentiable = "assign", True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        if c.x[0].data != c.y[0].data: kernel.copy(&c.x[0], &c.y[0])
        return put_into(&c.y[0], <tuple>c.attributes, &c.x[1])

    cdef object formula(self, c, int i, g):
        part = apply1(GETITEM, g, c.attributes)
        return part if i == 1 else apply2(ASSIGN, g, zero_like(g, part.shape), c.attributes)


# ---- index arrays ----------------------------------------------------------------------------------------------------

cdef Layout* aimed(const Layout* x, tuple attributes) except NULL:
    """What an index with arrays chooses from: x sliced, its dimensions in order. The attributes are (slices, order or
    None, the first dimension that an array chooses from)."""
    cdef Layout* l = sliced(x, attributes[0])
    if attributes[1] is None: return l
    try:
        return permuted(l, attributes[1])
    finally:
        lay.decref(l)


cdef object seen(Tensor x, tuple attributes):
    """The same as a view of a tensor, recorded."""
    cdef Tensor y = apply1(GETITEM, x, attributes[0])
    return y if attributes[1] is None else transpose(y, attributes[1])


@final
cdef class Put(Operator):
    """y = x, with y[i] = v        dx = g, with dx[i] = 0        dv = g[i]

    The inputs are x, v and the index arrays stacked along their first dimension. Where several write to one place the
    last one stays, and has the gradient. Keeps the indices."""

    def __cinit__(self):
        self.name, self.differentiable = "put", True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef kernel.Places p
        cdef Array x = c.y[0]
        cdef Array index[MAX_NDIM]
        cdef Layout one = c.x[2].layout[0]          # of one index array among the stacked
        cdef int k, n = <int>one.shape[0], axis = (<tuple>c.attributes)[2]
        cdef Layout* l = aimed(c.y[0].layout, <tuple>c.attributes)
        one.ndim, one.shape, one.strides = one.ndim - 1, one.shape + 1, one.strides + 1
        one.size, one.dense = one.size // n, False
        for k in range(n):
            index[k] = c.x[2]
            index[k].layout = &one
            index[k].data += k * c.x[2].layout.strides[0] * itemsize(c.x[2].dtype)
        x.layout = l
        x.data += (l.offset - c.y[0].layout.offset) * itemsize(x.dtype)
        try:
            check_indices("", &x, axis, n, index)
            if c.x[0].data != c.y[0].data: kernel.copy(&c.x[0], &c.y[0])
            kernel.aim(&p, &x, &c.x[1], axis, n, index)
            with nogil: kernel.put(&p)
        finally:
            lay.decref(l)
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 4

    cdef object formula(self, c, int i, g):
        if i > 1: return None
        index = c.input(2)
        arrays = [index[k] for k in range(len(index))]
        under = seen(g, c.attributes)
        chosen = apply_list(TAKE, [under, *arrays], (c.attributes[2], len(arrays)))
        if i == 1: return last_of(chosen, under.shape, index.detach(), c.attributes[2])
        return apply_list(PUT, [g, zero_like(g, chosen.shape), index], c.attributes)


cdef object last_of(Tensor g, tuple shape, Tensor index, int axis):
    """`g` where an index array names its place for the last time, 0 where a later one does."""
    cdef int n = <int>index.layout.shape[0], extra = index.layout.ndim - 1, k
    cdef Py_ssize_t size
    cdef Tensor last
    cdef Array a
    if index.layout.size == 0: return g
    flat, size = 0, 1                               # each place as one number
    for k in range(n - 1, -1, -1):
        i = index[k]
        flat = flat + choose(i < 0, i + shape[axis + k], i) * size
        size *= shape[axis + k]
    flat = reshape(flat, (1, -1))
    order = arange(flat.shape[1])
    owner = apply_list(PUT, [zeros(size, dtype=DTYPES[INT64]), order, flat], (((0, 1, size),), None, 0))
    last = owner[flat[0]] == order
    check_capture()                                 # (what follows depends on values)
    a = array_of(last)
    if kernel.count_true(&a) == last.layout.size: return g
    return g * astype(reshape(last, index.shape[1:] + (1,) * (g.layout.ndim - axis - extra)), DTYPES[g.dtype])


# ---- reading an index ------------------------------------------------------------------------------------------------

cdef bint is_array(entry):
    """Whether an entry of an index is an array: what has elements, and True and False."""
    if type(entry) is int or type(entry) is slice or entry is None or entry is Ellipsis: return False
    if isinstance(entry, Tensor): return (<Tensor>entry).layout.ndim > 0 or (<Tensor>entry).dtype == BOOL
    if isinstance(entry, np.ndarray): return entry.ndim > 0 or entry.dtype == np.bool_
    return isinstance(entry, (list, tuple, bool, np.bool_))


cdef bint has_arrays(index):
    if not isinstance(index, tuple): return is_array(index)
    for entry in index:
        if is_array(entry): return True
    return False


cdef tuple read_index(index, const Layout* x):
    """Basic indexing by NumPy's rules: ints, slices, Ellipsis, None. Raises IndexError or TypeError."""
    cdef list out = []
    cdef int d = 0, given = 0
    if not isinstance(index, tuple): index = (index,)
    for entry in index:
        if entry is Ellipsis or entry is None: continue
        given += 1
    if given > x.ndim: raise IndexError(f"{given} indices for a tensor of {x.ndim} dimensions")
    if len([e for e in index if e is Ellipsis]) > 1: raise IndexError("an index has at most one Ellipsis (...)")
    if not [e for e in index if e is Ellipsis]: index = index + (Ellipsis,)
    for entry in index:
        if entry is None:
            out.append(None)
        elif entry is Ellipsis:
            for _ in range(x.ndim - given):
                out.append((0, 1, x.shape[d]))
                d += 1
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(x.shape[d])
            count = len(range(start, stop, step))
            out.append((start if count else 0, step, count))
            d += 1
        else:
            try:
                i = operator.index(entry)
            except TypeError:
                raise TypeError(f"an index is made of ints, slices, ..., None and arrays of integers or bools, got "
                                f"{getattr(entry, 'dtype', type(entry).__name__)}") from None
            if not -x.shape[d] <= i < x.shape[d]:
                raise IndexError(f"index {i} is out of range for dimension {d} of size {x.shape[d]}")
            out.append(i + x.shape[d] if i < 0 else i)
            d += 1
    return tuple(out)


cdef tuple read_arrays(index, Tensor x):
    """An index with arrays by NumPy's rules: ((slices, order, axis), index tensors). Masks have become the numbers of
    what they choose. Raises IndexError or TypeError."""
    cdef list entries = [], plain = [], arrays = [], at = []
    cdef int d = 0, given = 0, n, place = 0
    cdef bint apart = False
    for entry in index if isinstance(index, tuple) else (index,):
        if not is_array(entry):
            given += entry is not None and entry is not Ellipsis
            entries.append(entry)
            continue
        t = ensure_tensor(np.zeros(0, np.int64) if isinstance(entry, list) and len(entry) == 0 else entry)
        if (<Tensor>t).dtype == BOOL: given += t.ndim
        else:
            t = index_tensor(t, x)
            given += 1
        entries.append(t)
    if given > x.layout.ndim: raise IndexError(f"{given} indices for a tensor of {x.layout.ndim} dimensions")
    if not [e for e in entries if e is Ellipsis]: entries.append(Ellipsis)
    last = None                                     # the place of the latest array or number
    for k, entry in enumerate(entries):             # slices in place of the arrays; which dimensions those are
        n = x.layout.ndim - given if entry is Ellipsis else 1
        if isinstance(entry, Tensor):
            n, fancy = entry.ndim if entry.dtype == np.bool_ else 1, True
            if n == 0:                              # True or False: a new dimension of one place or none
                plain.append(None)
                at.append(place)
                arrays.append(ensure_tensor(np.zeros(int(entry.item()), np.int64)))
            elif entry.dtype == np.bool_:
                if entry.shape != x.shape[d:d + n]:
                    raise IndexError(f"a mask of shape {entry.shape} for dimensions of sizes {x.shape[d:d + n]}; the "
                                     f"two must be equal")
                places = apply1(ARGWHERE, own(entry, x), None)
                arrays += [places[:, j] for j in range(n)]
            else:
                arrays.append(entry)
            plain += [slice(None)] * n
            at += [place + j for j in range(n)]
            place += max(n, 1)
        else:
            fancy = type(entry) is not slice and entry is not None and entry is not Ellipsis
            plain += [entry] if entry is not Ellipsis else [Ellipsis]
            if not fancy: place += n
        if fancy:                                   # numbers count as arrays do
            apart |= last is not None and last != k - 1
            last = k
        if entry is not None: d += n
    if len(arrays) >= MAX_NDIM - 1:
        raise IndexError(f"an index has at most {MAX_NDIM - 2} arrays, this one has {len(arrays)}")
    slices = read_index(tuple(plain), x.layout)
    order, axis = None, at[0]
    if apart:
        ndim = len([e for e in slices if type(e) is not int])
        if at != list(range(len(at))): order = (*at, *[k for k in range(ndim) if k not in at])
        axis = 0
    return (slices, order, axis), arrays


cdef Tensor lone_mask(index, Tensor x):
    """The mask, if the index is nothing but one over the first dimensions of x; else None."""
    if isinstance(index, tuple):
        if len(index) == 2 and index[1] is Ellipsis: index = index[0]
        elif len(index) == 1: index = index[0]
        else: return None
    if isinstance(index, list): index = np.asarray(index)
    if not isinstance(index, (Tensor, np.ndarray)) or index.dtype != np.bool_ or index.ndim == 0: return None
    t = ensure_tensor(index)
    return t if t.shape == x.shape[:t.ndim] else None       # where it does not fit, the other way says it better


cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef Operator GETITEM = GetItem(), PUT_SLICE = PutSlice(), ASSIGN = Assign(), PUT = Put()
OPERATORS = {o.name: o for o in (GETITEM, PUT_SLICE, ASSIGN, PUT)}


def getitem(x, index):
    """x[index] by NumPy's rules. Ints, slices, ... and None give a view; with index arrays, lists and masks the
    elements are copied. Raises IndexError for what is out of range, TypeError for what is no index."""
    cdef Tensor t = ensure_tensor(x)
    if not has_arrays(index): return apply1(GETITEM, t, read_index(index, t.layout))
    mask = lone_mask(index, t)
    if mask is not None: return select(t, mask)
    attributes, arrays = read_arrays(index, t)
    return apply_list(TAKE, [seen(t, attributes), *arrays], (attributes[2], len(arrays)))


def put_slice(x, shape, index):
    """Zeros of `shape` with `x` at an index as getitem keeps it."""
    return apply1(PUT_SLICE, x, (tuple(shape), index))


def put(x, v, indices, attributes):
    """`x` with `v` at stacked index arrays, as a write to x[index] keeps them."""
    return apply_list(PUT, [x, v, index_tensor(indices, None)], attributes)


cdef int write(Operator op, Tensor x, Tensor v, Tensor where, attributes) except -1:
    """x = op(x, v, where), over x."""
    cdef Operand o[3]
    ready(x)
    ready(v)
    ready(where)
    read_tensor(&o[0], x)
    read_tensor(&o[1], v)
    read_tensor(&o[2], where)
    return run_into(op, o, 3, attributes, x)


cdef Tensor fit(Tensor v, tuple shape):
    """`v` broadcast to `shape`; of more dimensions than that the first ones may have size 1."""
    cdef int extra = v.layout.ndim - len(shape)
    if v.shape == shape: return v
    if extra > 0 and v.shape[:extra] == (1,) * extra: v = reshape(v, v.shape[extra:])
    return broadcast_to(v, shape)


cdef Tensor apart(Tensor x, Tensor v):
    """Another view of `v` if it shares the memory of `x`, so that it is read before that is written."""
    return apply1(GETITEM, v, read_index(Ellipsis, v.layout)) if v.buffer == x.buffer else v


def setitem(Tensor x, index, value):
    """x[index] = value by NumPy's rules for the index; value is broadcast and cast to the dtype of x. Where index
    arrays name a place several times, the last value stays."""
    cdef Tensor v, mask
    cdef Array a
    cdef Layout* l
    cdef bint basic = not has_arrays(index)
    if basic: slices = read_index(index, x.layout)
    if is_floating(x.dtype) and isinstance(value, (int, float, list, tuple)):
        v = tensor(value, DTYPES[x.dtype])          # (not by way of the default dtype: 0.1 keeps its digits)
    else:
        v = ensure_tensor(value)
    check_writable(x, flags())
    if v.dtype != x.dtype:
        if is_floating(v.dtype) and not is_floating(x.dtype):
            raise TypeError(f"setitem: a {DTYPES[v.dtype]} value cannot be written into a {DTYPES[x.dtype]} tensor; "
                            f"cast it with astype")
        v = astype(v, DTYPES[x.dtype])
    if basic:
        l = sliced(x.layout, slices)
        if is_place(x, l, v, flags().recording):    # what x[i] += y ends with: y has been added to x[i] already
            lay.decref(l)
            return
        shape = lay.shape_tuple(l)
        lay.decref(l)
        apply_inplace(ASSIGN, x, fit(apart(x, v), shape), slices)
        return
    v = apart(x, v)
    mask = lone_mask(index, x)
    if mask is not None:
        if mask.buffer == x.buffer: mask = mask.copy()      # it is read while x is written
        a = array_of(mask)
        write(MASK_PUT, x, fit(v, (kernel.count_true(&a), *x.shape[mask.layout.ndim:])), mask, mask.layout.ndim)
        return
    attributes, arrays = read_arrays(index, x)
    l = aimed(x.layout, attributes)
    shape = lay.shape_tuple(l)
    lay.decref(l)
    many = np.broadcast_shapes(*[i.shape for i in arrays])
    axis = attributes[2]
    v = fit(v, (*shape[:axis], *many, *shape[axis + len(arrays):]))
    where = stack([broadcast_to(i, many) for i in arrays]) if len(arrays) > 1 else expand_dims(arrays[0], 0)
    write(PUT, x, v, where, attributes)


def copy_(Tensor self, value):
    """Write `value`, broadcast and cast, over this tensor; returns it."""
    setitem(self, Ellipsis, value)
    return self


def fill_(Tensor self, value):
    """Write the number `value` everywhere; returns the tensor."""
    if not isinstance(value, (int, float)): raise TypeError(f"fill_ wants a number, got {type(value).__name__}")
    setitem(self, Ellipsis, value)
    return self
