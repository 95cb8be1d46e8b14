"""x[index] and x[index] = v, with NumPy's semantics.

Slices, ints and new dimensions make a view. Index arrays select from that view (take); the dimensions that they select
from come first if they are not adjacent. A single mask over the first dimensions is a select."""

cimport cython

import numpy as np

from cpython.number cimport PyNumber_Index
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack

from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport VIRTUAL
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, array_of, ensure_tensor
from cygrad.core.execute.inplace cimport apply_inplace, check_writable, run_into
from cygrad.core.thread_state cimport flags
from cygrad.core.execute.operands cimport Operand, read_tensor, usable
from cygrad.core.execute.run cimport apply1, apply2, apply_list
from cygrad.core.graph.views cimport is_place
from cygrad.kernels cimport driver
from cygrad.kernels.shapes cimport index as kernel
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, Array, Layout, is_floating, is_real, itemsize
from cygrad.ops.elementwise.base cimport Part
from cygrad.ops.shapes.index cimport Indexed, check_indices, index_tensor, own, refuse_indices, zero_like
from cygrad.ops.shapes.shape cimport Shape, permuted

from cygrad.core.interop.creation import arange, zeros
from cygrad.core.errors import described
from cygrad.core.interop.numpy import tensor
from cygrad.core.dtypes import DTYPES
from cygrad.ops.shapes import index as by_index
from cygrad.ops.shapes import masks as by_mask
from cygrad.ops.elementwise.compare import where
from cygrad.ops.shapes.join import stack
from cygrad.ops.shapes.masks import MaskDimensions, select
from cygrad.ops.shapes.shape import astype, broadcast_to, expand_dims, reshape, transpose

cdef Operator TAKE = by_index.OPERATORS["take"], ARGWHERE = by_index.OPERATORS["argwhere"]
cdef Py_ssize_t MAX_STEP = <Py_ssize_t>1 << 48      # the largest step of a slice; no dimension is larger
cdef Operator MASK_PUT = by_mask.OPERATORS["mask_put"]


# ---- slices ----------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Slices(Attributes):
    """The attributes of getitem and assign: a parsed index without arrays. It has an entry for each dimension of x,
    (start, step, count) or, if an int removes the dimension, start alone; and None for each new dimension. `written` is
    the index as the caller wrote it, which selects more from a larger x, or None."""
    cdef readonly tuple index
    cdef tuple written
    cdef int n_in                                   # dimensions of x
    cdef int n_out                                  # dimensions of the result
    cdef Py_ssize_t start[MAX_NDIM]                 # for each dimension of x
    cdef Py_ssize_t step[MAX_NDIM]                  # for each dimension of the result
    cdef Py_ssize_t count[MAX_NDIM]
    cdef signed char source[MAX_NDIM]               # its dimension of x, or -1 for a new one

    def __cinit__(self, tuple index):
        cdef int n = 0, d = 0
        for entry in index:
            if n == MAX_NDIM and type(entry) is not int:
                n = len([e for e in index if type(e) is not int])
                raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, but this index would give {n}")
            if d == MAX_NDIM and entry is not None:
                raise IndexError(f"an index has at most {MAX_NDIM} dimensions, this one has more")
            if type(entry) is int:
                self.start[d] = entry
                d += 1
                continue
            if entry is None: self.source[n], self.step[n], self.count[n] = -1, 0, 1
            else:
                self.start[d], self.step[n], self.count[n] = <tuple?>entry
                self.source[n] = <signed char>d
                d += 1
            n += 1
        self.index, self.n_in, self.n_out = index, d, n

    cdef dict keywords(self):
        """The index in Python's form: as it was written, or ints, slices, and None for new dimensions."""
        cdef list out = []
        if self.written is not None: return {"index": self.written}
        for entry in self.index:
            if entry is None or type(entry) is int:
                out.append(entry)
                continue
            start, step, count = entry
            stop = start + step * count
            out.append(slice(start, stop if stop >= 0 else None, None if step == 1 else step))
        return {"index": tuple(out)}


cdef Layout* sliced(const Layout* x, const void* slices, Layout* y) noexcept nogil:
    """Write the layout of x[index] to y, and return y."""
    cdef int d, source
    y.ndim, y.offset = (<Slices>slices).n_out, x.offset
    for d in range((<Slices>slices).n_in): y.offset += (<Slices>slices).start[d] * x.strides[d]
    for d in range(y.ndim):
        source = (<Slices>slices).source[d]
        y.shape[d] = (<Slices>slices).count[d]
        y.strides[d] = x.strides[source] * (<Slices>slices).step[d] if source >= 0 else 0
    return lay.finish(y)


