"""Sums along any axes of arrays of any strides.

The result is seen in the shape of the operand, with strides of 0 along what is summed: y[...] += x[...] over all
indices is then the sum, and one walk serves every axis. Neighbouring dimensions that continue each other are merged
first, so most sums are one or two loops.

A contiguous run is summed in eight lanes, and its blocks of 512 in double precision, so that the error of a float32
sum does not grow with its length."""

from libc.string cimport memset

from cygrad.kernels.array cimport FLOAT32, MAX_NDIM, Array, Layout, itemsize, real, view1d, view1f

cdef enum:
    BLOCK = 512
    LANES = 8


cdef double run_sum(real[::1] x) noexcept nogil:
    """The sum of a contiguous run."""
    cdef real lane[LANES]
    cdef double total = 0
    cdef Py_ssize_t start = 0, stop, i, n = x.shape[0]
    cdef int l
    while start < n:
        stop = start + BLOCK if start + BLOCK < n else n
        for l in range(LANES): lane[l] = 0
        i = start
        while i + LANES <= stop:
            for l in range(LANES): lane[l] += x[i + l]
            i += LANES
        while i < stop:
            lane[0] += x[i]
            i += 1
        total += <double>(((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])))
        start = stop
    return total


cdef void run_add(real[::1] x, real[::1] y) noexcept nogil:
    """y += x"""
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] += x[i]


cdef void walk(real* x, real* y, int ndim, const Py_ssize_t* shape, const Py_ssize_t* sx,
               const Py_ssize_t* sy) noexcept nogil:
    """y[index] += x[index] over all indices; the last dimension is the inner loop."""
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t n = shape[ndim - 1], step_x = sx[ndim - 1], step_y = sy[ndim - 1], i
    cdef int d
    cdef double total
    for d in range(ndim): index[d] = 0
    while True:
        if step_x == 1 and step_y == 0:
            if real is float:
                y[0] += <real>run_sum[float](view1f(x, n))
            else:
                y[0] += run_sum[double](view1d(x, n))
        elif step_x == 1 and step_y == 1:
            if real is float:
                run_add[float](view1f(x, n), view1f(y, n))
            else:
                run_add[double](view1d(x, n), view1d(y, n))
        elif step_y == 0:
            total = 0
            for i in range(n): total += x[i * step_x]
            y[0] += <real>total
        else:
            for i in range(n): y[i * step_y] += x[i * step_x]
        d = ndim - 2
        while d >= 0:
            index[d] += 1
            x += sx[d]
            y += sy[d]
            if index[d] < shape[d]: break
            x -= shape[d] * sx[d]
            y -= shape[d] * sy[d]
            index[d] = 0
            d -= 1
        if d < 0: return


cdef int sum_into(const Array* x, const Array* y) except -1:
    """y = the sum of x, y dense in memory of its own but described in the shape of x, with strides of 0 along what is
    summed."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t sx[MAX_NDIM]
    cdef Py_ssize_t sy[MAX_NDIM]
    cdef Py_ssize_t kept = 1, t
    cdef const Layout* lx = x.layout
    cdef const Layout* ly = y.layout
    cdef int d, n = 0, swap
    for d in range(lx.ndim):
        if ly.strides[d] != 0: kept *= lx.shape[d]
    memset(y.data, 0, kept * itemsize(y.dtype))
    if lx.size == 0: return 0
    for d in range(lx.ndim):
        if lx.shape[d] == 1: continue
        if n and sx[n - 1] == lx.shape[d] * lx.strides[d] and sy[n - 1] == lx.shape[d] * ly.strides[d]:
            shape[n - 1] *= lx.shape[d]             # it continues the dimension before
        else:
            shape[n] = lx.shape[d]
            n += 1
        sx[n - 1], sy[n - 1] = lx.strides[d], ly.strides[d]
    if n == 0:
        shape[0], sx[0], sy[0], n = 1, 1, 0, 1
    swap = n - 1                                    # the inner loop runs where x lies closest together
    for d in range(n):
        if sx[d] != 0 and (sx[swap] == 0 or abs(sx[d]) < abs(sx[swap])): swap = d
    if swap != n - 1:
        t = shape[swap]; shape[swap] = shape[n - 1]; shape[n - 1] = t
        t = sx[swap]; sx[swap] = sx[n - 1]; sx[n - 1] = t
        t = sy[swap]; sy[swap] = sy[n - 1]; sy[n - 1] = t
    if lx.size < 16384:
        if x.dtype == FLOAT32: walk[float](<float*>x.data, <float*>y.data, n, shape, sx, sy)
        else:                  walk[double](<double*>x.data, <double*>y.data, n, shape, sx, sy)
    else:
        with nogil:
            if x.dtype == FLOAT32: walk[float](<float*>x.data, <float*>y.data, n, shape, sx, sy)
            else:                  walk[double](<double*>x.data, <double*>y.data, n, shape, sx, sy)
    return 0


cdef int sum_to(const Array* x, const Array* y) except -1:
    """y = x summed over what broadcasting had repeated; y is dense, its shape broadcasts to that of x."""
    cdef Layout seen = x.layout[0]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Array z = y[0]
    cdef int d, i
    if y.layout.size == 0: return 0                 # (nothing to write, and the strides of nothing may be anything)
    for d in range(seen.ndim):
        i = d - seen.ndim + y.layout.ndim
        strides[d] = y.layout.strides[i] if i >= 0 and y.layout.shape[i] != 1 else 0
    seen.strides = strides
    z.layout = &seen
    return sum_into(x, &z)
