"""Where the pool asks for room before it takes memory, while a memory.budget is open (core/execute/budget.pyx)."""

ctypedef int (*make_room_t)(size_t nbytes) except -1

cdef make_room_t make_room      # NULL: no budget was opened yet
