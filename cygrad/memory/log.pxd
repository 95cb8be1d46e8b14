cdef enum Phase:
    NO_PHASE, FORWARD, BACKWARD, UPDATE

cdef void begin_update() noexcept
cdef void end_update() noexcept

cdef void* logs         # the open logs, the last one opened first