cdef class GetItem(Part):
    """y = x[index], a view        dx = 0, with dx[index] = g"""
    called, lanes = "getitem", "shifting"

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        sliced(x, attributes, y)

    cdef object formula(self, c, int i, g):
        return apply1(PUT_SLICE, g, Region(c.shape(0), c.attributes))


cdef int put_into(const Array* x, const void* slices, const Array* v) except -1 nogil:
    """x[index] = v"""
    cdef Array a[2]
    cdef LocalLayout l
    a[0], a[1] = v[0], x[0]
    a[1].layout = sliced(x.layout, slices, lay.local(&l))
    a[1].data += (l.layout.offset - x.layout.offset) * itemsize(x.dtype)
    if is_real(x.dtype): return driver.each(COPY_LOOP, a)
    kernel.copy(&a[0], &a[1])


@cython.no_gc
cdef class Region(Shape):
    """The attributes of put_slice: the shape of the result, and the position of the operand in it."""
    cdef readonly Slices slices

    def __cinit__(self, tuple shape, Slices slices):
        if slices.n_in != self.ndim:
            raise IndexError(f"put_slice: the index is for {slices.n_in} dimensions, but the shape has {self.ndim}")
        self.slices = slices

    cdef dict keywords(self):
        """The index has the form of the entries of Slices."""
        return {"shape": self.shape, "index": self.slices.index}


cdef class PutSlice(Operator):
    """y = 0, with y[index] = x        dx = g[index]"""
    lanes, tangent = "shifting", "linear"
    traits = "differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.dense((<Region>c.attributes).ndim, (<Region>c.attributes).sizes)
        c.y[0].dtype = c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        memset(c.y[0].data, 0, c.y[0].layout.size * itemsize(c.y[0].dtype))
        return put_into(&c.y[0], <void*>(<Region>c.attributes).slices, &c.x[0])

    cdef object formula(self, c, int i, g):
        return apply1(GETITEM, g, c.attributes.slices)


cdef class Assign(Operator):
    """y = x, with y[index] = v (in place)        dx = g, with dx[index] = 0        dv = g[index]"""
    lanes, tangent, traits = "shifting", "linear", "differentiable"
    operands = "x v"

    cdef int forward(self, Call* c) except -1 nogil:
        if c.x[0].data != c.y[0].data: kernel.copy(&c.x[0], &c.y[0])
        return put_into(&c.y[0], c.attributes, &c.x[1])

    cdef object formula(self, c, int i, g):
        part = apply1(GETITEM, g, c.attributes)
        return part if i == 1 else apply2(ASSIGN, g, zero_like(g, part.shape), c.attributes)


# ---- index arrays ----------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class ArrayIndex(Attributes):
    """The attributes of put. x is sliced, then permuted by `order` (or None); the arrays select from `axis` on."""
    cdef readonly Slices slices
    cdef readonly tuple order
    cdef readonly int axis
    cdef int axes[MAX_NDIM]                         # the order

    def __cinit__(self, Slices slices, tuple order or None, int axis):
        cdef int d, n = slices.n_out
        if order is not None and sorted(order) != list(range(n)) or not 0 <= axis <= n:
            raise IndexError(f"put: order {order} and axis {axis} do not fit an index with {n} dimensions")
        self.slices, self.order, self.axis = slices, order, axis
        for d in range(n): self.axes[d] = d if order is None else order[d]

    cdef dict keywords(self):
        """The three fields as one tuple, which is how put() takes them."""
        return {"attributes": (self.slices.index, self.order, self.axis)}


cdef Layout* aimed(const Layout* x, const void* index, Layout* y) noexcept nogil:
    """Write the layout of the view that the arrays of an index select from to y, and return y."""
    cdef LocalLayout part
    permuted(sliced(x, <void*>(<ArrayIndex>index).slices, lay.local(&part)), (<ArrayIndex>index).axes, y)
    return y


cdef object recorded_view(Tensor x, ArrayIndex index):
    """The same view as a tensor, recorded."""
    cdef Tensor y = apply1(GETITEM, x, index.slices)
    return y if index.order is None else transpose(y, index.order)


