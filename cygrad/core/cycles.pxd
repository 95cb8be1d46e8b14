cdef void expect_cycles() noexcept
