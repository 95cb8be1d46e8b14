"""NumPy arrays and Python values to and from tensors: sharing memory, copying, reading, printing.

A Lease shares the memory of a tensor. It implements the buffer protocol and holds the buffer while an array uses it."""

import math

import numpy as np

from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS, PyBUF_C_CONTIGUOUS, PyBUF_F_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDED_RO,
    PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.tensor cimport Tensor, array_of, data_of, is_result, is_tracked, is_variable
from cygrad.core.graph.lifts cimport TANGENTS, Lift, is_lifted, lift_below
from cygrad.core.store.buffer cimport EXTERNAL, OTHER, READONLY, Buffer, drop, hold, VIRTUAL
from cygrad.core.store.external cimport adopt_array, ranges_meet
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.trace cimport refuse_trace, traces
from cygrad.core.graph.construct cimport copy_plain, fresh, new_tensor
from cygrad.core.graph.unreadable cimport check_readable
from cygrad.kernels.array cimport (
    BOOL, INT16, INT32, INT64, INT8, MAX_NDIM, UINT16, UINT32, UINT64, UINT8, Array, Layout, dtype_format, is_floating,
    is_real, itemsize,
)

from cygrad.core.dtypes import DTYPES, dtype_number, read_dtype
from cygrad.core.late_bound import bind, bind_methods
from cygrad.kernels.by_dtype cimport number



# ---- from tensors ----------------------------------------------------------------------------------------------------

cdef class Lease:
    """Memory that a NumPy array uses. The buffer, if there is one, is held until the array is freed."""
    cdef Buffer* buffer
    cdef char* data
    cdef int ndim, dtype
    cdef bint writable, in_c, in_fortran            # the orders in which it is contiguous
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t strides[MAX_NDIM]

    def __dealloc__(self):
        if self.buffer == NULL: return
        self.buffer.leases -= 1
        drop(self.buffer)

    def __getbuffer__(self, Py_buffer* view, int wanted):
        fill_view(self, view, wanted)