cdef class Put(Operator):
    """y = x, with y[i] = v        dx = g, with dx[i] = 0        dv = g[i]

    The inputs are x, v and the index arrays, stacked along a first dimension. If an index is repeated, the last value
    is written, and only it receives a gradient. Saves the indices."""
    lanes, tangent, traits = "putting", "linear", "differentiable"
    operands, no_gradient, reads = "x v indices", "indices", "indices"

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        cdef LocalLayout l
        cdef Array x = c.y[0]
        cdef Array index[MAX_NDIM]
        cdef Layout one = c.x[2].layout[0]          # becomes the layout of one index array
        cdef int k, n = <int>one.shape[0], axis = (<ArrayIndex>c.attributes).axis
        one.ndim, one.shape, one.strides = one.ndim - 1, one.shape + 1, one.strides + 1
        one.size, one.dense = one.size // n, False
        for k in range(n):
            index[k] = c.x[2]
            index[k].layout = &one
            index[k].data += k * c.x[2].layout.strides[0] * itemsize(c.x[2].dtype)
        x.layout = aimed(c.y[0].layout, c.attributes, lay.local(&l))
        x.data += (l.layout.offset - c.y[0].layout.offset) * itemsize(x.dtype)
        check_indices("", &x, axis, n, index)
        if c.x[0].data != c.y[0].data: kernel.copy(&c.x[0], &c.y[0])
        kernel.aim(&p, &x, &c.x[1], axis, n, index)
        if not kernel.put(&p): refuse_indices("", &p, &x, axis, n, index)

    cdef object formula(self, c, int i, g):
        cdef ArrayIndex at = c.attributes
        if i > 1: return None
        index = c.input(2)
        arrays = [index[k] for k in range(len(index))]
        under = recorded_view(g, at)
        chosen = apply_list(TAKE, [under, *arrays], Indexed(at.axis, <int>len(arrays)))
        if i == 1: return last_of(chosen, under.shape, index.detach(), at.axis)
        return apply_list(PUT, [g, zero_like(g, chosen.shape), index], at)


cdef object last_of(Tensor g, tuple shape, Tensor index, int axis):
    """`g`, but 0 where the same index follows later."""
    cdef int n = <int>index.layout.shape[0], extra = index.layout.ndim - 1, k
    cdef Py_ssize_t size
    if index.layout.size == 0: return g
    flat, size = 0, 1                               # flat: each index tuple as one number
    for k in range(n - 1, -1, -1):
        i = index[k]
        flat = flat + where(i < 0, i + shape[axis + k], i) * size
        size *= shape[axis + k]
    flat = reshape(flat, (1, -1))
    order = arange(flat.shape[1])
    owner = apply_list(PUT, [zeros(size, dtype=DTYPES[INT64]), order, flat],
                       ArrayIndex(Slices(((0, 1, size),)), None, 0))
    last = reshape(owner[flat[0]] == order, index.shape[1:] + (1,) * (g.layout.ndim - axis - extra))
    return where(last, g, 0)


# ---- parsing an index ------------------------------------------------------------------------------------------------

cdef bint is_array(entry):
    """Whether an entry of an index is an array. True and False are, as masks of no dimensions, and so is a number that
    has no value yet, because it stands for lanes or is traced."""
    cdef Tensor t
    if type(entry) is int or type(entry) is slice or entry is None or entry is Ellipsis: return False
    if isinstance(entry, Tensor):
        t = entry
        return t.layout.ndim > 0 or t.dtype == BOOL or t.buffer.flags & VIRTUAL and not is_floating(t.dtype)
    if isinstance(entry, np.ndarray): return entry.ndim > 0 or entry.dtype == np.bool_
    return isinstance(entry, (list, tuple, bool, np.bool_))


cdef bint has_arrays(index):
    if not isinstance(index, tuple): return is_array(index)
    for entry in index:
        if is_array(entry): return True
    return False


cdef bint is_plain(s):
    """Whether a slice has None and ints of moderate size alone."""
    for part in (s.start, s.stop, s.step):
        if part is not None and not (type(part) is int and -MAX_STEP < part < MAX_STEP): return False
    return True


