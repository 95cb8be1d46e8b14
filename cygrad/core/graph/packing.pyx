"""Packs the slots of new nodes, unpacks them for backward, and saved_tensors_hooks: a slot holds the object that `pack`
returned, and, while backward runs the node, the tensor that `unpack` returns for it."""

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.construct cimport copy_plain, new_tensor
from cygrad.core.graph.packed cimport Packed, put_packed, watch
from cygrad.core.graph.slots cimport OWN, buffer_in, object_in, restore_buffer, save_object
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.graph.tensor cimport Tensor, ready, slots_of
from cygrad.core.store.buffer cimport Buffer, hold

from cygrad.core.dtypes import DTYPES


cdef int pack(Node node, Flags* f) except -1:
    """Let the thread's Packing see a new node. What it does is neither recorded nor packed."""
    cdef Packing p = <Packing>f.pack
    cdef int recording = f.recording
    f.recording, f.pack = False, NULL
    try: return p.pack(node)
    finally: f.recording, f.pack = recording, <void*>p


cdef list unpack(Node node, Flags* f, bint retain):
    """Restore tensors in the slots of `node`. Returns what repack() needs, if the graph is retained."""
    cdef Slot* s = slots_of(node)
    cdef int recording = f.recording, k
    cdef void* around = f.pack
    cdef list out = [] if retain else None
    cdef Packed p
    cdef Tensor t
    f.recording, f.pack = False, NULL
    try:
        for k in range(node.n_slots):
            if object_in(&s[k]) == NULL: continue
            p = <Packed>object_in(&s[k])
            p.check(node, &s[k])
            t = p.unpack(node, &s[k])
            if s[k].source & OWN and s[k].source & ~OWN >= node.n_out and not t.layout.dense:
                t = copy_plain(t)                   # a hidden output, which operators read as dense memory
            ready(t)
            if retain: out.append((k, p, s[k].version))
            restore_buffer(&s[k], t.buffer, t.layout)
            p = t = None                            # (now the slot may be the only holder)
    finally:
        f.recording, f.pack = recording, around
    return out


cdef void repack(Node node, list packed) noexcept:
    """Restore the packed objects in the slots, because the graph is retained."""
    cdef Slot* s = slots_of(node)
    cdef int k
    for number, p, version in packed:
        k = number
        if buffer_in(&s[k]) == NULL: continue
        save_object(&s[k], p)
        s[k].version = version


# ---- hooks -----------------------------------------------------------------------------------------------------------

cdef class HookPacked(Packed):
    """What a pair of hooks has made of a tensor."""
    cdef object made, hook

    cdef Tensor unpack(self, Node node, const Slot* s):
        cdef Tensor t
        value = self.hook(self.made)
        if not isinstance(value, Tensor):
            raise TypeError(f"saved_tensors_hooks: unpack returned {type(value).__name__}; it must return the "
                            f"tensor that was passed to pack")
        t = <Tensor>value
        if not lay.same_shape(t.layout, s.layout) or t.dtype != s.dtype:
            raise ValueError(
                f"saved_tensors_hooks: unpack returned a {DTYPES[t.dtype]} tensor of shape {t.shape}; pack "
                f"got a {DTYPES[s.dtype]} tensor of shape {lay.shape_tuple(s.layout)}, and they must agree")
        return t


cdef class HookPacking(Packing):
    """What saved_tensors_hooks(pack, unpack) makes the packing of its thread."""

    def __cinit__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook, self.scope = pack_hook, unpack_hook, "saved_tensors_hooks()"

    cdef int pack(self, Node node) except -1:
        cdef Slot* s = slots_of(node)
        cdef Buffer* b
        cdef HookPacked p
        cdef int k
        expect_cycles()                             # the objects that hooks return may refer to the graph
        for k in range(node.n_slots):
            b = buffer_in(&s[k])
            if b == NULL: continue
            hold(b)
            t = new_tensor(b, lay.incref(s[k].layout), s[k].dtype)
            (<Tensor>t).detached = True
            p = HookPacked.__new__(HookPacked)
            p.made, p.hook, p.watch = self.pack_hook(t), self.unpack_hook, watch(b)
            t = None
            put_packed(node, &s[k], p)
        return 0
