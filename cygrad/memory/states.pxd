cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t

from cygrad.core.store.buffer cimport CATEGORIES, MOVED

cdef enum:                  # events beside the pool's
    HELD = MOVED + 1        # a slot of a node keeps the buffer: `nbytes` is the slot's address, `site` the reason
    LET_GO = MOVED + 2      # ... and keeps it no more
    MARKED = MOVED + 3      # a phase begins or ends

cdef struct Event:
    int64_t time            # ticks of the processor's clock since the log began
    uintptr_t buffer
    size_t nbytes
    uint32_t site           # of an allocation: its place in `sites`
    uint8_t kind
    uint8_t category        # now, and before the event
    uint8_t before
    uint8_t phase

cdef struct Entry:
    uintptr_t key           # 0: none
    size_t nbytes
    int64_t time
    uint32_t site
    uint8_t category

@cython.final
cdef class Table:
    cdef Entry* entry
    cdef size_t places, taken

    cdef Entry* find(self, uintptr_t key) noexcept
    cdef Entry* put(self, uintptr_t key) noexcept
    cdef void drop(self, Entry* e) noexcept
    cdef int widen(self) noexcept
    cdef Table copy(self)
    cdef list listed(self)

@cython.final
cdef class State:
    cdef size_t before[CATEGORIES]      # live bytes of buffers from before the log
    cdef size_t totals[CATEGORIES]      # all live bytes
    cdef Table live                     # the buffers made since
    cdef Table slots                    # what keeps them, and those from before: `nbytes` is the buffer
    cdef bint lost                      # there was no memory to know it all

    cdef void play(self, const Event* e) noexcept
    cdef State copy(self)
    cdef tuple shown(self)
