from libc.stdint cimport uint64_t

cdef uint64_t begin(bint in_trace, bint* alone) noexcept
cdef void end(bint in_trace) noexcept
cdef void forget_traced() noexcept
cdef bint runs(uint64_t number) noexcept
cdef int check_stack() except -1
cdef bint any_runs() noexcept
cdef uint64_t passes_begun() noexcept
cdef bint only_one_runs() noexcept
