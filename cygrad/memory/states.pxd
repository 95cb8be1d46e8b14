cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t

from cygrad.core.store.buffer cimport CATEGORIES, MOVED

cdef enum:                  # event kinds in addition to the pool's
    SLOT_SAVED = MOVED + 1      # a slot saves the buffer: `nbytes` is the slot's address, `site` the reason
    SLOT_RELEASED = MOVED + 2   # the slot releases the buffer
    MARKED = MOVED + 3          # a phase begins or ends

cdef struct Event:
    int64_t time            # ticks of the CPU's clock since the log began
    uintptr_t buffer
    size_t nbytes
    uint32_t site           # for an allocation: the index into `sites`
    uint8_t kind
    uint8_t category        # after the event
    uint8_t before          # the category before the event
    uint8_t phase

cdef struct Entry:
    uintptr_t key           # 0: the entry is free
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
cdef class MemoryState:
    cdef size_t before[CATEGORIES]      # live bytes of buffers from before the log
    cdef size_t totals[CATEGORIES]      # all live bytes
    cdef Table live                     # the buffers allocated since
    cdef Table slots                    # the slots that save these or earlier buffers: `nbytes` is the buffer's address
    cdef bint lost                      # the state is incomplete because there was no memory

    cdef void play(self, const Event* e) noexcept
    cdef MemoryState copy(self)
    cdef tuple shown(self)
