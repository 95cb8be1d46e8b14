from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef class Lender:
    """What keeps the memory of an external buffer alive, and where that memory lies."""
    cdef readonly object owner
    cdef size_t low, high, nbytes       # from the first byte to behind the last, and what the elements have of that
    cdef void* before                   # the ring of lenders of others' memory, uncounted; NULL: not in it
    cdef void* after

cdef Buffer* adopt_array(const Array* a, object owner, bint readonly) except NULL
