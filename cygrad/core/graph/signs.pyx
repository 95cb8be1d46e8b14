"""Outputs of which backward needs only the signs (relu's). While a consumer's slot or the user holds the output too,
its slot shares the buffer at no cost. When the other holders release it, the slot replaces the elements with one bit
each."""

from libc.stdint cimport uint8_t

from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.tensor cimport RECORDED, Node, Tensor, slots_of
from cygrad.core.graph.trace cimport Step, Trace, preparing
from cygrad.core.store.buffer cimport OTHER, Buffer, allocate, drop
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.slots cimport SIGNS, Slot, buffer_in, replace_by_bits, was_written
from cygrad.kernels.bits cimport pack_signs, unpack_bits


packed = NULL


cdef class BitsStep(Step):
    """Packs signs into bits, or unpacks them."""
    cdef char* elements
    cdef char* bits
    cdef int dtype
    cdef Py_ssize_t n
    cdef bint unpacks

    cdef int run(self) except -1:
        if self.unpacks: unpack_bits(<const uint8_t*>self.bits, self.dtype, self.n, self.elements)
        else: pack_signs(self.elements, self.dtype, self.n, <uint8_t*>self.bits)
        return 0


cdef int trace_bits(const Flags* f, Buffer* b, int dtype, Py_ssize_t n, Buffer* bits, bint unpacks) except -1:
    """Emit the packing of `n` signs of `b` into `bits`, or the reverse, if the thread's trace makes steps."""
    cdef Trace t = preparing(f)
    cdef BitsStep s
    if t is None: return 0
    s = BitsStep.__new__(BitsStep)
    s.take(2, 0)
    s.name, s.elements, s.bits, s.dtype, s.n, s.unpacks = "signs", b.data, bits.data, dtype, n, unpacks
    s.point(t, &s.elements, b)
    s.point(t, &s.bits, bits)
    return t.emit(s)


cdef int unpack(Buffer* bits, Tensor t) except -1:
    """Write 1 to the new tensor `t` where a bit is set, 0 elsewhere."""
    cdef Flags* f = flags()
    if f.trace != NULL: return trace_bits(f, t.buffer, t.dtype, t.layout.size, bits, True)
    unpack_bits(<const uint8_t*>bits.data, t.dtype, t.layout.size, t.buffer.data)
    return 0


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
    if f.trace == NULL: pack_signs(b.data, s[k].dtype, s[k].layout.size, <uint8_t*>bits.data)
    else:
        try:
            trace_bits(f, b, s[k].dtype, s[k].layout.size, bits, False)
        except MemoryError:
            drop(bits)
            return
    replace_by_bits(&s[k], bits, <void*>node)
    drop(bits)


late_bound.shrink_signs = shrink
