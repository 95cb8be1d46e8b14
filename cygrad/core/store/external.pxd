from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef class Lender:
    """Holds the owner of an external buffer's memory, and the address range of that memory."""
    cdef readonly object owner
    cdef size_t low, high, nbytes       # the first address, the one after the last, and the bytes of the elements
    cdef void* before                   # the ring of all Lenders of external memory, uncounted; NULL: not in the ring
    cdef void* after

cdef bint ranges_meet(const Array* a, const Array* b) noexcept nogil
cdef Buffer* adopt_array(const Array* a, object owner, bint readonly) except NULL
