"""Row-sparse gradients: the rows of a gradient that are not zero, and their indices."""

cimport cython

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.construct cimport computed, copy_plain, fresh
from cygrad.core.graph.steps cimport (
    READS, UPDATES, Arrays, Step, call, copy_elements, elements_in, emit, fill_with_zeros, new_step, put, put_array,
)
from cygrad.core.graph.tensor cimport Leaf, Tensor, data_of, ensure_tensor, is_tracked, put_grad, ready, sole
from cygrad.core.graph.trace cimport Trace, declare_write, preparing, refuse_trace, set_trace
from cygrad.core.store.buffer cimport (
    EXTERNAL, OTHER, WORKSPACE, Buffer, allocate, drop, mark_gradient, unmark_gradient,
)
from cygrad.core.thread_state cimport flags
from cygrad.kernels.shapes cimport index as kernel
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, Array, Layout, has_gradients, is_floating, itemsize
from cygrad.kernels.grouping cimport Groups, group, group_bytes, sum_groups

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described, type_name

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    Py_ssize_t Py_REFCNT(PyObject*)


@cython.final
@cython.no_gc_clear                                 # __dealloc__ uncounts both buffers
@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class GradientSlice:
    """GradientSlice(indices, values, shape=None)

    A row-sparse gradient: row `indices[k]` of the gradient is the sum of the rows `values[k]` of that index, and the
    rows without an index are zeros.

    indices: integers of at least 0, shape (n,). values: float32 or float64, shape (n, ...). shape: the shape of the
    dense gradient; None: its number of rows is not known. Indices may repeat and have any order. Both tensors are
    shared, except in memory of other libraries, which is copied. Raises TypeError, ValueError or IndexError for
    arguments that do not fit. It is not a tensor: functions of tensors do not take it; to_dense() makes a tensor."""

    def __cinit__(self, indices, values, shape=None):
        cdef Tensor i, v
        cdef Layout* l
        if isinstance(indices, (list, tuple)) and len(indices) == 0:
            indices = fresh(lay.from_shape((0,)), INT64, OTHER)
        i, v = ensure_tensor(indices), ensure_tensor(values)
        if is_floating(i.dtype) or i.dtype == BOOL:
            raise TypeError(f"GradientSlice: the indices are {DTYPES[i.dtype]}; wanted integers")
        if not has_gradients(v.dtype):
            raise TypeError(f"GradientSlice: the values are {DTYPES[v.dtype]}; wanted float32 or float64")
        if i.layout.ndim != 1 or v.layout.ndim < 1 or v.layout.shape[0] != i.layout.shape[0]:
            raise ValueError(f"GradientSlice: the indices are {i.shape} and the values {v.shape}; wanted (n,) and a "
                             f"row for each index, (n, ...)")
        if is_tracked(v): raise ValueError("GradientSlice: the values are part of a graph; pass their detach()")
        if i.dtype != INT64: i = late_bound.cast(i, INT64)
        if i.buffer.flags & EXTERNAL: i = copy_plain(i)
        if v.buffer.flags & EXTERNAL: v = copy_plain(v)
        self.take_over(i, v)
        if shape is None:
            check_range(self, PY_SSIZE_T_MAX)
            return
        l = lay.from_shape(shape)
        try: check_rows(self, l, v.dtype, "GradientSlice: this")
        finally: lay.decref(l)

    cdef int take_over(self, Tensor indices, Tensor values) except -1:
        ready(indices)
        ready(values)                               # (allocates zeros that have no memory yet)
        self.indices, self.values = indices, values
        mark_gradient(indices.buffer)
        mark_gradient(values.buffer)

    def __dealloc__(self):
        if self.layout != NULL: lay.decref(self.layout)
        if self.values is None: return
        unmark_gradient(self.indices.buffer)
        unmark_gradient(self.values.buffer)

    @property
    def shape(self):
        """The shape of the dense gradient, or None if its number of rows is not known."""
        return None if self.layout == NULL else lay.shape_tuple(self.layout)

    @property
    def dtype(self):
        """The dtype of the values."""
        return DTYPES[self.values.dtype]

    @property
    def nbytes(self):
        """The bytes of the indices and the values."""
        return self.indices.nbytes + self.values.nbytes

    def __len__(self):
        return self.indices.layout.size

    def to_dense(self, shape=None):
        """The gradient as a new tensor. `shape` is needed only if the slice does not have one."""
        cdef GradientSlice s = self
        if shape is not None or self.layout == NULL:
            if shape is None:
                raise ValueError("to_dense: this GradientSlice does not know its number of rows; pass the shape of "
                                 "the variable")
            if self.layout != NULL and tuple(shape) != self.shape:
                raise ValueError(f"to_dense: this GradientSlice has shape {self.shape}, got {tuple(shape)}")
            s = GradientSlice(self.indices, self.values, shape)
        return dense_rows(s)

    def deduplicate(self, op="sum"):
        """A new slice in which each index occurs once, in ascending order, with the sum or the mean of its rows. Raises
        ValueError unless op is "sum" or "mean"."""
        cdef Groups s
        cdef Buffer* workspace
        cdef Tensor indices, values, own = dense_copy(self.values), index = dense_copy(self.indices)
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef Py_ssize_t n = index.layout.size, row, k
        cdef bint mean = op == "mean"
        if not isinstance(op, str) or op not in ("sum", "mean"):
            raise ValueError(f"deduplicate: op must be \"sum\" or \"mean\", got {described(op)}")
        refuse_trace("deduplicate of a GradientSlice")
        check_range(self, self.layout.shape[0] if self.layout != NULL else PY_SSIZE_T_MAX)
        workspace = allocate(group_bytes(n), WORKSPACE)
        try:
            group(&s, <const int64_t*>data_of(index), n,
                  self.layout.shape[0] if self.layout != NULL else PY_SSIZE_T_MAX, workspace.data)
            for d in range(own.layout.ndim): shape[d] = own.layout.shape[d]
            shape[0] = s.n
            indices = fresh(lay.dense(1, shape), INT64, OTHER)
            values = fresh(lay.dense(own.layout.ndim, shape), own.dtype, OTHER)
            for k in range(s.n): (<int64_t*>indices.buffer.data)[k] = s.index[s.order[s.starts[k]]]
            row = own.layout.size // n if n else 0
            with nogil: sum_groups(&s, own.dtype, own.buffer.data + own.layout.offset * itemsize(own.dtype), row,
                                   mean, values.buffer.data)
        finally:
            drop(workspace)
        return new_slice(indices, values, self.layout)

    def copy(self):
        """A slice with copies of the indices and the values."""
        return new_slice(copy_plain(self.indices), copy_plain(self.values), self.layout)

    def __copy__(self): return self.copy()
    def __deepcopy__(self, memo): return self.copy()

    def __reduce__(self):
        return load_gradient_slice, (self.indices.detach(), self.values.detach(), self.shape)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a GradientSlice is not an array; use its to_dense(), its indices or its values")

    def __repr__(self):
        parts = [f"indices={self.indices!r}", f"values={self.values!r}"]
        if self.layout != NULL: parts.append(f"shape={self.shape}")
        line = f"GradientSlice({', '.join(parts)})"
        if "\n" not in line: return line
        begin = "GradientSlice("                     # one argument a line, and the lines of a tensor below its first
        aligned = [part.replace("\n", "\n" + " " * (len(begin) + part.index("=") + 1)) for part in parts]
        return begin + (",\n" + " " * len(begin)).join(aligned) + ")"


