"""Memory of others that tensors lie over, counted: each byte once, however many arrays show it.

Two tensors over one array, or over views of it that overlap, share bytes. So arrays whose ranges of addresses overlap
are counted together: equal ones once, and no more than the range that they lie in. An array with gaps counts its
elements alone. This is exact but for arrays with gaps that overlap in part, where it may be more, up to that range. The
sum is made when somebody asks (memory.stats): adopting and letting go cost two pointers.

An array over the pool's own memory, such as x.numpy() given back to asarray, is no memory of others: its bytes count
with the buffer that they belong to, and not here."""

cimport cython

from cygrad.core.store.arena cimport owns
from cygrad.core.store.buffer cimport Buffer, adopt
from cygrad.kernels.array cimport Array, itemsize

from cygrad.core.late_bound import bind

cdef void* ring = NULL              # one of the lenders, or NULL


@cython.no_gc_clear                 # (what it owns may be in a cycle, and its memory is read until it is deallocated)
cdef class Lender:

    def __dealloc__(self):
        global ring
        if self.after == NULL: return
        if ring == <void*>self: ring = self.after if self.after != <void*>self else NULL
        (<Lender>self.after).before = self.before
        (<Lender>self.before).after = self.after


cdef Buffer* adopt_array(const Array* a, object owner, bint readonly) except NULL:
    """A buffer over the memory of `a`, which `owner` keeps alive."""
    global ring
    cdef Lender lender = Lender.__new__(Lender)
    cdef Py_ssize_t size = itemsize(a.dtype), reach
    cdef int d
    lender.owner = owner
    lender.low = lender.high = <size_t>a.data
    lender.nbytes = a.layout.size * size
    if a.layout.size:
        lender.high += size
        for d in range(a.layout.ndim):
            reach = (a.layout.shape[d] - 1) * a.layout.strides[d] * size
            if reach < 0: lender.low += reach
            else: lender.high += reach
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
    """The bytes of others that tensors lie over."""
    cdef void* p
    cdef size_t total = 0, begin = 0, end = 0, elements = 0
    cdef size_t low, high, nbytes
    cdef Lender one                     # held: what is made here may start the collector, which may free lenders
    found = set()
    p = ring
    while p != NULL:
        one = <Lender>p
        found.add((one.low, one.high, one.nbytes))
        p = one.after
        if p == ring: break
    for low, high, nbytes in sorted(found):
        if low >= end:                              # nothing before it reaches here
            total += min(elements, end - begin)
            begin, end, elements = low, high, 0
        elif high > end: end = high
        elements += nbytes
    return total + min(elements, end - begin)


bind(external_bytes=external_bytes)
