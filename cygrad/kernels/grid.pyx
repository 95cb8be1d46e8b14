"""Rows that several strided arrays of one shape have in common. Axes are merged where no array jumps from one to the
next, so that rows are as long as possible: x of shape (n, c, h, w) and a column of shape (c, 1, 1) have n c rows of h w
elements."""

from cygrad.kernels.array cimport MAX_OPERANDS, Array, Layout, itemsize


cdef inline Py_ssize_t step_along(const Array* a, int axis) noexcept nogil:
    """Bytes to the next element along an axis, which is counted from the end: -1 is the last one."""
    cdef int d = a.layout.ndim + axis
    return a.layout.strides[d] * itemsize(a.dtype) if d >= 0 and a.layout.size > 1 else 0


cdef void merge_axes(Grid* g, const Array* a, int n) noexcept nogil:
    """Set the shape and the steps of `g` for n arrays of equal shapes. The shape is that of the last one, which is not
    empty. The others may also be one element of any shape, or have no axis where the last one has first axes of 1."""
    cdef const Layout* y = a[n - 1].layout
    cdef int d, k, m = -1
    cdef bint merges
    cdef Py_ssize_t step[MAX_OPERANDS]
    for d in range(y.ndim):
        if y.shape[d] == 1: continue
        for k in range(n): step[k] = step_along(&a[k], d - y.ndim)
        merges = m >= 0
        for k in range(n):
            if merges and g.step[k][m] != step[k] * y.shape[d]: merges = False
        if merges: g.shape[m] *= y.shape[d]
        else:
            m += 1
            g.shape[m] = y.shape[d]
        for k in range(n): g.step[k][m] = step[k]
    if m < 0:
        m = 0
        g.shape[0] = 1
        for k in range(n): g.step[k][0] = 0
    g.ndim = m + 1


cdef void go_to(Grid* g, const Array* a, int n, Py_ssize_t row) noexcept nogil:
    """Let g.at be the beginnings of a row."""
    cdef int d, k
    for k in range(n): g.at[k] = a[k].data
    for d in range(g.ndim - 2, -1, -1):
        g.index[d] = row % g.shape[d]
        row = row // g.shape[d]
        for k in range(n): g.at[k] += g.index[d] * g.step[k][d]


cdef void go_on(Grid* g, int n, Py_ssize_t rows) noexcept nogil:
    """Go on by `rows` rows, which must not be more than are left along the axis of rows."""
    cdef int d = g.ndim - 2, k
    if d < 0: return
    g.index[d] += rows
    for k in range(n): g.at[k] += rows * g.step[k][d]
    while d > 0 and g.index[d] == g.shape[d]:       # carry
        g.index[d] = 0
        g.index[d - 1] += 1
        for k in range(n): g.at[k] += g.step[k][d - 1] - g.shape[d] * g.step[k][d]
        d -= 1
