"""Resizing of images by weights along each dimension, and its transpose, which is the gradient.

An element of Y is a sum of 1 (nearest), 2 (linear) or 4 (cubic) elements of X along each dimension. Rows of X are added
to one row first, whose elements are then added; the transpose does the same in reverse."""

from libc.math cimport floor, floorf
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.threads cimport threads_for
from cygrad.kernels.images.tiles cimport each_item

cdef struct Entry:          # an element of X that belongs to one of Y
    Py_ssize_t at
    double weight

cdef struct Job:
    const Resize* r
    bint back
    int taps[3]
    Entry* entries[3]       # `taps` for each element of Y along a dimension


cdef inline int taps_of(const Resize* r, int d) noexcept nogil:
    if r.size[d] == 1 and r.out[d] == 1 or r.mode == NEAREST: return 1
    return 2 if r.mode == LINEAR else 4


cdef size_t own_bytes(const Resize* r, size_t* shared) noexcept nogil:
    """Bytes of workspace of each thread, and of all together."""
    cdef int d
    shared[0] = 0
    for d in range(3): shared[0] += taps_of(r, d) * r.out[d] * sizeof(Entry)
    shared[0] = (shared[0] + 63) // 64 * 64
    return (r.size[2] * itemsize(r.dtype) + 63) // 64 * 64


cdef void fill(const Resize* r, int d, int taps, Entry* e) noexcept nogil:
    """The entries along a dimension. The coefficients of cubic interpolation are those of Keys (1981) with a = -3/4."""
    cdef Py_ssize_t n = r.size[d], i, first
    cdef double at, t
    cdef int k
    for i in range(r.out[d]):
        if taps == 1:                               # in float32, as in PyTorch, whose choice of elements this is
            first = min(n - 1, <Py_ssize_t>floorf(<float>i * <float>r.scale[d]))
            e[i] = Entry(first, 1)
            continue
        at = i * r.scale[d] if r.corners else (i + 0.5) * r.scale[d] - 0.5
        if taps == 2: at = max(at, 0.)
        first = min(<Py_ssize_t>floor(at), n - 1)
        t = min(max(at - first, 0.), 1.)
        for k in range(taps):
            e[i * taps + k].at = min(max(first + k - (taps == 4), 0), n - 1)
        if taps == 2: e[2 * i].weight, e[2 * i + 1].weight = 1 - t, t
        else:
            e[4 * i].weight, e[4 * i + 1].weight = far(1 + t), near(t)
            e[4 * i + 2].weight, e[4 * i + 3].weight = near(1 - t), far(2 - t)


cdef inline double near(double t) noexcept nogil: return (1.25 * t - 2.25) * t * t + 1

cdef inline double far(double t) noexcept nogil: return ((-0.75 * t + 3.75) * t - 6) * t + 3


