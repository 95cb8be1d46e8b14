"""Where the pool's memory lies: ranges of addresses, of which pages are committed as they are needed.

A Span is a piece of a segment, in use or free; free neighbours are always joined. `bare` pages of a free span are not
committed: they have addresses and no memory."""

from libc.stdint cimport uint64_t

cdef struct Segment:        # addresses that are reserved
    Segment* following
    char* base
    size_t size
    uint64_t* has           # a bit for each page: committed

cdef struct Span:
    char* data
    size_t size             # a multiple of GRAIN
    size_t bare             # bytes of it that are not committed, in whole pages; 0 while it is in use
    Segment* segment
    Span* before            # its neighbours by address
    Span* after
    Span* previous          # its neighbours in a bin, while it is free
    Span* next
    bint free

cdef enum:
    GRAIN = 128             # sizes and addresses of spans are multiples of it

cdef size_t committed       # bytes of all committed pages
cdef uint64_t commits       # how often pages were committed

cdef Span* fit(size_t n) noexcept
cdef Span* grow(size_t n, size_t most) noexcept
cdef void give(Span* s) noexcept
cdef size_t purge(size_t n) noexcept
cdef void give_back() noexcept
cdef size_t largest(size_t capacity) noexcept
cdef bint owns(const char* p) noexcept
