cdef class Open:
    """A scope of the whole process: while it is open it stands in a list, uncounted, which it leaves when it dies."""
    cdef void** place       # where the list begins; NULL: it is not open
    cdef void* outer        # the scope opened before it

    cdef void link(self, void** place) noexcept
    cdef bint unlink(self) noexcept
