"""Copies of values outside of memory: what a budget evicts can be written to a file, and read again. What a copy is,
memory/spilling.pyx says."""

from libc.stdint cimport uint64_t

from cygrad.core.store.buffer cimport Buffer


cdef class Spilled:
    """A copy of a value. Without references to it, there is no copy."""
    cdef void* value            # borrowed: the Value (recipes.pxd); NULL: it is gone

    cdef bint is_written(self) noexcept
    cdef void finish(self) noexcept
    cdef double cost(self) noexcept
    cdef Buffer* read(self) except? NULL


cdef class Spiller:
    """Makes such copies."""
    cdef size_t bound           # of the budget that is open; 0: none is
    cdef size_t largest         # bytes of a recent request
    cdef size_t queued          # bytes that wait to be copied
    cdef size_t ahead           # bytes that are in memory, or will be, before backward has come to them

    cdef bint takes(self, const Buffer* b) noexcept
    cdef double cost(self, size_t nbytes) noexcept
    cdef Spilled begin(self, Buffer* b, uint64_t number, void* value)
    cdef int read_ahead(self, uint64_t number) except -1
    cdef bint forget_ahead(self) noexcept
    cdef str trouble(self)
