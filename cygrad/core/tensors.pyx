"""How tensors come into being: over memory that is there, as another view of it, over new memory, as a copy."""

from cygrad.core cimport layout as lay
from cygrad.core.graph cimport array_of, fill, note_made, shell
from cygrad.core.memory cimport OTHER, allocate, drop, hold
from cygrad.core.modes cimport flags
from cygrad.kernels.array cimport Array, itemsize
from cygrad.kernels.driver cimport gather


cdef Tensor new_tensor(Buffer* buffer, Layout* layout, int dtype):
    """A tensor that takes over one hold on `buffer` and one count on `layout`, also when it raises."""
    cdef Tensor t
    try: t = shell()
    except:
        drop(buffer)
        lay.forget(layout)
        raise
    fill(t, buffer, layout, dtype)
    if flags().scope != NULL: note_made(t)
    return t


cdef Tensor view_of(Tensor x, Layout* layout):
    """Another tensor on the buffer of `x`; takes over one count on `layout`."""
    hold(x.buffer)
    return new_tensor(x.buffer, layout, x.dtype)


cdef Tensor fresh(Layout* layout, int dtype, int category):
    """A tensor over new memory, not written yet; takes over one count on `layout`, also when it raises."""
    cdef Buffer* b
    try: b = allocate(layout.size * itemsize(dtype), category)
    except:
        lay.forget(layout)
        raise
    return new_tensor(b, layout, dtype)


cdef Tensor copy_plain(Tensor t):
    """A dense copy without a graph."""
    cdef Tensor y = fresh(lay.dense_like(t.layout), t.dtype, OTHER)
    cdef Array a = array_of(t)
    gather(y.buffer.data, &a, 0, t.layout.size)
    return y
