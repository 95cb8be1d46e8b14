from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec


cdef inline double seconds() noexcept nogil:
    """The time, from some moment on that does not change."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + 1e-9 * now.tv_nsec