cdef int fill_view(Lease lease, Py_buffer* view, int wanted) except -1:
    """Fill `view` as the buffer protocol's flags `wanted` require."""
    cdef bint plain = (wanted & PyBUF_STRIDES) != PyBUF_STRIDES
    if wanted & PyBUF_WRITABLE and not lease.writable:
        raise BufferError("this tensor is read-only, because it is a variable, belongs to a graph or has read-only "
                          "memory; pass its detach() or copy()")
    if ((plain or (wanted & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) and not lease.in_c
            or (wanted & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS and not lease.in_fortran
            or (wanted & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS and not (lease.in_c or lease.in_fortran)):
        raise BufferError("this tensor is not contiguous in the requested order; pass its copy()")
    view.obj = lease
    view.buf = lease.data
    view.itemsize = itemsize(lease.dtype)
    view.len = view.itemsize
    for d in range(lease.ndim): view.len *= lease.shape[d]
    if lease.data == NULL and view.len:
        raise BufferError("this Lease has no memory, because it was not made for a tensor; call numpy() of a tensor")
    view.readonly = not lease.writable
    view.ndim = lease.ndim if wanted & PyBUF_ND else 1          # without PyBUF_ND the memory is flat
    view.format = NULL
    if wanted & PyBUF_FORMAT: view.format = <char*>dtype_format(lease.dtype)
    view.shape = lease.shape if wanted & PyBUF_ND else NULL
    view.strides = NULL if plain else lease.strides
    view.suboffsets = NULL
    view.internal = NULL


cdef Lease lease_of(const Array* a, Buffer* buffer, bint writable):
    """A Lease of the memory of `a`, which holds `buffer` unless that is NULL."""
    cdef Lease lease = Lease.__new__(Lease)
    cdef Py_ssize_t step = 1
    lease.data = a.data
    lease.ndim = a.layout.ndim
    lease.dtype = a.dtype
    lease.writable = writable
    lease.in_c = lease.in_fortran = a.layout.dense
    for d in range(lease.ndim):
        lease.shape[d] = a.layout.shape[d]
        lease.strides[d] = a.layout.strides[d] * itemsize(a.dtype)
    if a.layout.size:
        lease.in_fortran = True
        for d in range(lease.ndim):
            if lease.shape[d] != 1 and a.layout.strides[d] != step: lease.in_fortran = False
            step *= lease.shape[d]
    if buffer != NULL:
        hold(buffer)
        buffer.leases += 1
        lease.buffer = buffer
    return lease


cdef object lend(const Array* a, Buffer* buffer, bint writable):
    """A NumPy array on the memory of `a`. The array holds `buffer`; if that is NULL, the array must not outlive the
    caller's call."""
    array = np.asarray(lease_of(a, buffer, writable))
    if array.dtype.char == "O": raise MemoryError("no memory for an array over a tensor")   # NumPy hides the error
    return array


cdef int lend_tensor(tensor_, Py_buffer* view, int wanted) except -1:
    """The buffer protocol of a tensor, under the rules of numpy()."""
    cdef Tensor t = <Tensor>tensor_
    cdef Array a
    check_readable(t)
    check_lendable(t, "the buffer")
    a = array_of(t)
    return fill_view(lease_of(&a, t.buffer, writable(t)), view, wanted)


cdef int check_capture() except -1:
    """Raise RuntimeError if Python reads a value during a trace, which computes none."""
    cdef Flags* f = flags()
    if f.node == NULL or not traces(): return refuse_trace("reading the values of a tensor")
    return refuse_trace(f"the gradient of {(<object>f.node).name()}, which reads the values of tensors,")


MOST_SHOWN = 300            # values of a tensor in a notebook
LOST = "the gradients would be lost silently"       # in the message of check_lendable()


cdef int check_lendable(Tensor t, str caller) except -1:
    """Raise RuntimeError if gradients through `t` or its tangent would be lost silently, because NumPy and other
    libraries do not record. `caller` is for the error."""
    cdef Flags* f = flags()
    cdef Lift lift
    refuse_trace(caller)
    if is_tracked(t) and f.recording:
        raise RuntimeError(f"{caller} of a tensor of shape {t.shape} that gradients flow through, while recording: "
                           f"{LOST}; use detach() first, or pause() the recording")
    if not f.lifting or not t.lifted: return 0
    lift = lift_below(t, f.lifting)
    if lift is not None and lift.level.kind == TANGENTS:
        raise RuntimeError(f"{caller} of a tensor of shape {t.shape} that has a tangent, inside of func.jvp: the "
                           f"tangent would be lost silently; use detach() first")


cdef inline bint writable(Tensor t) except -1:
    return not is_tracked(t) and not t.buffer.flags & READONLY and lay.repeated(t.layout) < 0


cdef object window(Tensor t, bint writable):
    """A NumPy array on the memory of `t`, for immediate use."""
    cdef Array a
    if not writable: check_capture()
    a.data, a.layout, a.dtype = data_of(t), t.layout, t.dtype
    return lend(&a, t.buffer, writable)


cdef bint share_memory(Tensor a, Tensor b) except -1:
    """Whether the tensors have an element in common. Two parts of a buffer may be disjoint, and two buffers of external
    memory may overlap."""
    if a.buffer != b.buffer and not (a.buffer.flags | b.buffer.flags) & EXTERNAL: return False
    if (a.buffer.flags | b.buffer.flags) & VIRTUAL: return a.buffer == b.buffer     # (perhaps two parts of it)
    cdef Array x = array_of(a), y = array_of(b)
    return ranges_meet(&x, &y) and np.shares_memory(window(a, False), window(b, False))


def numpy(Tensor self) -> npt.NDArray[Any]:
    """A NumPy array that shares this tensor's memory. It is read-only for a variable, a tensor in a graph, or a
    broadcast tensor that repeats its elements. While recording, a tensor that gradients flow through raises
    RuntimeError, because the results of NumPy have no gradient; use detach() if that is intended."""
    check_lendable(self, "numpy()")
    return window(self, writable(self))


def array(Tensor self, dtype=None, copy=None):
    a = numpy(self)
    if dtype is not None: dtype = read_dtype(dtype)
    if copy or dtype is not None and dtype != a.dtype:
        if copy is False: raise ValueError(f"a {a.dtype} tensor cannot become {dtype} without a copy")
        return a.astype(a.dtype if dtype is None else dtype)
    return a


cdef object read(const char* p, int dtype):
    if is_real(dtype): return number(dtype, p, 0)
    if dtype == BOOL: return p[0] != 0
    if dtype == INT64: return (<const int64_t*>p)[0]
    if dtype == INT32: return (<const int32_t*>p)[0]
    if dtype == INT16: return (<const int16_t*>p)[0]
    if dtype == INT8: return (<const int8_t*>p)[0]
    if dtype == UINT64: return (<const uint64_t*>p)[0]
    if dtype == UINT32: return (<const uint32_t*>p)[0]
    if dtype == UINT16: return (<const uint16_t*>p)[0]
    if dtype == UINT8: return (<const uint8_t*>p)[0]
    return np.frombuffer(p[:itemsize(dtype)], DTYPES[dtype])[0].item()      # a dtype that is only stored


def item(Tensor self) -> int | float:
    """The only element as a Python number. Raises ValueError unless the tensor has exactly one element."""
    if self.layout.size != 1:
        raise ValueError(f"item() takes a tensor of one element; this one has shape {self.shape}")
    check_capture()
    return read(data_of(self), self.dtype)


def truth(Tensor self):
    if self.layout.size != 1:
        raise ValueError(f"the truth value of a tensor of shape {self.shape} is ambiguous; use any() or all()")
    return bool(item(self))

def index(Tensor self):
    if is_floating(self.dtype):
        raise TypeError(f"a {DTYPES[self.dtype]} tensor cannot be an index; only integer tensors can")
    if self.layout.size != 1:
        raise TypeError(f"a tensor of shape {self.shape} cannot be an index; it must have one element")
    return int(item(self))

def tolist(Tensor self) -> Any:
    """The elements as (nested lists of) Python numbers."""
    return window(self, False).tolist()

def as_bytes(Tensor self):
    """The bytes of the elements in row-major order."""
    return window(self, False).tobytes()

def text(Tensor self):
    cdef Array a
    if self.buffer.flags & VIRTUAL: return f"tensor(no values, shape={self.shape}, dtype={DTYPES[self.dtype]})"
    a = array_of(self)                              # (without check_capture(): printing is allowed during a trace)
    body = np.array2string(lend(&a, self.buffer, False), separator=", ", prefix="tensor(")
    if self.layout.size == 0: body = f"[], shape={self.shape}"
    shown = "" if self.dtype in (default_dtype(), BOOL, INT64) and self.layout.size else f", dtype={DTYPES[self.dtype]}"
    if is_variable(self): shown += ", requires_grad=True"
    elif is_result(self): shown += f", grad_fn=<{self._node.name()}>"
    return f"tensor({body}{shown})"

def as_html(Tensor self):
    """The tensor for Jupyter: its shape, dtype and bytes, and some of its values, as NumPy prints them. There are no
    values if it has none, in a capture or inside of func.vmap, and if it has a tangent."""
    from cygrad.core.notebook import block, titled

    cdef Array a
    cdef Flags* f = flags()
    cdef str facts = f"{self.shape} {DTYPES[self.dtype]}, {self.nbytes:,} bytes"
    if is_variable(self): facts += ", requires_grad=True"
    elif is_result(self): facts += f", grad_fn=<{self._node.name()}>"
    if self.buffer.flags & VIRTUAL: return titled("tensor", f"{facts}, no values")
    if is_lifted(self, f.lifting): return titled("tensor", f"{facts}, with a tangent")
    a = array_of(self)
    values, first = lend(&a, self.buffer, False), 0
    while math.prod([min(n, 6) for n in values.shape]) > MOST_SHOWN:    # NumPy shortens no dimension of less than 7
        values, first = values[0], first + 1
    if first: facts += f"; its part [{', '.join(['0'] * first)}]:"
    return titled("tensor", facts, block(np.array2string(values, threshold=100, separator=", ")))

def formatted(Tensor self, str spec not None):
    return format(item(self) if self.layout.ndim == 0 and spec else text(self), spec)


# ---- to tensors ------------------------------------------------------------------------------------------------------

cdef Tensor from_array(a, bint copy):
    """A tensor from a NumPy array whose dtype cygrad has. It shares the array's memory if possible and not `copy`."""
    cdef int dtype = dtype_number(a.dtype), d
    cdef int size = itemsize(dtype)
    cdef Layout* l
    cdef Array whole
    cdef Py_buffer view
    if a.ndim > MAX_NDIM:
        raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, got an array of shape {a.shape}")
    if copy or not a.flags.aligned or any([s % size for s in a.strides]):
        return copy_in(a, dtype)
    l = lay.blank(a.ndim)
    for d in range(l.ndim):
        l.shape[d] = a.shape[d]
        l.strides[d] = a.strides[d] // size
    lay.finish(l)
    try:
        PyObject_GetBuffer(a, &view, PyBUF_STRIDED_RO)          # __array_interface__ crashes when out of memory
        whole.data = <char*>view.buf
        PyBuffer_Release(&view)
        whole.layout, whole.dtype = l, dtype
        return new_tensor(adopt_array(&whole, a, not a.flags.writeable), lay.incref(l), dtype)
    finally:
        lay.decref(l)


cdef Tensor copy_in(a, int dtype):
    cdef Tensor t = fresh(lay.from_shape(a.shape), dtype, OTHER)
    if t.layout.size == 0: return t
    if a.dtype == DTYPES[dtype]: window(t, True)[...] = a
    else:
        with np.errstate(all="ignore"): window(t, True)[...] = a
    return t


cdef object cast(a, dtype):
    """Cast an array. Overflow raises no warning, as in a kernel, whatever np.seterr was set to."""
    if a.dtype == dtype: return a
    with np.errstate(all="ignore"): return a.astype(dtype)


cdef object as_array(data, dtype):
    """`data` as a NumPy array with a dtype that cygrad has. Python floats take the default dtype."""
    if isinstance(data, (np.ndarray, np.generic)):
        a = np.asarray(data)
        if not a.dtype.isnative: a = a.astype(a.dtype.newbyteorder("="))
    elif hasattr(data, "__dlpack__") and not isinstance(data, Tensor):
        a = np.from_dlpack(data)
    elif PyObject_CheckBuffer(data):
        try:
            a = np.asarray(memoryview(data))
        except (ValueError, TypeError, NotImplementedError, RuntimeError) as e:
            check_capture()                         # during a capture its error is more helpful
            raise TypeError(f"a tensor holds numbers, but this {type(data).__name__} does not: {e}") from None
    elif hasattr(data, "__array__"):
        a = np.asarray(data)
    else:
        try:
            a = np.array(data)
        except (ValueError, TypeError) as e:
            raise type(e)(f"the data is not a rectangular array of numbers: {e}") from None
        except RuntimeError as e:
            if LOST not in str(e): raise
            nested = any([isinstance(x, (list, tuple)) for x in data])
            raise RuntimeError(f"a list of tensors that gradients flow through, while recording: {LOST}; use detach() "
                               f"first, or call cygrad.stack(xs){' with each list' * nested}, which is "
                               f"recorded") from None
        if dtype is None and (a.dtype == np.float64 or a.size == 0): a = cast(a, DTYPES[default_dtype()])
    if a.dtype.kind not in "biuf":
        raise TypeError(f"a tensor holds numbers, but this {type(data).__name__} has dtype {a.dtype}; cygrad has "
                        f"{', '.join(map(str, DTYPES))}")
    if dtype is not None: a = cast(a, DTYPES[dtype_number(dtype)])
    dtype_number(a.dtype)
    return a


def asarray(data: Data, dtype: npt.DTypeLike | None = None) -> Tensor:
    """A tensor of `data`. A tensor is returned unchanged. The memory of a NumPy array, or of any object with DLPack or
    the buffer protocol, is shared if its dtype, alignment and strides allow, else copied. Lists and numbers are copied.
    Raises TypeError for data that is not numeric."""
    if isinstance(data, Tensor):
        check_readable(data)
        return data if dtype is None or dtype_number(dtype) == (<Tensor>data).dtype else data.astype(dtype)
    if dtype is None and not isinstance(data, (np.ndarray, np.generic)) and hasattr(data, "__dlpack__"):
        return late_bound.from_dlpack(data)
    return from_array(as_array(data, dtype), False)


def tensor(data: Data, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`: a list, a number, an array or another tensor. Python floats get the default
    dtype, arrays keep theirs. With requires_grad it is a variable that accumulates its .grad, which is None at first.
    """
    cdef Tensor t
    if isinstance(data, Tensor):
        check_readable(data)
        check_capture()
        t = copy_plain(<Tensor>data) if dtype is None or dtype_number(dtype) == (<Tensor>data).dtype else \
            copy_in(window(<Tensor>data, False), dtype_number(dtype))
    else:
        a = as_array(data, dtype)
        t = copy_in(a, dtype_number(a.dtype))
    return t.requires_grad_() if requires_grad else t


late_bound.lend_buffer = lend_tensor
bind(asarray=asarray, repr=text, truth=truth, index=index)
bind_methods(Tensor, numpy=numpy, __array__=array, item=item, tolist=tolist, __format__=formatted, __bytes__=as_bytes,
             _repr_html_=as_html)