def load_gradient_slice(indices, values, shape):
    """The GradientSlice of a pickle."""
    return GradientSlice(indices, values, shape)

load_gradient_slice.__module__ = "cygrad.core.pickling"     # the path in pickles, which never changes


def ensure_dense(gradient):
    """`gradient` as a tensor: that of a GradientSlice is made by to_dense(), and a tensor or None is returned as it is.
    Raises TypeError for other arguments."""
    if isinstance(gradient, GradientSlice): return gradient.to_dense()
    if gradient is not None and not isinstance(gradient, Tensor):
        raise TypeError(f"ensure_dense takes a tensor, a GradientSlice or None, got {type_name(gradient)}")
    return gradient


# ---- made by the engine ----------------------------------------------------------------------------------------------

cdef GradientSlice new_slice(Tensor indices, Tensor values, const Layout* like):
    """A slice of int64 indices and values that are known to fit; `like` (or NULL) has the shape of the dense gradient.
    """
    return GradientSlice.__new__(GradientSlice, indices, values, None if like == NULL else lay.shape_tuple(like))


cdef GradientSlice empty_slice(const Layout* like, int dtype):
    """The slice without rows, which stands for zeros of the shape of `like`."""
    shape = (0, *lay.shape_tuple(like)[1:])
    return new_slice(computed(lay.from_shape((0,)), INT64, OTHER), computed(lay.from_shape(shape), dtype, OTHER), like)


