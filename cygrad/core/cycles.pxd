cdef bint collected         # whether the garbage collector knows nodes

cdef void expect_cycles() noexcept
