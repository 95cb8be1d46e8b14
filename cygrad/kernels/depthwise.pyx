"""Depthwise convolutions, which have one input channel in each group. The inner loops run along rows of the output."""

from libc.string cimport memset

from cygrad.kernels.array cimport FLOAT32, real
from cygrad.kernels.conv cimport Conv, V, Y
from cygrad.kernels.lanes cimport dot_of

cdef struct Run:            # where one element of the kernel meets one row of Y
    Py_ssize_t first        # columns of Y whose element of X is inside of the plane
    Py_ssize_t last
    Py_ssize_t x            # the offset of the element of X for column 0, in elements from the start of its plane


cdef inline bint run_at(const Conv* v, Py_ssize_t tap, Py_ssize_t z, Py_ssize_t y, Run* run) noexcept nogil:
    """The run of a tap in row (z, y) of Y; returns False if the row of X is outside of the plane."""
    cdef Py_ssize_t ox = tap % v.kernel[2] * v.dilation[2] - v.low[2], s = v.stride[2]
    cdef Py_ssize_t yi = y * v.stride[1] + tap // v.kernel[2] % v.kernel[1] * v.dilation[1] - v.low[1]
    cdef Py_ssize_t zi = z * v.stride[0] + tap // (v.kernel[2] * v.kernel[1]) * v.dilation[0] - v.low[0]
    if yi < 0 or yi >= v.size[1] or zi < 0 or zi >= v.size[0] or ox >= v.size[2]: return False
    run.first = 0 if ox >= 0 else (s - 1 - ox) // s
    run.last = min(v.out[2], (v.size[2] - 1 - ox) // s + 1)
    run.x = zi * v.x.at[0] + yi * v.x.at[1] + ox * v.x.at[2]
    return run.first < run.last


cdef void y_of(const Conv* v, const real* x, const real* w, real* y) noexcept nogil:
    """y = the convolution of the plane x with the kernel w, + y if v.adds"""
    cdef Py_ssize_t step = v.stride[2] * v.x.at[2], row, tap, i
    cdef Run run
    if not v.adds: memset(y, 0, v.positions * sizeof(real))
    for row in range(v.out[0] * v.out[1]):
        for tap in range(v.taps):
            if not run_at(v, tap, row // v.out[1], row % v.out[1], &run): continue
            if step == 1:
                for i in range(run.first, run.last): y[i] += w[tap] * x[run.x + i]
            else:
                for i in range(run.first, run.last): y[i] += w[tap] * x[run.x + i * step]
        y += v.out[2]


cdef void add_x_of(const Conv* v, const real* y, const real* w, real* x) noexcept nogil:
    """x += the transposed convolution of the plane y with the kernel w"""
    cdef Py_ssize_t step = v.stride[2] * v.x.at[2], next = v.y.at[2], z, j, tap, i
    cdef const real* g
    cdef Run run
    for z in range(v.out[0]):
        for j in range(v.out[1]):
            g = y + z * v.y.at[0] + j * v.y.at[1]
            for tap in range(v.taps):
                if not run_at(v, tap, z, j, &run): continue
                if step == 1 and next == 1:
                    for i in range(run.first, run.last): x[run.x + i] += w[tap] * g[i]
                else:
                    for i in range(run.first, run.last): x[run.x + i * step] += w[tap] * g[i * next]


cdef double v_of(const Conv* v, const real* x, const real* y, Py_ssize_t tap) noexcept nogil:
    """The sum of x at a tap times y, over one plane."""
    cdef Py_ssize_t step = v.stride[2] * v.x.at[2], next = v.y.at[2], z, j, i
    cdef const real* g
    cdef double total = 0
    cdef Run run
    for z in range(v.out[0]):
        for j in range(v.out[1]):
            if not run_at(v, tap, z, j, &run): continue
            g = y + z * v.y.at[0] + j * v.y.at[1]
            if step == 1 and next == 1:
                total += dot_of[real](x + run.x + run.first, g + run.first, run.last - run.first)
            else:
                for i in range(run.first, run.last): total += <double>x[run.x + i * step] * g[i * next]
    return total


cdef void planes_of(const Conv* v, real* x, real* y, real* w) noexcept nogil:
    """Y or X of one image and group; x, y and w are the first of the group."""
    cdef Py_ssize_t k
    if v.role == Y:
        for k in range(v.o): y_of[real](v, x, w + k * v.taps, y + k * v.y.channel)
        return
    if not v.adds: memset(x, 0, v.size[0] * v.size[1] * v.size[2] * sizeof(real))
    for k in range(v.o): add_x_of[real](v, y + k * v.y.channel, w + k * v.taps, x)


cdef void weights_of(const Conv* v, real* x, real* y, real* w) noexcept nogil:
    """V of one group, summed over all images."""
    cdef Py_ssize_t k, tap, n
    cdef double total
    for k in range(v.o):
        for tap in range(v.taps):
            total = w[k * v.taps + tap] if v.adds else 0
            for n in range(v.n):
                total += v_of[real](v, x + n * v.x.image, y + n * v.y.image + k * v.y.channel, tap)
            w[k * v.taps + tap] = <real>total


cdef void depthwise_item(const Conv* v, Py_ssize_t i) noexcept nogil:
    """X or Y of image i // groups and group i % groups, or V of group i."""
    cdef Py_ssize_t group = i % v.groups, image = i // v.groups
    cdef Py_ssize_t x = image * v.x.image + group * v.x.channel, y = image * v.y.image + group * v.o * v.y.channel
    cdef Py_ssize_t w = group * v.o * v.taps
    if v.dtype == FLOAT32:
        if v.role == V: weights_of[float](v, <float*>v.x.data + x, <float*>v.y.data + y, <float*>v.v + w)
        else: planes_of[float](v, <float*>v.x.data + x, <float*>v.y.data + y, <float*>v.v + w)
    elif v.role == V: weights_of[double](v, <double*>v.x.data + x, <double*>v.y.data + y, <double*>v.v + w)
    else: planes_of[double](v, <double*>v.x.data + x, <double*>v.y.data + y, <double*>v.v + w)
