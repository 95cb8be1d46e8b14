"""Runs kernels along one axis of a dense array, on rows or on columns, in threads. It also has two such kernels: dot
products of rows, and the products of all other elements.

The array has the shape (outer, n, inner), where n is the size of the axis. If inner is 1, the kernel runs on rows;
otherwise it runs on columns, a tile of them at a time."""

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport Kernels, call, element, kernel_of, matrix, reals, steps
from cygrad.kernels.threads cimport parallel_for, range_t, threads_for
from cygrad.kernels.lanes cimport dot_of

cdef enum:
    NARROW = 64             # columns of a tile where wider tiles would leave threads without work

ctypedef void (*two_t)(char[:, ::1], char[:, ::1]) noexcept nogil
ctypedef void (*three_t)(char[:, ::1], char[:, ::1], char[:, ::1]) noexcept nogil


cdef void share_rows(range_t f, Rows* job, Py_ssize_t rows) noexcept nogil:
    """Distribute rows among threads."""
    cdef int t = threads_for(exponential_cost(job.dtype) * rows * job.columns)
    parallel_for(f, job, rows, rows if t == 1 else (rows + 4 * t - 1) // (4 * t), t)


cdef void each_row(const RowLoop* loop, int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x,
                   const char* y, char* z) noexcept nogil:
    """z = loop(x) or z = loop(x, y) along n of dense arrays of shape (outer, n, inner). The result of a narrow loop has
    the shape (outer, inner). No size is 0."""
    cdef Rows job = Rows(loop, dtype, n, x, y, z, NULL, 0, inner, TILE)
    share_outer(&job, outer)


cdef void share_outer(Rows* job, Py_ssize_t outer) noexcept nogil:
    """Distribute rows, or tiles of columns, among threads."""
    cdef Py_ssize_t tiles
    cdef int t
    if job.inner == 1:
        share_rows(some_rows, job, outer)
        return
    t = threads_for(exponential_cost(job.dtype) * outer * job.columns * job.inner)
    if outer * job.inner < t * TILE: job.tile = NARROW
    tiles = outer * ((job.inner + job.tile - 1) // job.tile)
    parallel_for(some_tiles, job, tiles, tiles if t == 1 else (tiles + 4 * t - 1) // (4 * t), t)


cdef void some_rows(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t n = r.columns, width = 1 if r.loop.narrow else n
    run(r, &r.loop.along, a * n, b - a, n, n, a * width, b - a)


cdef void some_tiles(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t tiles = (r.inner + r.tile - 1) // r.tile, n = r.columns, rows = 1 if r.loop.narrow else n, i, at
    for i in range(a, b):
        at = i % tiles * r.tile
        run(r, &r.loop.across, i // tiles * n * r.inner + at, n,
            min(r.tile, r.inner - at), r.inner, i // tiles * rows * r.inner + at, rows)


cdef inline void run(const Rows* r, const Kernels* kernels, Py_ssize_t at, Py_ssize_t rows, Py_ssize_t columns,
                     Py_ssize_t step, Py_ssize_t z_at, Py_ssize_t z_rows) noexcept nogil:
    """Call one kernel on matrices that start at element `at` of x and y and at element `z_at` of z. The rows of x and y
    are `step` elements apart."""
    cdef Py_ssize_t wide = columns, z_step = step
    cdef void* f = kernel_of(kernels, r.dtype)
    if r.loop.narrow and r.inner == 1: wide = z_step = 1
    if r.loop.operands == 2:
        (<two_t>f)(steps(r.dtype, element(r.dtype, r.x, at), rows, columns, step),
                   steps(r.dtype, element(r.dtype, r.z, z_at), z_rows, wide, z_step))
    else:
        (<three_t>f)(steps(r.dtype, element(r.dtype, r.x, at), rows, columns, step),
                     steps(r.dtype, element(r.dtype, r.y, at), rows, columns, step),
                     steps(r.dtype, element(r.dtype, r.z, z_at), z_rows, wide, z_step))


# ---- dot products ----------------------------------------------------------------------------------------------------

cdef void dots_(real[:, ::1] x, real[:, ::1] y, real* z) noexcept nogil:
    """z_i = sum_j x_ij y_ij"""
    for i in range(x.shape[0]):
        z[i] = <real>dot_of[real](&x[i, 0], &y[i, 0], x.shape[1])


cdef void dots(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y, char* z) noexcept nogil:
    call(dtype, dots_[float], dots_[double], matrix(dtype, x, rows, columns), matrix(dtype, y, rows, columns), <void*>z)


# ---- products of all others ------------------------------------------------------------------------------------------

cdef void products(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    """y_ij = the product of all x_ik but x_ij

    This is the product before j times the product after j, so zeros need no special case. Four rows go at a time,
    because each product depends on the one before it; eight and their results, a power of two apart, would not fit into
    the sets of a first-level cache."""
    cdef real product[4]
    cdef Py_ssize_t i = 0, j, n = x.shape[1], m, l
    while i < x.shape[0]:
        m = 4 if x.shape[0] - i >= 4 else 1
        for l in range(m): product[l] = 1
        for j in range(n):
            for l in range(m):
                y[i + l, j] = product[l]
                product[l] *= x[i + l, j]
        for l in range(m): product[l] = 1
        for j in range(n - 1, -1, -1):
            for l in range(m):
                y[i + l, j] *= product[l]
                product[l] *= x[i + l, j]
        i += m


cdef void products_across(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    """The same on columns. The second pass finds the rows of the first in the cache."""
    cdef real product[TILE]
    cdef Py_ssize_t n = x.shape[0], k, j
    for j in range(x.shape[1]): product[j] = 1
    for k in range(n):
        for j in range(x.shape[1]):
            y[k, j] = product[j]
            product[j] *= x[k, j]
    for j in range(x.shape[1]): product[j] = 1
    for k in range(n - 1, -1, -1):
        for j in range(x.shape[1]):
            y[k, j] *= product[j]
            product[j] *= x[k, j]


cdef RowLoop OTHERS = RowLoop(reals(<void*>products[float], <void*>products[double]),
                              reals(<void*>products_across[float], <void*>products_across[double]), 2, False)
