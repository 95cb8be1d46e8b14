"""Outputs of which backward needs the signs alone (relu's): they are kept as they are while somebody else holds them, a
consumer's slot or the user, and cost nothing then; when that somebody lets go they shrink to a bit an element."""

from libc.stdint cimport uint8_t

from cygrad.core.graph cimport BITS, RECORDED, SIGNS, Node, Slot, slot_kept, slots_of
from cygrad.core.memory cimport OTHER, Buffer, allocate, drop, keep, let_go, plug_shrink
from cygrad.core.modes cimport Flags, flags
from cygrad.kernels.bits cimport pack_signs


cdef void shrink(Buffer* b) noexcept:
    """Put bits in the place of `b`, held by one sign slot alone; leave it if there is no memory, or if the slot's turn
    in a backward pass is near, or if what it holds is not what was kept."""
    cdef Node node = <Node>b.link
    cdef Slot* s = slots_of(node)
    cdef Buffer* bits
    cdef Flags* f = flags()
    cdef void* around = f.op
    cdef int k
    if node.state != RECORDED: return
    for k in range(node.n_slots):
        if s[k].need == SIGNS and s[k].what.buffer == b: break
    else:
        return
    if s[k].version != b.version or s[k].layout.size < 64: return
    f.op = <void*>node.op
    try:
        bits = allocate((s[k].layout.size + 7) // 8, OTHER)
    except MemoryError:
        return
    finally:
        f.op = around
    pack_signs(b.data, s[k].dtype, s[k].layout.size, <uint8_t*>bits.data)
    keep(bits)
    drop(bits)
    b.signs = 0
    b.link = NULL
    s[k].need = BITS
    s[k].what.buffer = bits
    s[k].version = 0
    if slot_kept != NULL: slot_kept(node, &s[k])
    let_go(b)


plug_shrink(shrink)
