"""What a traced program calls, as a list, from which a net is made (cygrad/graph/capture.py).

With Trace.calls, a trace lists what it traces: tuples that begin with a kind. A tensor is an item: (address, dtype,
shape, strides, place in the graph or None, the tensor itself if its memory is real, whether the program has made it,
the address of its buffer, whether it is a gradient, whether it is a variable). The strides of dimensions of size 1 are
0, because they do not matter."""

from cygrad.core.graph.tensor cimport node_of
from cygrad.core.graph.trace cimport Trace, is_outside, trace_of
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport VIRTUAL
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Layout, itemsize


cdef tuple item_of(const Array* a, Node node, int output_nr, Tensor t, bint made, const Buffer* b):
    """The item of an array that is output `output_nr` of a node, or has none."""
    cdef const Layout* l = a.layout
    cdef int d
    place = None if node is None else (<size_t><void*>node, output_nr)
    strides = tuple([l.strides[d] if l.shape[d] != 1 else 0 for d in range(l.ndim)])
    return (<size_t>a.data, a.dtype, lay.shape_tuple(l), strides, place, t, made, <size_t>b.data, b.gradients > 0,
            node is not None and node.op is None)


cdef tuple tensor_item(Tensor t):
    cdef Array a
    cdef Node node = node_of(t)
    a.data, a.layout, a.dtype = t.buffer.data + t.layout.offset * itemsize(t.dtype), t.layout, t.dtype
    return item_of(&a, node, t._output_nr, None if t.buffer.flags & VIRTUAL else t, not is_outside(t), t.buffer)


cdef list calls_of(const Flags* f):
    """The list of the thread's trace, or None if it makes none."""
    cdef Trace t = trace_of(f)
    return None if t is None else t.calls


cdef int note(str kind, tuple what) except -1:
    """Add to the list."""
    cdef list calls = calls_of(flags())
    if calls is not None: calls.append((kind, *what))


cdef bint in_train_mode(const Flags* f) noexcept:
    """Whether the thread is in train mode. All that depends on the mode asks here, so that a program knows it."""
    cdef Trace t = trace_of(f)
    if t is not None and t.around is not None and t.around.modes == 0: t.around.training = f.training != 0
    return f.training


def asked():
    """is_training() while a program is traced."""
    return bool(in_train_mode(flags()))
