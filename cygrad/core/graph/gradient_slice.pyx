"""Row-sparse gradients: the rows of a gradient that are not zero, and their indices."""

cimport cython

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.construct cimport computed, copy_plain, fresh
from cygrad.core.graph.tensor cimport Leaf, Tensor, array_of, data_of, ensure_tensor, is_tracked, put_grad, ready, sole
from cygrad.core.graph.trace cimport (
    PLANNING, Step, Trace, preparing, refuse_trace, zeros_step,
)
from cygrad.core.store.buffer cimport (
    EXTERNAL, OTHER, WORKSPACE, Buffer, allocate, drop, mark_gradient, unmark_gradient,
)
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels cimport index as kernel
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, Array, Layout, is_floating, itemsize
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
        if not is_floating(v.dtype):
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
        return 0

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
        cdef int d
        cdef bint mean = op == "mean"
        if not isinstance(op, str) or op not in ("sum", "mean"):
            raise ValueError(f"deduplicate: op must be \"sum\" or \"mean\", got {described(op)}")
        if flags().trace != NULL: refuse_trace("deduplicate of a GradientSlice")
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
    cdef int d
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
    if flags().trace != NULL: return trace_copy(x, y, at)
    memcpy(y.buffer.data + at, data_of(x), x.layout.size * itemsize(x.dtype))
    return 0


cdef Array address(Tensor t) noexcept:
    """The elements of a tensor that has memory, perhaps virtual memory."""
    cdef Array a
    a.data, a.layout, a.dtype = t.buffer.data + t.layout.offset * itemsize(t.dtype), t.layout, t.dtype
    return a


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
    cdef Flags* f = flags()
    if f.trace != NULL: zeros_step(f, y.buffer, 0, y.buffer.nbytes)
    else: memset(y.buffer.data, 0, y.buffer.nbytes)
    add_rows(s, y)
    return y


cdef int add_rows(GradientSlice s, Tensor total) except -1:
    """Add each row of `s` to a row of `total`, a tensor of any strides."""
    cdef Array x, v, i
    if flags().trace != NULL: return trace_rows(s, total)
    x, v, i = array_of(total), array_of(s.values), array_of(s.indices)
    return add_elements(&x, &v, &i)


cdef int add_elements(Array* x, Array* v, Array* i) except -1:
    """x[i] += v"""
    cdef kernel.Places p
    cdef bint done
    check_indices(i, x.layout.shape[0])
    kernel.aim(&p, x, v, 0, 1, i)
    with nogil: done = kernel.add(&p)
    if done or p.count * p.row == 0: return 0
    raise IndexError("GradientSlice: an index is out of range: another thread modified the indices; pass a copy()")


cdef int check_range(GradientSlice s, Py_ssize_t rows) except -1:
    """Raise IndexError if an index is not one of 0 to rows - 1. The user may have written to the indices. During a
    trace, a program checks them at each run."""
    cdef Array a
    if flags().trace != NULL: return trace_range(s, rows)
    a = array_of(s.indices)
    return check_indices(&a, rows)


cdef int check_indices(const Array* a, Py_ssize_t rows) except -1:
    cdef Py_ssize_t i
    cdef int64_t at, stride = a.layout.strides[0]
    for i in range(a.layout.size):
        at = (<int64_t*>a.data)[i * stride]
        if 0 <= at < rows: continue
        last = "" if rows == PY_SSIZE_T_MAX else f", and the gradient has {rows} rows"
        raise IndexError(f"GradientSlice: the index {at} is out of range: indices are at least 0{last}")
    return 0


cdef int check_rows(GradientSlice s, const Layout* like, int dtype, str what) except -1:
    """Raise ValueError or IndexError unless `s` fits a gradient of the shape of `like` and of a dtype. A slice without
    a shape takes it."""
    cdef const Layout* v = s.values.layout
    cdef bint fits = v.ndim == like.ndim and s.values.dtype == dtype
    cdef int d
    for d in range(1, like.ndim if fits else 0): fits = fits and v.shape[d] == like.shape[d]
    if fits and s.layout != NULL: fits = lay.same_shape(s.layout, like)
    if not fits:
        own = f" and shape {s.shape}" if s.layout != NULL else ""
        raise ValueError(f"{what} GradientSlice has {DTYPES[s.values.dtype]} values of shape {s.values.shape}{own}; "
                         f"they do not fit {DTYPES[dtype]} rows of a gradient of shape {lay.shape_tuple(like)}")
    check_range(s, like.shape[0])
    if s.layout == NULL: s.layout = lay.dense_like(like)
    return 0


cdef int put_rows(Leaf leaf, GradientSlice s) except -1:
    """Set the .grad of a variable to `s`."""
    put_grad(leaf, None)
    leaf.rows = s
    return 0 if flags().trace == NULL else trace_put(leaf, s)


# ---- programs --------------------------------------------------------------------------------------------------------

