"""The memory of the pool: reserved ranges of addresses, whose pages are committed when they are needed.

A Span is a piece of a segment, in use or free. Two neighbouring spans are never both free: they are joined. The `bare`
bytes of a free span are in pages that are not committed: they have addresses but no memory."""

from libc.stdint cimport uint64_t

cdef struct Segment:        # a reserved range of addresses
    Segment* following
    char* base
    size_t size
    uint64_t* has           # a bit for each page: whether it is committed

cdef struct Span:
    char* data
    size_t size             # a multiple of GRAIN
    size_t bare             # bytes that are not committed, in whole pages; 0 while the span is in use
    Segment* segment
    Span* before            # the neighbours by address
    Span* after
    Span* previous          # the neighbours in a bin, while the span is free
    Span* next
    bint free

cdef enum:
    GRAIN = 128             # sizes and addresses of spans are multiples of this

cdef size_t committed       # total bytes of committed pages
cdef uint64_t commits       # number of times that pages were committed

cdef Span* fit(size_t n) noexcept
cdef Span* grow(size_t n, size_t max_bytes) noexcept
cdef void give(Span* s) noexcept
cdef size_t purge(size_t n) noexcept
cdef void release_all() noexcept
cdef size_t largest(size_t capacity) noexcept
cdef bint owns(const char* p) noexcept
