"""All patches of images as a matrix, and their sums: unfold and fold."""

from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport Array, itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.driver cimport gather
from cygrad.kernels.threads cimport threads_for
from cygrad.kernels.images.tiles cimport each_item

cdef struct Unfolding:
    const Conv* v
    const Array* y          # the patches: (n, channels taps, positions)
    bint back


cdef void unfold_images(Conv* v, const Array* y, char* workspace, bint back) noexcept nogil:
    """y = the patches of X; with `back`, X = the sums of y at the elements of the patches, which need `own_bytes` of
    workspace for each thread if y is not dense. Reads the sizes of X, Y and the kernel of a Conv with one group."""
    cdef Unfolding job = Unfolding(v, y, back)
    cdef Py_ssize_t items = v.n * v.c
    cdef int t = threads_for(items * v.taps * v.positions)
    if v.own_bytes: t = <int>min(<size_t>t, v.workspace_bytes // v.own_bytes)
    each_item(unfold_channel, &job, items, <int>max(<Py_ssize_t>1, min(<Py_ssize_t>t, items)), workspace, v.own_bytes)


cdef void unfold_channel(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """The patches of one channel of one image."""
    cdef const Conv* v = (<const Unfolding*>job).v
    cdef const Array* y = (<const Unfolding*>job).y
    cdef bint back = (<const Unfolding*>job).back
    cdef Py_ssize_t whole = v.taps * v.positions, size = itemsize(v.dtype)
    cdef char* x = v.x.data + (i // v.c * v.x.image + i % v.c * v.x.channel) * size
    cdef char* p = y.data + i * whole * size
    if back:
        if not y.layout.dense:
            gather(workspace, y, i * whole, whole)
            p = workspace
        memset(x, 0, v.size[0] * v.size[1] * v.size[2] * size)
    call(v.dtype, patches[float], patches[double], v, <void*>x, <void*>p, back)


cdef void patches(const Conv* v, real* x, real* p, bint back) noexcept nogil:
    """p[k, i] = x at tap k of position i of the plane x; with `back`, x += p. Outside of its plane x is 0."""
    cdef Py_ssize_t s = v.stride[2], step = v.stride[2] * v.x.at[2], w = v.out[2]
    cdef Py_ssize_t i, k, lo, hi, ox, oy, oz, y, z, yi, zi, first, last
    cdef real* row
    for k in range(v.taps):
        ox = k % v.kernel[2] * v.dilation[2] - v.low[2]
        oy = k // v.kernel[2] % v.kernel[1] * v.dilation[1] - v.low[1]
        oz = k // (v.kernel[2] * v.kernel[1]) * v.dilation[0] - v.low[0]
        lo = min(w, 0 if ox >= 0 else (s - 1 - ox) // s)            # columns lo to hi - 1 are inside of x
        hi = 0 if ox >= v.size[2] else min(w, (v.size[2] - 1 - ox) // s + 1)
        for z in range(v.out[0]):
            for y in range(v.out[1]):
                yi, zi, first, last = y * v.stride[1] + oy, z * v.stride[0] + oz, lo, max(lo, hi)
                if yi < 0 or yi >= v.size[1] or zi < 0 or zi >= v.size[0]: first = last = w
                row = x + zi * v.x.at[0] + yi * v.x.at[1] + (first * s + ox) * v.x.at[2]
                if back: add_run(p + first, row, step, last - first)
                else:
                    for i in range(first): p[i] = 0
                    if step == 1: memcpy(p + first, row, (last - first) * sizeof(real))
                    else:
                        for i in range(last - first): p[first + i] = row[i * step]
                    for i in range(last, w): p[i] = 0
                p += w


cdef inline void add_run(const real* p, real* row, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    """row += p"""
    cdef Py_ssize_t i
    if step == 1:
        for i in range(n): row[i] += p[i]
    else:
        for i in range(n): row[i * step] += p[i]
