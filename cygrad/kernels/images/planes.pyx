"""Packed images of a convolution: the images of a tile with zeros around them, and where its products find patches in
them (the text of conv.pyx has the layout)."""

from libc.string cimport memset

from cygrad.kernels.array cimport Array, itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.linalg.microproduct cimport CG_VECTOR, Step


cdef void set_planes(Planes* p, const Array* a) noexcept nogil:
    """The planes of an array (n, channels, spatial dimensions): of missing spatial dimensions the first ones have size
    1."""
    cdef const Py_ssize_t* steps = a.layout.strides
    cdef int d, nd = a.layout.ndim - 2
    p.data, p.image, p.channel = a.data, steps[0], steps[1]
    for d in range(3): p.at[d] = steps[2 + d - 3 + nd] if d >= 3 - nd else 0


cdef Tile tile_at(const Conv* v, Py_ssize_t i) noexcept nogil:
    cdef Tile t
    cdef int d
    t.plane = 1
    for d in range(3, -1, -1):
        t.at[d] = i % v.cuts[d] * v.part[d]
        t.size[d] = min(v.part[d], v.grid[d] - t.at[d])
        t.packed[d] = t.size[d] + (v.span[d - 1] if d else 0)
        t.plane *= t.packed[d]
        i //= v.cuts[d]
    t.channel = t.plane * v.split[0] * v.split[1] * v.split[2]
    t.columns = t.size[0] - 1
    for d in range(1, 4): t.columns = t.columns * t.packed[d] + t.size[d] - 1
    t.columns += 1
    return t


cdef void pack_planes(const void* context, Py_ssize_t first, Py_ssize_t last, char* to) noexcept nogil:
    """Pack channels first to last - 1 of a Window: for each channel its classes, for each class the images of the tile
    with zeros around them. Behind them comes one vector of zeros, because products read whole vectors."""
    cdef const Window* w = <const Window*>context
    cdef Py_ssize_t size = itemsize(w.v.dtype), c
    cdef const char* x
    for c in range(first, last):
        x = w.planes.data + (w.t.at[0] * w.planes.image + (w.channel + c) * w.planes.channel) * size
        call(w.v.dtype, pack_plane[float], pack_plane[double], w, <void*>x, <void*>to)
        to += w.t.channel * size
    memset(to, 0, CG_VECTOR)


cdef void pack_plane(const Window* w, const real* x, real* p) noexcept nogil:
    cdef const Conv* v = w.v
    cdef const Py_ssize_t* packed = &w.t.packed[0]
    cdef Py_ssize_t f, image, z, s, _, step = v.step[2] * w.planes.at[2]
    cdef Py_ssize_t start[3]
    cdef Py_ssize_t lo[3]
    cdef Py_ssize_t hi[3]
    cdef const real* row
    cdef real* to
    cdef bint whole
    cdef int d
    for f in range(v.split[0] * v.split[1] * v.split[2]):
        start[0], start[1] = f // (v.split[2] * v.split[1]), f // v.split[2] % v.split[1]
        start[2], whole = f % v.split[2], True
        for d in range(3):                          # places lo to hi - 1 are inside of the images
            s = v.step[d]
            start[d] += w.t.at[1 + d] * s + v.first[d]
            lo[d] = min(packed[1 + d], 0 if start[d] >= 0 else up(-start[d], s))
            hi[d] = max(lo[d], min(packed[1 + d], 0 if start[d] >= v.source[d] else up(v.source[d] - start[d], s)))
            whole = whole and lo[d] == 0 and hi[d] == packed[1 + d]
        if not whole: memset(p, 0, w.t.plane * sizeof(real))
        for image in range(packed[0]):
            for z in range(lo[0], hi[0]):
                row = x + image * w.planes.image + (start[0] + z * v.step[0]) * w.planes.at[0]
                row += (start[1] + lo[1] * v.step[1]) * w.planes.at[1] + (start[2] + lo[2] * v.step[2]) * w.planes.at[2]
                to = p + ((image * packed[1] + z) * packed[2] + lo[1]) * packed[3] + lo[2]
                for _ in range(lo[1], hi[1]):
                    copy(row, step, to, hi[2] - lo[2])
                    row += v.step[1] * w.planes.at[1]
                    to += packed[3]
        p += w.t.plane


cdef inline bint place(const Conv* v, int d, Py_ssize_t k, Py_ssize_t r, Py_ssize_t* f, Py_ssize_t* q) noexcept nogil:
    """The class and the place of element k of the kernel along dimension d, from a position on. If X is computed: for
    element r of the square; returns False if k does not meet it."""
    cdef Py_ssize_t at = k * v.dilation[d]
    if v.role == X: at = r + v.low[d] - at
    q[0] = at // v.stride[d]
    f[0] = at - q[0] * v.stride[d]
    if v.role != X: return True
    q[0] -= v.first[d]
    return f[0] == 0


cdef Py_ssize_t places(const Conv* v, const Tile* t, const Py_ssize_t* r, Step* steps) noexcept nogil:
    """The steps of one channel: its elements of the kernel and their places. Returns their number."""
    cdef Py_ssize_t f[3]
    cdef Py_ssize_t q[3]
    cdef Py_ssize_t z, y, x, n = 0
    for z in range(v.kernel[0]):
        if not place(v, 0, z, r[0], &f[0], &q[0]): continue
        for y in range(v.kernel[1]):
            if not place(v, 1, y, r[1], &f[1], &q[1]): continue
            for x in range(v.kernel[2]):
                if not place(v, 2, x, r[2], &f[2], &q[2]): continue
                steps[n].a = <int>((z * v.kernel[1] + y) * v.kernel[2] + x)
                steps[n].b = <int>offset_of(v, t, f, q)
                n += 1
    return n


cdef inline Py_ssize_t offset_of(const Conv* v, const Tile* t, const Py_ssize_t* f, const Py_ssize_t* q) noexcept nogil:
    return (((f[0] * v.split[1] + f[1]) * v.split[2] + f[2]) * t.plane + (q[0] * t.packed[2] + q[1]) * t.packed[3]
            + q[2])


cdef Py_ssize_t place_of(const Conv* v, const Tile* t, Py_ssize_t k) noexcept nogil:
    """The place of element k of the kernel in a packed channel of X."""
    cdef Py_ssize_t f[3]
    cdef Py_ssize_t q[3]
    place(v, 0, k // (v.kernel[2] * v.kernel[1]), 0, &f[0], &q[0])
    place(v, 1, k // v.kernel[2] % v.kernel[1], 0, &f[1], &q[1])
    place(v, 2, k % v.kernel[2], 0, &f[2], &q[2])
    return offset_of(v, t, f, q)
