"""Makes tensors: on an existing buffer, as a view, on new memory, or as a copy."""

from cygrad.core.store cimport layout as lay
from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.tensor cimport fill, shell, sole
from cygrad.core.graph.steps cimport READS, WRITES, Arrays, call, copy_elements, put
from cygrad.core.graph.trace cimport raise_version, trace_of, traces
from cygrad.core.store.buffer cimport OTHER, READONLY, VIRTUAL, WATCHED, ZEROS, allocate_for, drop, hold, zeros
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport itemsize


cdef Tensor new_tensor(Buffer* buffer, Layout* layout, int dtype):
    """A tensor on `buffer`. It takes over one holder of `buffer` and one reference to `layout`, also after an error."""
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
    """Another tensor on the buffer of `x`. It takes over one reference to `layout`."""
    hold(x.buffer)
    return new_tensor(x.buffer, layout, x.dtype)


cdef Tensor computed(Layout* layout, int dtype, int category):
    """A tensor on new, uninitialised memory that a step of a program fills: virtual memory during a trace. It takes
    over one reference to `layout`, also after an error."""
    cdef Buffer* b
    try: b = allocate_for(layout, dtype, category)
    except:
        lay.decref(layout)
        raise
    return new_tensor(b, layout, dtype)


cdef Tensor fresh(Layout* layout, int dtype, int category):
    """The same for memory that the caller itself fills. During a trace it is a constant of the program."""
    cdef Flags* f = flags()
    cdef Tensor t
    if not traces(): return computed(layout, dtype, category)
    f.values += 1
    try: t = computed(layout, dtype, category)
    finally: f.values -= 1
    trace_of(f).constant_made(t)
    return t


cdef Tensor zeros_like(Tensor x, int category):
    """Zeros of the shape and dtype of `x`. Their memory is allocated when they are first read or written."""
    cdef Layout* layout = lay.dense_like(x.layout)
    cdef Buffer* b
    if layout.size == 0: return computed(layout, x.dtype, category)
    try: b = zeros(layout.size * itemsize(x.dtype), category)
    except:
        lay.decref(layout)
        raise
    return new_tensor(b, layout, x.dtype)


cdef bint release_as_zeros(Tensor t) noexcept:
    """Turn `t` into zeros without memory, if no other tensor or slot uses its buffer. Otherwise, or if there is no
    memory for a header, return False and change nothing."""
    cdef Buffer* old = t.buffer
    cdef Buffer* b
    if old.flags & ZEROS:
        raise_version(flags(), old)
        return True
    if not sole(old, t.layout, t.layout, t.dtype) or t.layout.size == 0: return False
    if old.saved or old.parameters or old.optimizer or old.leases or old.flags & (READONLY | WATCHED): return False
    try: b = zeros(old.nbytes, OTHER)
    except MemoryError: return False
    b.version, b.rewrites, b.flags = old.version + 1, old.rewrites, (old.flags & ~VIRTUAL) | ZEROS
    b.gradients, b.category = old.gradients, old.category
    t.buffer = b
    drop(old)
    return True


cdef Tensor copy_plain(Tensor t):
    """A dense copy without a graph."""
    cdef Tensor y = computed(lay.dense_like(t.layout), t.dtype, OTHER)
    cdef Arrays a
    a.n = 0
    put(&a, t, READS)
    put(&a, y, WRITES)
    call(flags(), "copy", copy_elements, &a, 0, NULL, 0, None)
    return y
