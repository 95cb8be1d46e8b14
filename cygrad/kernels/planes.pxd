from libc.string cimport memcpy

from cygrad.kernels.array cimport Array, real
from cygrad.kernels.conv cimport Conv, Planes
from cygrad.kernels.microproduct cimport Step

cdef struct Tile:           # images and positions along each dimension
    Py_ssize_t at[4]
    Py_ssize_t size[4]
    Py_ssize_t packed[4]    # the same with the elements around them
    Py_ssize_t plane        # their product: packed elements of a class
    Py_ssize_t channel      # packed elements of a channel
    Py_ssize_t columns      # of the product

cdef struct Window:         # the context of pack_planes
    const Conv* v
    const Tile* t
    const Planes* planes
    Py_ssize_t channel

cdef void set_planes(Planes* p, const Array* a) noexcept nogil
cdef Tile tile_at(const Conv* v, Py_ssize_t i) noexcept nogil
cdef void pack_planes(const void* context, Py_ssize_t first, Py_ssize_t last, char* to) noexcept nogil
cdef Py_ssize_t places(const Conv* v, const Tile* t, const Py_ssize_t* r, Step* steps) noexcept nogil
cdef Py_ssize_t place_of(const Conv* v, const Tile* t, Py_ssize_t k) noexcept nogil

cdef inline Py_ssize_t up(Py_ssize_t n, Py_ssize_t by) noexcept nogil: return (n + by - 1) // by


cdef inline Py_ssize_t floor_of(Py_ssize_t n, Py_ssize_t by) noexcept nogil:
    return n // by if n >= 0 else -up(-n, by)


cdef inline void copy(const real* x, Py_ssize_t step, real* to, Py_ssize_t n) noexcept nogil:
    """Copy n elements. A call of memcpy() for a row of 32 takes longer than a few moves of constant size."""
    cdef Py_ssize_t i = 0
    if step != 1:
        for i in range(n): to[i] = x[i * step]
        return
    if n > 256:
        memcpy(to, x, n * sizeof(real))
        return
    while i + 16 <= n:
        memcpy(to + i, x + i, 16 * sizeof(real))
        i += 16
    if n & 8:
        memcpy(to + i, x + i, 8 * sizeof(real))
        i += 8
    if n & 4:
        memcpy(to + i, x + i, 4 * sizeof(real))
        i += 4
    while i < n:
        to[i] = x[i]
        i += 1


cdef inline Py_ssize_t row_of(const Tile* t, Py_ssize_t i) noexcept nogil:
    """Where row i of the positions of a tile begins in a packed class."""
    return ((i // (t.size[2] * t.size[1]) * t.packed[1] + i // t.size[2] % t.size[1]) * t.packed[2]
            + i % t.size[2]) * t.packed[3]