cdef Slices read_index(index, const Layout* x):
    """Parse an index of ints, slices, Ellipsis and None by NumPy's rules. Raises IndexError or TypeError."""
    cdef list out = []
    cdef Py_ssize_t i, size, start, stop, step, count
    cdef int d = 0, given = 0, ellipses = 0
    cdef bint keeps = True                          # numbers of Python, and nothing that has memory
    cdef Slices found
    if not isinstance(index, tuple): index = (index,)
    for entry in <tuple>index:
        if entry is Ellipsis: ellipses += 1
        elif entry is not None:
            given += 1
            if type(entry) is slice: keeps = keeps and is_plain(entry)
            elif type(entry) is not int: keeps = False
    if given > x.ndim: raise IndexError(f"too many indices: {given} for a tensor of {x.ndim} dimensions")
    if ellipses > 1: raise IndexError("an index has at most one Ellipsis (...)")
    for entry in <tuple>index:
        if entry is None: out.append(None)
        elif entry is Ellipsis:
            for _ in range(x.ndim - given):
                out.append((0, 1, x.shape[d]))
                d += 1
        elif isinstance(entry, slice):
            PySlice_Unpack(entry, &start, &stop, &step)
            count = PySlice_AdjustIndices(x.shape[d], &start, &stop, step)
            if not -MAX_STEP < step < MAX_STEP: step = 1        # such a slice has at most one element
            out.append((start if count else 0, step, count))
            d += 1
        else:
            try:
                place = PyNumber_Index(entry)
            except TypeError:
                raise TypeError(f"only ints, slices, ..., None and arrays of integers or bools can index; got "
                                f"{getattr(entry, 'dtype', type(entry).__name__)}") from None
            size = x.shape[d]
            if not -size <= place < size:
                raise IndexError(f"index {place} is out of range for dimension {d} of size {size}")
            i = place
            out.append(i + size if i < 0 else i)
            d += 1
    for d in range(d, x.ndim): out.append((0, 1, x.shape[d]))
    found = Slices(tuple(out))
    if keeps: found.written = tuple(index)
    return found


cdef tuple read_arrays(index, Tensor x):
    """Parse an index with arrays: (ArrayIndex, index tensors). A mask becomes indices. Raises IndexError, TypeError."""
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
    if given > x.layout.ndim: raise IndexError(f"too many indices: {given} for a tensor of {x.layout.ndim} dimensions")
    if not [e for e in entries if e is Ellipsis]: entries.append(Ellipsis)
    last = None                                     # the position of the latest array or int
    for k, entry in enumerate(entries):             # plain: slices in place of arrays; at: the arrays' dimensions
        n = x.layout.ndim - given if entry is Ellipsis else 1
        if isinstance(entry, Tensor):
            n, fancy = entry.ndim if entry.dtype == np.bool_ else 1, True
            if n == 0:                              # True or False: a new dimension of size 1 or 0
                plain.append(None)
                at.append(place)
                arrays.append(ensure_tensor(np.zeros(int(entry.item()), np.int64)))
            elif entry.dtype == np.bool_:
                if entry.shape != x.shape[d:d + n]:
                    raise IndexError(f"a mask of shape {entry.shape} cannot index dimensions of sizes "
                                     f"{x.shape[d:d + n]}; they must be equal")
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
        if fancy:                                   # an int counts as an array
            apart |= last is not None and last != k - 1
            last = k
        if entry is not None: d += n
    if len(arrays) >= MAX_NDIM - 1:
        raise IndexError(f"an index has at most {MAX_NDIM - 2} arrays, this one has {len(arrays)}")
    slices = read_index(tuple(plain), x.layout)
    order, axis = None, at[0]
    if apart:
        ndim = slices.n_out
        if at != list(range(len(at))): order = (*at, *[k for k in range(ndim) if k not in at])
        axis = 0
    return ArrayIndex(slices, order, axis), arrays


cdef Tensor lone_mask(index, Tensor x):
    """The mask, if the index is a single one over the first dimensions of x; else None."""
    if isinstance(index, tuple):
        if len(index) == 2 and index[1] is Ellipsis: index = index[0]
        elif len(index) == 1: index = index[0]
        else: return None
    if isinstance(index, list): index = np.asarray(index)
    if not isinstance(index, (Tensor, np.ndarray)) or index.dtype != np.bool_ or index.ndim == 0: return None
    t = ensure_tensor(index)
    return t if t.shape == x.shape[:t.ndim] else None       # otherwise read_arrays() raises the error


cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef Operator GETITEM = GetItem(), PUT_SLICE = PutSlice(), ASSIGN = Assign(), PUT = Put()
OPERATORS = {o.name: o for o in (GETITEM, PUT_SLICE, ASSIGN, PUT)}