cdef void resize(const Resize* r, bint back, char* workspace, size_t nbytes) noexcept nogil:
    """Y = X, resized; with `back`, X = the transpose of that, of Y."""
    cdef Job job
    cdef size_t shared, own = own_bytes(r, &shared)
    cdef Entry* entries = <Entry*>workspace
    cdef Py_ssize_t planes = r.n * r.channels
    cdef int d, t = threads_for(planes * r.out[0] * r.out[1] * max(r.out[2], r.size[2]) * 8)
    job.r, job.back = r, back
    for d in range(3):
        job.taps[d], job.entries[d] = taps_of(r, d), entries
        fill(r, d, job.taps[d], entries)
        entries += job.taps[d] * r.out[d]
    t = <int>min(<size_t>t, (nbytes - shared) // own)
    each_item(plane, &job, planes, <int>max(<Py_ssize_t>1, min(<Py_ssize_t>t, planes)), workspace + shared, own)


cdef void plane(void* job, Py_ssize_t i, char* workspace) noexcept nogil:
    """One channel of one image."""
    cdef const Job* j = <const Job*>job
    cdef const Resize* r = j.r
    cdef Py_ssize_t size = itemsize(r.dtype)
    cdef char* x = r.x.data + (i // r.channels * r.x.image + i % r.channels * r.x.channel) * size
    cdef char* y = r.y.data + (i // r.channels * r.y.image + i % r.channels * r.y.channel) * size
    if j.taps[0] * j.taps[1] * j.taps[2] == 1: call(r.dtype, nearest[float], nearest[double], j, <void*>x, <void*>y)
    else: call(r.dtype, rows[float], rows[double], j, <void*>x, <void*>y, <void*>workspace)


cdef void nearest(const Job* j, real* x, real* y) noexcept nogil:
    """All rows of a plane of which each element of Y is one of X. Rows of Y that are the same row of X are copied from
    the first of them. (`twice`: element k of a row is k / 2 of X, and there is no index to read.)"""
    cdef const Resize* r = j.r
    cdef const Entry* e = j.entries[2]
    cdef Py_ssize_t z, q, k, i, step = r.x.at[2], next = r.y.at[2], n = r.out[2]
    cdef bint twice = n == 2 * r.size[2] and step == 1 and next == 1
    cdef real* p
    cdef real* g
    for k in range(n): twice = twice and e[k].at == k // 2
    if j.back:
        for z in range(r.size[0]):
            for q in range(r.size[1]):
                p = x + z * r.x.at[0] + q * r.x.at[1]
                for i in range(r.size[2]): p[i * step] = 0
    for z in range(r.out[0]):
        for q in range(r.out[1]):
            p = x + j.entries[0][z].at * r.x.at[0] + j.entries[1][q].at * r.x.at[1]
            g = y + z * r.y.at[0] + q * r.y.at[1]
            if j.back and twice:
                for k in range(n // 2): p[k] += g[2 * k] + g[2 * k + 1]
            elif j.back:
                for k in range(n): p[e[k].at * step] += g[k * next]
            elif q and next == 1 and j.entries[1][q].at == j.entries[1][q - 1].at:
                memcpy(g, g - r.y.at[1], n * sizeof(real))
            elif twice:
                for k in range(n // 2): g[2 * k] = g[2 * k + 1] = p[k]
            else:
                for k in range(n): g[k * next] = p[e[k].at * step]


cdef void rows(const Job* j, real* x, real* y, real* row) noexcept nogil:
    """All rows of a plane. `row` is a sum of rows of X; with `back`, what a row of Y gives to one."""
    cdef const Resize* r = j.r
    cdef const Entry* e = j.entries[2]
    cdef Py_ssize_t z, q, k, a, b, i, w = r.size[2], step = r.x.at[2], next = r.y.at[2]
    cdef int taps = j.taps[2], nz = j.taps[0], ny = j.taps[1]
    cdef real weight, total
    cdef real* p
    cdef real* g
    if j.back:
        for z in range(r.size[0]):
            for q in range(r.size[1]):
                p = x + z * r.x.at[0] + q * r.x.at[1]
                for i in range(w): p[i * step] = 0
    for z in range(r.out[0]):
        for q in range(r.out[1]):
            g = y + z * r.y.at[0] + q * r.y.at[1]
            if j.back:
                memset(row, 0, w * sizeof(real))
                for k in range(r.out[2]):
                    for i in range(taps): row[e[k * taps + i].at] += <real>e[k * taps + i].weight * g[k * next]
            for a in range(nz):
                for b in range(ny):
                    weight = <real>(j.entries[0][z * nz + a].weight * j.entries[1][q * ny + b].weight)
                    p = x + j.entries[0][z * nz + a].at * r.x.at[0] + j.entries[1][q * ny + b].at * r.x.at[1]
                    if j.back:
                        for i in range(w): p[i * step] += weight * row[i]
                    elif a == 0 and b == 0:
                        for i in range(w): row[i] = weight * p[i * step]
                    else:
                        for i in range(w): row[i] += weight * p[i * step]
            if j.back: continue
            for k in range(r.out[2]):
                total = <real>e[k * taps].weight * row[e[k * taps].at]
                for i in range(1, taps): total += <real>e[k * taps + i].weight * row[e[k * taps + i].at]
                g[k * next] = total
