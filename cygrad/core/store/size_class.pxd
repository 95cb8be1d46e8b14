"""Size classes. A buffer of one class is reused for the next one of that class."""

from cygrad.core.store.arena cimport GRAIN

cdef enum:
    SMALL = 1024            # bytes of the largest small buffer: classes of 64 bytes each
    MEDIUM = 1 << 20        # bytes of the largest medium buffer: 16 classes for each power of two
    SMALL_CLASSES = 16
    LARGE = 16 + 16 * 10    # the class of all larger buffers


cdef inline int class_of(size_t nbytes) noexcept:
    """The class of buffers with a capacity of at least `nbytes`, which is at most MEDIUM."""
    cdef int shift = 0
    cdef size_t n
    if nbytes <= SMALL: return 0 if nbytes == 0 else <int>((nbytes - 1) >> 6)
    n = (nbytes - 1) >> 6                           # 16 .. 31 after shifting, for 1 KiB < nbytes
    while n >= 32:
        n >>= 1
        shift += 1
    return SMALL_CLASSES + 16 * shift + <int>n - 16


cdef inline size_t class_bytes(int c) noexcept:
    """The capacity of a buffer of class `c`."""
    if c < SMALL_CLASSES: return (<size_t>c + 1) << 6
    return <size_t>(17 + ((c - SMALL_CLASSES) & 15)) << (6 + ((c - SMALL_CLASSES) >> 4))


cdef inline size_t rounded(size_t nbytes) noexcept:
    """The size of the span of a medium or large buffer of `nbytes`."""
    cdef size_t n = class_bytes(class_of(nbytes)) if nbytes <= MEDIUM else nbytes
    return (n + GRAIN - 1) // GRAIN * GRAIN
