"""The interface of copies outside of memory (spills.pxd)."""


cdef class Spilled:
    cdef bint is_written(self) noexcept:
        """Whether it can be read."""

    cdef void finish(self) noexcept:
        """Wait until it is written, or cannot be. (The GIL is held, because nobody expects that an allocation lets
        other threads run.)"""

    cdef double cost(self) noexcept:
        """The seconds that it costs to read it."""

    cdef Buffer* read(self) except? NULL:
        """A new buffer that has it, which the caller has saved (save() in store/buffer). NULL: another thread was
        faster, so look again."""


cdef class Spiller:
    cdef bint takes(self, const Buffer* b) noexcept:
        """Whether it copies what is in a buffer."""

    cdef double cost(self, size_t nbytes) noexcept:
        """The seconds that it costs to write and to read so many bytes."""

    cdef Spilled begin(self, Buffer* b, uint64_t number, void* value):
        """Begin to copy what is in a buffer: a Value, and its place in the order in which Values were made. Whoever
        keeps that memory lets go of the copy first."""

    cdef int read_ahead(self, uint64_t number) except -1:
        """Backward has come to the value of this number. Read what it will come to next, if there is room."""

    cdef bint forget_ahead(self) noexcept:
        """Release what was read ahead. Returns whether that was anything."""

    cdef str trouble(self):
        """Why it makes no copies any more, to be appended to a message; or nothing."""
