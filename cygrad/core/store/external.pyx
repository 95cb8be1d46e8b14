"""Counts external memory: memory of NumPy and other libraries that tensors share. Each byte counts once, however many
arrays share it.

Two tensors on one array, or on overlapping views of it, share bytes. So arrays whose address ranges overlap are counted
together: equal arrays once, and in total at most the length of their common range. An array with gaps counts only its
elements. The count is exact, except for arrays with gaps that overlap in part. For those it may be too large, but never
larger than the range. memory.stats() computes the sum; creating and freeing such a buffer only updates two pointers.

An array on the pool's own memory, such as x.numpy() passed to asarray, is not external. Its bytes count with the buffer
that they belong to."""

cimport cython

from cygrad.core.store.arena cimport owns
from cygrad.core.store.buffer cimport Buffer, adopt
from cygrad.kernels.array cimport Array, itemsize

from cygrad.core.late_bound import bind

cdef void* ring = NULL              # one of the Lenders, or NULL


@cython.no_gc_clear                 # (the owner may be in a cycle, and its memory is read until it is deallocated)
cdef class Lender:

    def __dealloc__(self):
        global ring
        if self.after == NULL: return
        if ring == <void*>self: ring = self.after if self.after != <void*>self else NULL
        (<Lender>self.after).before = self.before
        (<Lender>self.before).after = self.after


cdef void extent(const Array* a, size_t* low, size_t* high) noexcept nogil:
    """Find the first address of an element of `a`, and the address after its last byte."""
    cdef Py_ssize_t reach
    low[0] = high[0] = <size_t>a.data
    if a.layout.size == 0: return
    high[0] += itemsize(a.dtype)
    for d in range(a.layout.ndim):
        reach = (a.layout.shape[d] - 1) * a.layout.strides[d] * itemsize(a.dtype)
        if reach < 0: low[0] += reach
        else: high[0] += reach


cdef bint ranges_meet(const Array* a, const Array* b) noexcept nogil:
    """Whether the address ranges of two arrays overlap. They may still have no element in common."""
    cdef size_t low, high, b_low, b_high
    extent(a, &low, &high)
    extent(b, &b_low, &b_high)
    return max(low, b_low) < min(high, b_high)


cdef Buffer* adopt_array(const Array* a, object owner, bint readonly) except NULL:
    """A buffer on the memory of `a`, which `owner` keeps alive."""
    global ring
    cdef Lender lender = Lender.__new__(Lender)
    lender.owner = owner
    lender.nbytes = a.layout.size * itemsize(a.dtype)
    extent(a, &lender.low, &lender.high)
    if owns(a.data): return adopt(a.data, lender.nbytes, lender, readonly)
    if ring == NULL:
        lender.before = lender.after = <void*>lender
    else:
        lender.before, lender.after = ring, (<Lender>ring).after
        (<Lender>lender.after).before = <void*>lender
        (<Lender>ring).after = <void*>lender
    ring = <void*>lender
    return adopt(a.data, lender.nbytes, lender, readonly)


def external_bytes():
    """The number of bytes of external memory that tensors share."""
    cdef void* p
    cdef size_t total = 0, begin = 0, end = 0, elements = 0
    cdef size_t low, high, nbytes
    cdef Lender one                     # holds a reference: allocating may run the collector, which may free Lenders
    found = set()
    p = ring
    while p != NULL:
        one = <Lender>p
        found.add((one.low, one.high, one.nbytes))
        p = one.after
        if p == ring: break
    for low, high, nbytes in sorted(found):
        if low >= end:                              # no earlier range overlaps this one
            total += min(elements, end - begin)
            begin, end, elements = low, high, 0
        elif high > end: end = high
        elements += nbytes
    return total + min(elements, end - begin)


bind(external_bytes=external_bytes)
