"""Outputs of which backward needs only the signs (relu's). While a consumer's slot or the user holds the output too,
its slot shares the buffer at no cost. When the other holders release it, the slot replaces the elements with one bit
each."""

from libc.stdint cimport uint8_t

from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.tensor cimport RECORDED, Node, slots_of
from cygrad.core.store.buffer cimport OTHER, Buffer, allocate, drop
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.slots cimport SIGNS, Slot, buffer_in, replace_by_bits, was_written
from cygrad.kernels.bits cimport pack_signs


packed = NULL


cdef void shrink(void* released) noexcept:
    """Replace a buffer, whose only holder is a sign slot, with bits. It stays if there is no memory for the bits, if a
    backward pass has reached the node, or if the buffer was written after it was saved."""
    global packed
    cdef Buffer* b = <Buffer*>released
    cdef Node node = <Node>b.link
    cdef Slot* s = slots_of(node)
    cdef Buffer* bits
    cdef Flags* f = flags()
    cdef void* around = f.op
    cdef int k
    if node.state != RECORDED: return
    for k in range(node.n_slots):
        if s[k].need == SIGNS and buffer_in(&s[k]) == b: break
    else:
        return
    if was_written(&s[k]) or s[k].layout.size < 64: return
    f.op, packed = <void*>node.op, <void*>node
    try:
        bits = allocate((s[k].layout.size + 7) // 8, OTHER)
    except MemoryError:
        return
    finally:
        f.op, packed = around, NULL
    pack_signs(b.data, s[k].dtype, s[k].layout.size, <uint8_t*>bits.data)
    replace_by_bits(&s[k], bits, <void*>node)
    drop(bits)


late_bound.shrink_signs = shrink
