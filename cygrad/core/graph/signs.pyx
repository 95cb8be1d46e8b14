"""Outputs of which backward needs only the signs (relu's). While a consumer's slot or the user holds the output too,
its slot shares the buffer at no cost. When the other holders release it, the slot replaces the elements with one bit
each."""

from libc.stdint cimport uint8_t

from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.running cimport only_one_runs
from cygrad.core.graph.tensor cimport REACHED, RECORDED, RUNNING, Node, Tensor, slots_of
from cygrad.core.graph.steps cimport READS, WRITES, Arrays, Kernel, call, put_array
from cygrad.core.store.buffer cimport OTHER, Buffer, allocate, drop
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.slots cimport SIGNS, Slot, buffer_in, replace_by_bits, was_written
from cygrad.kernels.array cimport UINT8, Array, Layout
from cygrad.kernels.bits cimport pack_signs, unpack_bits


packed = NULL
cdef bint evicting = False      # what is released now is evicted


cdef int pack_kernel(Array* a, const void* parameters, object held) except -1:
    """A kernel: the bits a[1] = the signs of a[0]."""
    pack_signs(a.data, a.dtype, a.layout.size, <uint8_t*>a[1].data)
    return 0


cdef int unpack_kernel(Array* a, const void* parameters, object held) except -1:
    """A kernel: a[0] = 1 where the bits a[1] are set, 0 elsewhere."""
    unpack_bits(<const uint8_t*>a[1].data, a.dtype, a.layout.size, a.data)
    return 0


cdef int call_on(Kernel kernel, Buffer* b, const Layout* layout, int dtype, Buffer* bits) except -1:
    """Call a kernel on all elements of `b` and their bits."""
    cdef bint packs = kernel == pack_kernel
    cdef Arrays x
    cdef Array a
    x.n = 0
    a.data, a.layout, a.dtype = b.data, layout, dtype
    put_array(&x, a, b, READS if packs else WRITES)
    a.data, a.dtype = bits.data, UINT8
    put_array(&x, a, bits, WRITES if packs else READS)
    call(flags(), "signs", kernel, &x, 0, NULL, 0, None)
    return 0


cdef int unpack(Buffer* bits, Tensor t) except -1:
    """Write 1 to the new tensor `t` where a bit is set, 0 elsewhere."""
    return call_on(unpack_kernel, t.buffer, t.layout, t.dtype, bits)


cdef bint can_shrink(const Buffer* b) noexcept:
    """Whether no backward pass reads the signs of a buffer now."""
    cdef Flags* f = flags()
    cdef Node node = <Node>b.link.node
    if node.flags & REACHED: return False
    if node.state != RUNNING: return node.state == RECORDED
    return f.node != <void*>node and f.passes == 1 and only_one_runs()


cdef void set_evicting(bint on) noexcept:
    """Whether what is released from now on is evicted."""
    global evicting
    evicting = on


cdef void shrink(void* released) noexcept:
    """Replace a buffer, whose only holder is a sign slot, with bits. It stays if there is no memory for the bits, if
    the buffer was written after it was saved, or if a backward pass has reached the node, unless it is evicted."""
    global packed
    cdef Buffer* b = <Buffer*>released
    cdef Node node = <Node>b.link.node
    cdef Slot* s = slots_of(node)
    cdef Buffer* bits
    cdef Flags* f = flags()
    cdef void* around = f.op
    cdef int k
    if node.state != RECORDED and not evicting or not can_shrink(b): return
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
    try:
        call_on(pack_kernel, b, s[k].layout, s[k].dtype, bits)
    except MemoryError:                             # (a trace has it)
        drop(bits)
        return
    replace_by_bits(&s[k], bits, <void*>node)
    drop(bits)


late_bound.shrink_signs = shrink
