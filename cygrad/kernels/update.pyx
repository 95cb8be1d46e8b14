"""A solver's step over one parameter: fused, in place, without temporaries. Each is one pass over dense memory, in one
range of elements to a thread."""

from cython.parallel cimport prange

from cygrad.kernels.array cimport FLOAT32, real, view1d, view1f
from cygrad.kernels.driver cimport threads_for
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


# ---- the doors: from raw memory to views, one range of elements to a thread ------------------------------------------

cdef void sgd(int dtype, Py_ssize_t n, char* w, const char* g, double lr) noexcept nogil:
    cdef int t = threads_for(n), i
    cdef Py_ssize_t part = (n + t - 1) // t
    if t == 1:
        span_sgd(dtype, 0, n, w, g, lr)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        span_sgd(dtype, i * part, min(n, (i + 1) * part), w, g, lr)


cdef void span_sgd(int dtype, Py_ssize_t a, Py_ssize_t b, char* w, const char* g, double lr) noexcept nogil:
    if a >= b: return
    if dtype == FLOAT32: sgd_[float](view1f(<float*>w + a, b - a), view1f(<float*>g + a, b - a), <float>lr)
    else:                sgd_[double](view1d(<double*>w + a, b - a), view1d(<double*>g + a, b - a), lr)


cdef void adam(int dtype, Py_ssize_t n, char* w, const char* g, char* m, char* v, double rate, double beta1,
               double beta2, double eps) noexcept nogil:
    cdef int t = threads_for(n), i
    cdef Py_ssize_t part = (n + t - 1) // t
    if t == 1:
        span_adam(dtype, 0, n, w, g, m, v, rate, beta1, beta2, eps)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        span_adam(dtype, i * part, min(n, (i + 1) * part), w, g, m, v, rate, beta1, beta2, eps)


cdef void span_adam(int dtype, Py_ssize_t a, Py_ssize_t b, char* w, const char* g, char* m, char* v, double rate,
                    double beta1, double beta2, double eps) noexcept nogil:
    if a >= b: return
    if dtype == FLOAT32:
        adam_[float](view1f(<float*>w + a, b - a), view1f(<float*>g + a, b - a), view1f(<float*>m + a, b - a),
                     view1f(<float*>v + a, b - a), <float>rate, <float>beta1, <float>beta2, <float>eps)
    else:
        adam_[double](view1d(<double*>w + a, b - a), view1d(<double*>g + a, b - a), view1d(<double*>m + a, b - a),
                      view1d(<double*>v + a, b - a), rate, beta1, beta2, eps)
