"""The few largest or smallest of every row, without sorting it."""

from libc.stdint cimport int64_t

from cygrad.kernels.array cimport FLOAT32, MAX_NDIM, Array, Layout, real


cdef inline bint before(real a, real b, bint largest) noexcept nogil:
    """Whether `a` comes before `b`; nan is the largest of all."""
    if largest: return a > b or (a != a and b == b)
    return a < b or (b != b and a == a)


cdef void topk_row(const real* x, Py_ssize_t n, Py_ssize_t step, int64_t* y, Py_ssize_t k, Py_ssize_t y_step,
                   bint largest) noexcept nogil:
    """The places of the first k of a row. A list of the best so far stays in order; most elements do not reach it."""
    cdef real best[SHORT]
    cdef int64_t place[SHORT]
    cdef Py_ssize_t i, j, count = 0
    cdef real v
    for i in range(n):
        v = x[i * step]
        if count < k: count += 1
        elif not before(v, best[k - 1], largest): continue
        j = count - 1
        while j > 0 and before(v, best[j - 1], largest):
            best[j], place[j] = best[j - 1], place[j - 1]
            j -= 1
        best[j], place[j] = v, i
    for j in range(k): y[j * y_step] = place[j]


cdef void topk(const Array* x, int axis, bint largest, const Array* y) noexcept nogil:
    """y = the places of the first y.shape[axis] (up to SHORT) elements of x along `axis`; floating x, int64 y."""
    cdef const Layout* l = x.layout
    cdef const Layout* m = y.layout
    cdef Py_ssize_t at[MAX_NDIM]
    cdef Py_ssize_t from_x = 0, to_y = 0, n = l.shape[axis], k = m.shape[axis], _i
    cdef int d
    if m.size == 0: return
    for d in range(l.ndim): at[d] = 0
    for _i in range(m.size // k):
        if x.dtype == FLOAT32:
            topk_row(<const float*>x.data + from_x, n, l.strides[axis], <int64_t*>y.data + to_y, k, m.strides[axis],
                     largest)
        else:
            topk_row(<const double*>x.data + from_x, n, l.strides[axis], <int64_t*>y.data + to_y, k, m.strides[axis],
                     largest)
        for d in range(l.ndim - 1, -1, -1):
            if d == axis: continue
            at[d] += 1
            from_x += l.strides[d]
            to_y += m.strides[d]
            if at[d] < l.shape[d]: break
            from_x -= l.shape[d] * l.strides[d]
            to_y -= l.shape[d] * m.strides[d]
            at[d] = 0
