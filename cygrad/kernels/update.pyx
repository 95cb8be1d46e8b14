"""Update steps of solvers for one parameter: fused, in place, without temporaries. Each is one pass over dense memory,
with one range of elements for each thread."""

from cygrad.kernels.array cimport FLOAT32, real, view1d, view1f
from cygrad.kernels.grouping cimport Groups
from cygrad.kernels.threads cimport parallel_for, threads_for
from cygrad.kernels.mathematics cimport sqrt


cdef void sgd_(real[::1] w, real[::1] g, real lr) noexcept nogil:
    """w -= lr g"""
    cdef Py_ssize_t i
    for i in range(w.shape[0]):
        w[i] -= lr * g[i]


cdef void adam_(real[::1] w, real[::1] g, real[::1] m, real[::1] v, real rate, real beta1, real beta2,
                real eps) noexcept nogil:
    """m, v: running means of g and g^2; w -= rate m / (sqrt(v) + eps), rate = lr sqrt(1 - beta2^t) / (1 - beta1^t)
    (Kingma and Ba 2015, section 2, with eps outside the correction)."""
    cdef Py_ssize_t i
    cdef real a, b
    for i in range(w.shape[0]):
        a = beta1 * m[i] + (1 - beta1) * g[i]
        b = beta2 * v[i] + (1 - beta2) * g[i] * g[i]
        m[i] = a
        v[i] = b
        w[i] -= rate * a / (sqrt(b) + eps)


# ---- entry points ----------------------------------------------------------------------------------------------------

cdef struct Step:
    int dtype
    char* w
    const char* g
    char* m
    char* v
    double rate, beta1, beta2, eps


cdef void sgd(int dtype, Py_ssize_t n, char* w, const char* g, double lr) noexcept nogil:
    cdef Step step = Step(dtype, w, g, NULL, NULL, lr, 0, 0, 0)
    cdef int t = threads_for(n)
    parallel_for(sgd_range, &step, n, (n + t - 1) // t, t)


cdef void sgd_range(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Step* s = <Step*>job
    if s.dtype == FLOAT32: sgd_[float](view1f(<float*>s.w + a, b - a), view1f(<float*>s.g + a, b - a), <float>s.rate)
    else:                  sgd_[double](view1d(<double*>s.w + a, b - a), view1d(<double*>s.g + a, b - a), s.rate)


cdef void adam(int dtype, Py_ssize_t n, char* w, const char* g, char* m, char* v, double rate, double beta1,
               double beta2, double eps) noexcept nogil:
    cdef Step step = Step(dtype, w, g, m, v, rate, beta1, beta2, eps)
    cdef int t = threads_for(n)
    parallel_for(adam_range, &step, n, (n + t - 1) // t, t)


cdef void adam_range(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Step* s = <Step*>job
    if s.dtype == FLOAT32:
        adam_[float](view1f(<float*>s.w + a, b - a), view1f(<float*>s.g + a, b - a), view1f(<float*>s.m + a, b - a),
                     view1f(<float*>s.v + a, b - a), <float>s.rate, <float>s.beta1, <float>s.beta2, <float>s.eps)
    else:
        adam_[double](view1d(<double*>s.w + a, b - a), view1d(<double*>s.g + a, b - a), view1d(<double*>s.m + a, b - a),
                      view1d(<double*>s.v + a, b - a), s.rate, s.beta1, s.beta2, s.eps)


# ---- rows ------------------------------------------------------------------------------------------------------------

cdef enum:
    TILE = 64               # elements of a row that are summed on the stack

cdef struct RowStep:
    const Groups* groups
    char* w
    const char* g
    Py_ssize_t row
    int dtype
    double rate


cdef void sgd_rows(int dtype, const Groups* groups, Py_ssize_t row, char* w, const char* g, double lr) noexcept nogil:
    """w[index] -= lr g for the rows of a row-sparse gradient; those of equal indices are summed before."""
    cdef RowStep step = RowStep(groups, w, g, row, dtype, lr)
    cdef int t = threads_for(groups.starts[groups.n] * row)
    parallel_for(sgd_rows_range, &step, groups.n, (groups.n + t - 1) // t, t)


cdef void sgd_rows_range(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef RowStep* s = <RowStep*>job
    if s.dtype == FLOAT32: sgd_rows_[float](s, <float*>s.w, <const float*>s.g, a, b, <float>s.rate)
    else:                  sgd_rows_[double](s, <double*>s.w, <const double*>s.g, a, b, s.rate)


cdef void sgd_rows_(const RowStep* s, real* w, const real* g, Py_ssize_t a, Py_ssize_t b, real lr) noexcept nogil:
    cdef real total[TILE]
    cdef const Groups* groups = s.groups
    cdef const real* x
    cdef real* y
    cdef Py_ssize_t k, j, i, start, count, first
    for k in range(a, b):
        first = groups.starts[k]
        y = w + groups.index[groups.order[first]] * s.row
        if groups.starts[k + 1] == first + 1:
            x = g + groups.order[first] * s.row
            for i in range(s.row): y[i] -= lr * x[i]
            continue
        start = 0
        while start < s.row:
            count = min(s.row - start, <Py_ssize_t>TILE)
            for i in range(count): total[i] = 0
            for j in range(first, groups.starts[k + 1]):
                x = g + groups.order[j] * s.row + start
                for i in range(count): total[i] += x[i]
            for i in range(count): y[start + i] -= lr * total[i]
            start += TILE
