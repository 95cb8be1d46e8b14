"""What a run of a program asks of its arguments, and of gradients that may have been assigned since it was made."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cygrad.core.graph.tensor cimport array_of, data_of, is_tracked, ready
from cygrad.core.graph.trace cimport GRADIENT, TENSOR
from cygrad.core.store.buffer cimport EXTERNAL, ZEROS
from cygrad.core.store.external cimport ranges_meet
from cygrad.kernels.array cimport Array, itemsize

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)


cdef bint has_shape(const Layout* l, tuple shape) except -1:
    """Whether `l` has this shape, without a tuple of it."""
    cdef int d
    if l.ndim != len(shape): return False
    for d in range(l.ndim):
        if l.shape[d] != <Py_ssize_t>shape[d]: return False
    return True


cdef int check_gradient(Storage s) except -1:
    """Raise RuntimeError if a step cannot write to the gradient of a variable."""
    cdef Tensor g = s.leaf.grad
    if s.leaf.rows is not None:
        raise RuntimeError(f"run: the gradient of a variable of shape {s.tensor.shape} is a GradientSlice; assign None "
                           f"to its .grad")
    if g is not None and not is_tracked(g) and not g.layout.dense:
        raise RuntimeError(f"run: the .grad of a variable of shape {s.tensor.shape} is not contiguous; assign a copy()")
    return 0


cdef bint meet(Tensor x, Tensor y) except -1:
    """Whether the memory of two tensors overlaps."""
    cdef Array a, b
    if x.buffer != y.buffer and not (x.buffer.flags | y.buffer.flags) & EXTERNAL: return False
    if y.buffer.flags & ZEROS: return False
    a, b = array_of(x), array_of(y)
    return ranges_meet(&a, &b)


cdef dict gradients_of(ProgramSchedule schedule):
    """The buffers of gradients as the steps were made, by storage; 0 for None."""
    cdef Storage s
    return {s.number: <size_t>s.leaf.grad.buffer if s.leaf.grad is not None else 0 for s in schedule.storages
            if s.kind == GRADIENT}


cdef bint was_assigned(dict gradients, Storage s) except -1:
    """Whether a gradient is in another buffer than in `gradients`, of gradients_of(), and than in the last run."""
    cdef Tensor g = s.leaf.grad
    if g is not None and s.address != NULL and s.address == address_of(g): return False
    return gradients[s.number] != (<size_t>g.buffer if g is not None else 0)


cdef int check_chained(Storage s, tuple storages) except -1:
    """Raise RuntimeError if a gradient that was assigned shares memory with another one or a tensor outside: chains
    took them to be apart."""
    cdef Tensor g = s.leaf.grad
    cdef Storage x
    for x in storages if g is not None else ():
        if x.kind == TENSOR: other = x.tensor
        else: other = x.leaf.grad if x.kind == GRADIENT and x is not s else None
        if other is not None and meet(g, other):
            raise RuntimeError(f"run: the .grad of a variable of shape {s.tensor.shape} shares the memory of "
                               f"{'a tensor outside' if x.kind == TENSOR else 'another .grad'} that the program uses; "
                               f"assign a copy()")
    return 0


cdef int check_move(Storage s, const Spot* spots, int n) except -1:
    """Raise RuntimeError if a gradient was assigned and a step uses memory beside it, in the buffer that it was in."""
    cdef size_t nbytes = max(s.tensor.layout.size * itemsize(s.tensor.dtype), <Py_ssize_t>1)    # (one may be empty)
    for k in range(n):
        if spots[k].offset < nbytes: continue
        raise RuntimeError(f"run: a step uses memory beside the .grad of a variable of shape {s.tensor.shape}, which "
                           f"was a part of a larger tensor when the program was made; assign that again, or make "
                           f"another program")
    return 0


cdef int fill_zeros(Tensor g) except -1:
    """Fill a gradient that zero_grad() has set to zeros: the steps leave the old values there until they write it."""
    ready(g)
    memset(data_of(g), 0, g.layout.size * itemsize(g.dtype))
    g.buffer.version += 1
    return 0


cdef bint has_others(Tensor g) noexcept:
    """Whether others than a variable and the caller refer to its .grad, or to the memory of that."""
    return Py_REFCNT(<PyObject*>g) > 2 or g.buffer.holders > 1 or g.buffer.flags & EXTERNAL != 0