cdef Tensor dense_copy(Tensor t):
    """`t` if it is dense, else a dense copy."""
    return t if t.layout.dense else copy_plain(t)


cdef Tensor chained(Tensor a, Tensor b):
    """The rows of `a`, then those of `b`."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Tensor y
    a, b = dense_copy(a), dense_copy(b)
    for d in range(a.layout.ndim): shape[d] = a.layout.shape[d]
    shape[0] += b.layout.shape[0]
    y = computed(lay.dense(a.layout.ndim, shape), a.dtype, OTHER)
    copy_rows(a, y, 0)
    copy_rows(b, y, a.layout.size * itemsize(a.dtype))
    return y


cdef int copy_rows(Tensor x, Tensor y, size_t at) except -1:
    """Copy the contiguous `x` to the memory of `y`, from byte `at` on."""
    cdef Arrays a
    cdef Array target
    a.n = 0
    put(&a, x, READS)
    target = a.at[0]
    target.data = y.buffer.data + at
    put_array(&a, target, y.buffer, UPDATES)
    call(flags(), "GradientSlice", copy_elements, &a, 0, NULL, 0, None)


cdef GradientSlice joined(GradientSlice a, GradientSlice b):
    """The sum: the rows of both, those of `a` first."""
    return new_slice(chained(a.indices, b.indices), chained(a.values, b.values), a.layout)


cdef bint held_alone(Tensor t) noexcept:
    """Whether only the slice refers to the tensor, and only the tensor to its memory."""
    return Py_REFCNT(<PyObject*>t) == 1 and sole(t.buffer, t.layout, t.layout, t.dtype)


cdef GradientSlice unshared(GradientSlice s):
    """`s` with copies of what others refer to, as a .grad must be. The caller and a Gradient refer to `s`."""
    cdef bint mine = Py_REFCNT(<PyObject*>s) <= 2
    if mine and held_alone(s.indices) and held_alone(s.values): return s
    return new_slice(s.indices if mine and held_alone(s.indices) else copy_plain(s.indices),
                     s.values if mine and held_alone(s.values) else copy_plain(s.values), s.layout)


cdef Tensor dense_rows(GradientSlice s):
    """The dense gradient, in new memory."""
    cdef Tensor y = computed(lay.dense_like(s.layout), s.values.dtype, OTHER)
    fill_with_zeros(y)
    add_rows(s, y)
    return y


cdef int add_rows(GradientSlice s, Tensor total) except -1:
    """Add each row of `s` to a row of `total`, a tensor of any strides."""
    cdef Arrays a
    a.n = 0
    put(&a, total, UPDATES)
    declare_write(flags(), total.buffer)
    put(&a, s.values, READS)
    put(&a, s.indices, READS)
    call(flags(), "GradientSlice", add_elements, &a, 0, NULL, 0, None)


cdef int add_elements(Array* a, const void* parameters, object held) except -1:
    """A kernel: a[0][i] += a[1] for the indices i = a[2]."""
    cdef kernel.Places p
    cdef bint done
    check_indices(&a[2], a.layout.shape[0])
    kernel.aim(&p, a, &a[1], 0, 1, &a[2])
    with nogil: done = kernel.add(&p)
    if done or p.count * p.row == 0: return 0
    raise IndexError("GradientSlice: an index is out of range: another thread modified the indices; pass a copy()")


cdef int check_range(GradientSlice s, Py_ssize_t rows) except -1:
    """Raise IndexError if an index is not one of 0 to rows - 1. The user may have written to the indices. A program
    checks them at each run."""
    cdef Arrays a
    if s.indices.layout.size == 0: return 0
    a.n = 0
    put(&a, s.indices, READS)
    call(flags(), "GradientSlice", check_elements, &a, 0, &rows, sizeof(rows), None)


cdef int check_elements(Array* a, const void* parameters, object held) except -1:
    return check_indices(a, (<const Py_ssize_t*>parameters)[0])


cdef int check_indices(const Array* a, Py_ssize_t rows) except -1:
    cdef Py_ssize_t i
    cdef int64_t at, stride = a.layout.strides[0]
    for i in range(a.layout.size):
        at = (<int64_t*>a.data)[i * stride]
        if 0 <= at < rows: continue
        last = "" if rows == PY_SSIZE_T_MAX else f", and the gradient has {rows} rows"
        raise IndexError(f"GradientSlice: the index {at} is out of range: indices are at least 0{last}")


cdef int check_rows(GradientSlice s, const Layout* like, int dtype, str what) except -1:
    """Raise ValueError or IndexError unless `s` fits a gradient of the shape of `like` and of a dtype. A slice without
    a shape takes it."""
    cdef const Layout* v = s.values.layout
    cdef bint fits = v.ndim == like.ndim and s.values.dtype == dtype
    for d in range(1, like.ndim if fits else 0): fits = fits and v.shape[d] == like.shape[d]
    if fits and s.layout != NULL: fits = lay.same_shape(s.layout, like)
    if not fits:
        own = f" and shape {s.shape}" if s.layout != NULL else ""
        raise ValueError(f"{what} GradientSlice has {DTYPES[s.values.dtype]} values of shape {s.values.shape}{own}; "
                         f"they do not fit {DTYPES[dtype]} rows of a gradient of shape {lay.shape_tuple(like)}")
    check_range(s, like.shape[0])
    if s.layout == NULL: s.layout = lay.dense_like(like)


cdef int put_rows(Leaf leaf, GradientSlice s) except -1:
    """Set the .grad of a variable to `s`."""
    put_grad(leaf, None)
    leaf.rows = s
    return trace_put(leaf, s)


# ---- programs --------------------------------------------------------------------------------------------------------

cdef int copy_to_grad(Array* a, const void* parameters, object held) except -1:
    """A kernel: copy the indices a[0] and the values a[1] to the GradientSlice held[1], which is or becomes the .grad
    of the variable of the accumulator held[0]."""
    cdef Leaf leaf = <Leaf>(<list>held)[0]
    cdef GradientSlice s = <GradientSlice>(<list>held)[1]
    cdef bint mine = Py_REFCNT(<PyObject*>s) <= 2 + (leaf.rows is s)    # `held`, `s` and .grad refer to it
    if not mine or not held_alone(s.indices) or not held_alone(s.values): s = (<list>held)[1] = s.copy()
    memcpy(s.indices.buffer.data, a[0].data, s.indices.layout.size * sizeof(int64_t))
    memcpy(s.values.buffer.data, a[1].data, s.values.layout.size * itemsize(s.values.dtype))
    s.indices.buffer.version += 1
    s.values.buffer.version += 1
    if leaf.rows is not s: put_rows(leaf, s)


cdef int trace_put(Leaf leaf, GradientSlice s) except -1:
    """After put_rows(): a program puts the rows into .grad at each run."""
    cdef Trace t = preparing(flags())
    cdef Step step
    cdef Arrays a
    cdef Tensor indices
    cdef GradientSlice own          # in the memory of the program
    cdef void* around
    if t is None or not t.has_outside(leaf): return 0
    if not s.indices.layout.dense or not s.values.layout.dense:
        s = new_slice(dense_copy(s.indices), dense_copy(s.values), s.layout)
    around = set_trace(NULL)                        # (so that this memory is real, and not checked at each run)
    try:
        indices = computed(lay.dense_like(s.indices.layout), INT64, OTHER)
        memset(indices.buffer.data, 0, indices.buffer.nbytes)
        own = new_slice(indices, computed(lay.dense_like(s.values.layout), s.values.dtype, OTHER), s.layout)
    finally: set_trace(around)
    a.n = 0
    put_array(&a, elements_in(s.indices), s.indices.buffer, READS)
    put_array(&a, elements_in(s.values), s.values.buffer, READS)
    step = new_step(t, ".grad", copy_to_grad, &a, NULL, 0, [t.outside(leaf), own])
    t.empty_rows.pop(<size_t><void*>leaf, None)
    if s.indices.layout.size == 0:                  # (emitted by settle(), unless a gradient follows)
        t.empty_rows[<size_t><void*>leaf] = step
        return 0
    t.with_rows.add(<size_t><void*>leaf)
    return emit(t, step)
