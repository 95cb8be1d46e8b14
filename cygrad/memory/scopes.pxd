cdef class Open:
    """A scope of the whole process. While it is open, it is in an uncounted list; freeing it removes it from the
    list."""
    cdef void** place       # the head of the list; NULL: the scope is not open
    cdef void* outer        # the next scope in the list, which was opened before this one

    cdef void link(self, void** place) noexcept
    cdef bint unlink(self) noexcept