cdef class RowsStep(Step):
    """add_rows(), or check_range() if there is no x, in a program."""
    cdef Array x, v, i
    cdef Py_ssize_t rows

    cdef int run(self) except -1:
        return check_indices(&self.i, self.rows) if self.x.layout == NULL else add_elements(&self.x, &self.v, &self.i)

    cdef int aim(self, Trace t, Array* a, Tensor x) except -1:
        a[0] = address(x)
        self.hold(a.layout)
        return self.point(t, &a.data, x.buffer) if a.layout.size else 0


cdef class CopyStep(Step):
    """Copies contiguous rows."""
    cdef char* source
    cdef char* target
    cdef size_t nbytes

    cdef int run(self) except -1:
        memcpy(self.target, self.source, self.nbytes)
        return 0


cdef int trace_copy(Tensor x, Tensor y, size_t at) except -1:
    """Instead of copy_rows(), during a trace."""
    cdef Trace t = preparing(flags())
    cdef CopyStep step
    if t is None or x.layout.size == 0: return 0
    step = CopyStep.__new__(CopyStep)
    step.take(2, 0)
    step.name, step.source, step.target = "GradientSlice", address(x).data, y.buffer.data + at
    step.nbytes = x.layout.size * itemsize(x.dtype)
    step.point(t, &step.source, x.buffer)
    step.point(t, &step.target, y.buffer)
    return t.emit(step)


cdef int trace_rows(GradientSlice s, Tensor total) except -1:
    """Instead of add_rows(), during a trace."""
    cdef Trace t = <Trace>flags().trace
    cdef RowsStep step
    ready(total)
    t.before_write(total.buffer)
    if t.purpose == PLANNING: return 0
    step = RowsStep.__new__(RowsStep)
    step.take(3, 3)
    step.name = "GradientSlice"
    step.aim(t, &step.x, total)
    step.aim(t, &step.v, s.values)
    step.aim(t, &step.i, s.indices)
    return t.emit(step)


cdef int trace_range(GradientSlice s, Py_ssize_t rows) except -1:
    """Instead of check_range(), during a trace."""
    cdef Trace t = preparing(flags())
    cdef RowsStep step
    if t is None or s.indices.layout.size == 0: return 0
    step = RowsStep.__new__(RowsStep)
    step.take(1, 1)
    step.name, step.rows = "GradientSlice", rows
    step.aim(t, &step.i, s.indices)
    return t.emit(step)


cdef class PutStep(Step):
    """Copies indices and values to the GradientSlice in the .grad of a variable."""
    cdef Leaf leaf
    cdef GradientSlice own          # in the memory of the program
    cdef Array i, v

    cdef int run(self) except -1:
        cdef GradientSlice s = self.own
        cdef bint mine = Py_REFCNT(<PyObject*>s) <= 2 + (self.leaf.rows is s)    # `own`, `s` and .grad refer to it
        if not mine or not held_alone(s.indices) or not held_alone(s.values): s = self.own = s.copy()
        memcpy(s.indices.buffer.data, self.i.data, s.indices.layout.size * sizeof(int64_t))
        memcpy(s.values.buffer.data, self.v.data, s.values.layout.size * itemsize(s.values.dtype))
        s.indices.buffer.version += 1
        s.values.buffer.version += 1
        if self.leaf.rows is not s: put_rows(self.leaf, s)
        return 0


cdef int trace_put(Leaf leaf, GradientSlice s) except -1:
    """After put_rows(), during a trace: a program puts the rows into .grad at each run."""
    cdef Flags* f = flags()
    cdef Trace t = preparing(f)
    cdef PutStep step
    cdef Tensor indices
    if t is None or not t.has_outside(leaf): return 0
    if not s.indices.layout.dense or not s.values.layout.dense:
        s = new_slice(dense_copy(s.indices), dense_copy(s.values), s.layout)
    step = PutStep.__new__(PutStep)
    step.take(2, 2)
    step.name, step.leaf, step.i, step.v = ".grad", t.outside(leaf), address(s.indices), address(s.values)
    step.hold(step.i.layout)
    step.hold(step.v.layout)
    if s.values.layout.size:
        step.point(t, &step.i.data, s.indices.buffer)
        step.point(t, &step.v.data, s.values.buffer)
    f.trace = NULL                                  # (so that this memory is real, and not checked at each run)
    try:
        indices = computed(lay.dense_like(s.indices.layout), INT64, OTHER)
        memset(indices.buffer.data, 0, indices.buffer.nbytes)
        step.own = new_slice(indices, computed(lay.dense_like(s.values.layout), s.values.dtype, OTHER), s.layout)
    finally: f.trace = <void*>t
    t.empty_rows.pop(<size_t><void*>leaf, None)
    if s.indices.layout.size == 0:                  # (emitted by settle(), unless a gradient follows)
        t.empty_rows[<size_t><void*>leaf] = step
        return 0
    t.with_rows.add(<size_t><void*>leaf)
    return t.emit(step)