def getitem(x: Data, index: Any) -> Tensor:
    """x[index] by NumPy's rules: a view, or a copy for index arrays, lists and masks. Raises IndexError, TypeError."""
    cdef Tensor t = ensure_tensor(x)
    if not has_arrays(index): return apply1(GETITEM, t, read_index(index, t.layout))
    mask = lone_mask(index, t)
    if mask is not None: return select(t, mask)
    at, arrays = read_arrays(index, t)
    return apply_list(TAKE, [recorded_view(t, at), *arrays], Indexed(at.axis, <int>len(arrays)))


def put_slice(x: Data, shape: int | Sequence[int], index: Any) -> Tensor:
    """Zeros of `shape` with `x` at an index, given as entries of Slices."""
    cdef Tensor t = ensure_tensor(x)
    cdef Region at = Region(tuple(lay.whole_sizes(shape)), read_entries("put_slice", index, lay.whole_sizes(shape)))
    wanted = shape_at(at.slices)
    if t.shape != wanted: raise ValueError(f"put_slice: x is {t.shape}, but the index selects {wanted}")
    return apply1(PUT_SLICE, t, at)


cdef tuple shape_at(Slices s):
    """The shape of x[index]."""
    return tuple([s.count[d] for d in range(s.n_out)])


cdef Slices read_entries(str name, index, shape):
    """Slices of entries given by a caller, for a tensor of `shape`. Raises TypeError for other entries, IndexError for
    one that is out of range. Too few are left to the caller."""
    cdef int d = 0
    if not isinstance(index, (tuple, list)):
        raise TypeError(f"{name}: the index must be a tuple of entries, got {described(index)}")
    for entry in index:
        if entry is None: continue
        numbers = (entry, 1, 1) if type(entry) is int else entry
        if type(numbers) is not tuple or [type(n) for n in numbers] != [int, int, int]:
            raise TypeError(f"{name}: an entry of the index must be an int, (start, step, count) or None, got "
                            f"{described(entry)}")
        start, step, count = numbers
        size = shape[d] if d < len(shape) else 0
        last = start + step * (count - 1) if count > 0 else 0
        if not (0 <= start < size + (count == 0) and 0 <= last < max(size, 1) and count >= 0
                and 0 < abs(step) <= MAX_STEP):
            raise IndexError(f"{name}: entry {described(entry)} of the index does not fit dimension {d} of the shape "
                             f"{tuple(shape)}")
        d += 1
    return Slices(tuple(index))


def assign(x: Data, v: Data, index: Any) -> Tensor:
    """`x` with `v`, which has the shape of x[index] and the dtype of x, at an index of ints, slices, ... and None."""
    cdef Tensor t = ensure_tensor(x), u = ensure_tensor(v)
    cdef Slices at = read_index(index, t.layout)
    wanted = shape_at(at)
    if u.shape != wanted or u.dtype != t.dtype:
        raise ValueError(f"assign: v is {DTYPES[u.dtype]} of shape {u.shape}; wanted {DTYPES[t.dtype]} of shape "
                         f"{wanted}, as x[index]")
    return apply2(ASSIGN, t, u, at)


def put(x: Data, v: Data, indices: Data, attributes: Any) -> Tensor:
    """`x` with `v` at stacked index arrays; `attributes` is (entries of Slices, order, axis)."""
    cdef Tensor t = ensure_tensor(x), u = ensure_tensor(v), i = index_tensor(indices, None)
    cdef LocalLayout l
    if not isinstance(attributes, tuple) or len(attributes) != 3:
        raise TypeError(f"put: attributes must be (entries of Slices, order, axis), got {described(attributes)}")
    slices, order, axis = attributes
    cdef ArrayIndex at = ArrayIndex(read_entries("put", slices, t.shape), order, axis)
    cdef int n = min(i.layout.shape[0], MAX_NDIM) if i.layout.ndim else 0
    if at.slices.n_in != t.layout.ndim or n < 1 or at.axis + n > at.slices.n_out:
        raise IndexError(f"put: {n} index arrays from axis {at.axis} on and an index of {at.slices.n_in} dimensions do "
                         f"not fit x of shape {t.shape}")
    shape = lay.shape_tuple(aimed(t.layout, <void*>at, lay.local(&l)))
    wanted = (*shape[:at.axis], *i.shape[1:], *shape[at.axis + n:])
    if u.shape != wanted or u.dtype != t.dtype:
        raise ValueError(f"put: v is {DTYPES[u.dtype]} of shape {u.shape}; wanted {DTYPES[t.dtype]} of shape {wanted}, "
                         f"which the index selects")
    return apply_list(PUT, [t, u, i], at)


