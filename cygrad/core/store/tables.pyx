"""Tables of backward passes."""

from cygrad.core.store cimport arena
from cygrad.core.store.arena cimport Span

spare = NULL


cdef void free_table(Span* table) noexcept:
    """Free a table, or keep it for later passes if it is the largest of those not in use."""
    global spare
    cdef size_t nbytes
    if table.size <= MOST_SPARE and (spare == NULL or table.size > spare.size): table, spare = spare, table
    if table == NULL: return
    nbytes = table.size
    arena.give(table)
    if nbytes > MOST_SPARE: arena.purge(nbytes)         # (as large as a graph; its pages go back at once)


cdef void free_spare() noexcept:
    global spare
    if spare != NULL: arena.give(spare)
    spare = NULL
