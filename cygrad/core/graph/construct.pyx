"""How tensors come into being: over memory that is there, as another view of it, over new memory, as a copy."""

from cygrad.core.store cimport layout as lay
from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.tensor cimport array_of, fill, shell, sole
from cygrad.core.store.buffer cimport OTHER, READONLY, WATCHED, ZEROS, allocate_for, drop, hold, zeros
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport Array, itemsize
from cygrad.kernels.driver cimport gather


cdef Tensor new_tensor(Buffer* buffer, Layout* layout, int dtype):
    """A tensor that takes over one hold on `buffer` and one count on `layout`, also when it raises."""
    cdef Tensor t
    try: t = shell()
    except:
        drop(buffer)
        lay.decref(layout)
        raise
    fill(t, buffer, layout, dtype)
    if flags().scope != NULL: late_bound.tensor_made(t)
    return t


cdef Tensor view_of(Tensor x, Layout* layout):
    """Another tensor on the buffer of `x`; takes over one count on `layout`."""
    hold(x.buffer)
    return new_tensor(x.buffer, layout, x.dtype)


cdef Tensor constant(Tensor t):
    """`t`, which no operation made: a capture notes it, since a replay must find its values again."""
    cdef Flags* f = flags()
    if f.capture != NULL and f.op == NULL: late_bound.constant_made(t)
    return t


cdef Tensor fresh(Layout* layout, int dtype, int category):
    """A tensor over new memory, not written yet; takes over one count on `layout`, also when it raises."""
    cdef Buffer* b
    try: b = allocate_for(layout, dtype, category)
    except:
        lay.decref(layout)
        raise
    return constant(new_tensor(b, layout, dtype))


cdef Tensor zeros_like(Tensor x, int category):
    """Zeros of the shape and dtype of `x`, which have no memory until they are read or written."""
    cdef Layout* layout = lay.dense_like(x.layout)
    cdef Buffer* b
    if layout.size == 0: return fresh(layout, x.dtype, category)
    try: b = zeros(layout.size * itemsize(x.dtype), category)
    except:
        lay.decref(layout)
        raise
    return constant(new_tensor(b, layout, x.dtype))


cdef bint forget_values(Tensor t) noexcept:
    """Let `t` be zeros without memory, if its own memory is that of nobody else; False: it is, or there is no memory
    for a header, and nothing has changed."""
    cdef Buffer* old = t.buffer
    cdef Buffer* b
    if old.flags & ZEROS:
        old.version += 1
        return True
    if not sole(old, t.layout, t.layout, t.dtype) or t.layout.size == 0: return False
    if old.saved or old.parameters or old.optimizer or old.leases or old.flags & (READONLY | WATCHED): return False
    try: b = zeros(old.nbytes, OTHER)
    except MemoryError: return False
    b.version, b.rewrites, b.flags = old.version + 1, old.rewrites, old.flags | ZEROS
    b.gradients, b.category = old.gradients, old.category
    t.buffer = b
    drop(old)
    return True


cdef Tensor copy_plain(Tensor t):
    """A dense copy without a graph."""
    cdef Tensor y = fresh(lay.dense_like(t.layout), t.dtype, OTHER)
    cdef Array a = array_of(t)
    gather(y.buffer.data, &a, 0, t.layout.size)
    return y
