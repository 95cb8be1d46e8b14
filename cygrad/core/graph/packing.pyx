"""saved_tensors_hooks: a slot holds the object that `pack` returned, and, while backward runs the node, the tensor that
`unpack` returns for it. A Watch detects writes to the packed memory for as long as that memory lives. The packed object
may be a copy, but after such a write the gradient would no longer be the gradient of the program."""

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.provenance cimport raise_rewritten_at
from cygrad.core.graph.tensor cimport PACKS, Node, Tensor, ready, slots_of
from cygrad.core.graph.trace cimport was_rewritten
from cygrad.core.store.buffer cimport WATCHED, Buffer, hold
from cygrad.core.thread_state cimport Flags
from cygrad.core.graph.slots cimport OWN, Slot, buffer_in, object_in, restore_buffer, save_object
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.graph.construct cimport copy_plain, new_tensor

from cygrad.core.dtypes import DTYPES


cdef class Watch:
    """A weak reference to a buffer: NULL once the buffer is released."""
    cdef Buffer* buffer


cdef dict watches = {}          # address -> Watch, of buffers that have the flag WATCHED


cdef Watch watch(Buffer* b):
    cdef Watch w
    if b.flags & WATCHED: return watches[<size_t>b]
    w = Watch.__new__(Watch)
    watches[<size_t>b] = w
    w.buffer = b
    b.flags |= WATCHED
    return w


cdef void unwatch(void* released) noexcept:
    cdef Buffer* b = <Buffer*>released
    cdef Watch w
    try:
        w = <Watch>watches.pop(<size_t>b)
        w.buffer = NULL
    except MemoryError:                             # no memory for the key: search for the buffer
        for w in watches.values():
            if w.buffer == b: w.buffer = NULL


cdef int pack(Node node, Flags* f) except -1:
    """Pass every tensor that `node` saves to the thread's hooks."""
    cdef tuple hooks = <tuple>f.pack
    cdef Slot* s = slots_of(node)
    cdef Buffer* b
    cdef int recording = f.recording, k
    cdef void* around = f.pack
    expect_cycles()                                 # the objects that hooks return may refer to the graph
    f.recording, f.pack = False, NULL               # a hook's own operations are neither recorded nor packed
    try:
        for k in range(node.n_slots):
            b = buffer_in(&s[k])
            if b == NULL: continue
            hold(b)
            t = new_tensor(b, lay.incref(s[k].layout), s[k].dtype)
            (<Tensor>t).detached = True
            entry = (hooks[0](t), hooks[1], watch(b))
            t = None
            save_object(&s[k], entry)
            node.flags |= PACKS
    finally:
        f.recording, f.pack = recording, around
    return 0


cdef int check_packed(Node node, Slot* s) except -1:
    """Raise InplaceError if the packed memory still lives and has been written."""
    cdef Watch w
    if object_in(s) == NULL: return 0
    w = (<tuple>object_in(s))[2]
    if w.buffer == NULL: return 0
    return raise_rewritten_at(node, s.layout, s.version, w.buffer) if was_rewritten(node, s, w.buffer) else 0


cdef list unpack(Node node, Flags* f):
    """Restore tensors in the slots of `node`. Returns the packed objects for repack()."""
    cdef Slot* s = slots_of(node)
    cdef int recording = f.recording, k
    cdef void* around = f.pack
    cdef list out = []
    cdef Tensor t
    f.recording, f.pack = False, NULL
    try:
        for k in range(node.n_slots):
            if object_in(&s[k]) == NULL: continue
            check_packed(node, &s[k])
            entry = <tuple>object_in(&s[k])
            value = entry[1](entry[0])
            if not isinstance(value, Tensor):
                raise TypeError(f"saved_tensors_hooks: unpack returned {type(value).__name__}; it must return the "
                                f"tensor that was passed to pack")
            t = <Tensor>value
            if not lay.same_shape(t.layout, s[k].layout) or t.dtype != s[k].dtype:
                raise ValueError(
                    f"saved_tensors_hooks: unpack returned a {DTYPES[t.dtype]} tensor of shape {t.shape}; pack "
                    f"got a {DTYPES[s[k].dtype]} tensor of shape {lay.shape_tuple(s[k].layout)}, and they must agree")
            if s[k].source & OWN and s[k].source & ~OWN >= node.n_out and not t.layout.dense:
                t = copy_plain(t)                   # a hidden output, which operators read as dense memory
            ready(t)
            out.append((k, entry, s[k].version))
            restore_buffer(&s[k], t.buffer, t.layout)
    finally:
        f.recording, f.pack = recording, around
    return out


cdef void repack(Node node, list packed) noexcept:
    """Restore the packed objects in the slots, because the graph is retained."""
    cdef Slot* s = slots_of(node)
    cdef int k
    for number, entry, version in packed:
        k = number
        if buffer_in(&s[k]) == NULL: continue
        save_object(&s[k], entry)
        s[k].version = version


late_bound.unwatch = unwatch
