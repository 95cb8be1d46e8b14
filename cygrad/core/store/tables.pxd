"""Tables of backward passes, in spans of the arena: they are no tensor data, but memory.limit() bounds them, and they
count as cached. One is kept for later passes until the cache is emptied."""

from cygrad.core.store.arena cimport Span

cdef enum:
    MOST_SPARE = 1 << 20        # bytes of the largest table that is kept

cdef Span* spare                # a table that no pass uses, or NULL

cdef void free_table(Span* table) noexcept
cdef void free_spare() noexcept
