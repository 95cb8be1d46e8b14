cdef void decref_later(void* node) noexcept
cdef void decref_waiting() noexcept