cdef int write(Operator op, Tensor x, Tensor v, Tensor index, attributes) except -1:
    """x = op(x, v, index), in place."""
    cdef Operand o[3]
    usable(x)
    usable(v)
    usable(index)
    read_tensor(&o[0], x)
    read_tensor(&o[1], v)
    read_tensor(&o[2], index)
    return run_into(op, o, 3, attributes, x)


cdef Tensor fit(Tensor v, tuple shape):
    """`v` broadcast to `shape`. Extra leading dimensions of size 1 are removed."""
    cdef int extra = v.layout.ndim - len(shape)
    if v.shape == shape: return v
    if extra > 0 and v.shape[:extra] == (1,) * extra: v = reshape(v, v.shape[extra:])
    return broadcast_to(v, shape)


cdef Tensor apart(Tensor x, Tensor v):
    """Another view of `v` if it shares the memory of `x`, so that it is read before x is written."""
    return apply1(GETITEM, v, read_index(Ellipsis, v.layout)) if v.buffer == x.buffer else v


def setitem(Tensor x, index, value):
    """x[index] = value by NumPy's rules; `value` is broadcast and cast. A repeated index writes the last value."""
    cdef Tensor v, mask
    cdef Slices slices
    cdef ArrayIndex at
    cdef Array a
    cdef LocalLayout l
    cdef bint basic = not has_arrays(index)
    if basic: slices = read_index(index, x.layout)
    if is_floating(x.dtype) and isinstance(value, (int, float, list, tuple)):
        v = tensor(value, DTYPES[x.dtype])          # not via the default dtype: float64 keeps all digits of 0.1
    else:
        v = ensure_tensor(value)
    check_writable(x, flags())
    if v.dtype != x.dtype:
        if is_floating(v.dtype) and not is_floating(x.dtype):
            raise TypeError(f"setitem: cannot write {DTYPES[v.dtype]} values into a tensor of dtype {DTYPES[x.dtype]}; "
                            f"cast them with astype")
        v = astype(v, DTYPES[x.dtype])
    if basic:
        sliced(x.layout, <void*>slices, lay.local(&l))
        if is_place(x, &l.layout, v, flags().recording): return     # x[i] += y has already written x[i]
        apply_inplace(ASSIGN, x, fit(apart(x, v), lay.shape_tuple(&l.layout)), slices)
        return
    v = apart(x, v)
    mask = lone_mask(index, x)
    if mask is not None:
        if v.layout.ndim == 0 and (mask.buffer.flags | x.buffer.flags) & VIRTUAL:       # (what it selects is not known)
            setitem(x, Ellipsis, where(reshape(mask, mask.shape + (1,) * (x.layout.ndim - mask.layout.ndim)), v, x))
            return
        if mask.buffer == x.buffer: mask = mask.copy()      # the mask is read while x is written
        a = array_of(mask)
        v = fit(v, (kernel.count_true(&a), *x.shape[mask.layout.ndim:]))
        write(MASK_PUT, x, v, mask, MaskDimensions(mask.layout.ndim))
        return
    at, arrays = read_arrays(index, x)
    shape = lay.shape_tuple(aimed(x.layout, <void*>at, lay.local(&l)))
    many = np.broadcast_shapes(*[i.shape for i in arrays])
    v = fit(v, (*shape[:at.axis], *many, *shape[at.axis + len(arrays):]))
    stacked = stack([broadcast_to(i, many) for i in arrays]) if len(arrays) > 1 else expand_dims(arrays[0], 0)
    write(PUT, x, v, stacked, at)


def copy_(Tensor self, value: Data) -> Tensor:
    """Overwrite this tensor with `value`, broadcast and cast; returns the tensor."""
    setitem(self, Ellipsis, value)
    return self


def fill_(Tensor self, value: float) -> Tensor:
    """Set all elements to the number `value`; returns the tensor."""
    if not isinstance(value, (int, float)): raise TypeError(f"fill_ takes a number, got {type(value).__name__}")
    setitem(self, Ellipsis, value)
    return self
