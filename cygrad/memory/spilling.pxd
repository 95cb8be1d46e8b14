from libc.stdint cimport uint64_t

from cygrad.core.execute.spills cimport Spiller
from cygrad.memory.spill cimport Spill


cdef class DiskSpiller(Spiller):
    """The file of memory.budget(offload=), and the copies in it."""
    cdef Spill spill
    cdef void* newest           # borrowed: the DiskSpilled whose Value was made last
    cdef int error              # of a write, after which nothing is written any more
    cdef uint64_t epoch         # backward passes that had begun when one last read
    cdef size_t written, read   # bytes so far,
    cdef double writing, reading        # and what they have cost the program, in seconds

    cdef double reading_time(self) noexcept
    cdef void settle(self) noexcept
    cdef void give(self, object p) noexcept
