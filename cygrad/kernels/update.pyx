"""A solver's step over one parameter: fused, in place, without temporaries. Each is one pass over dense memory, in one
range of elements to a thread."""

from cython.parallel cimport prange
from libc cimport math

from cygrad.kernels.array cimport FLOAT32, real, view1d, view1f
from cygrad.kernels.driver cimport threads_for


cdef inline real sqrt(real x) noexcept nogil: return math.sqrtf(x) if real is float else math.sqrt(x)


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


cdef void sgd(int dtype, Py_ssize_t n, char* w, const char* g, double lr) noexcept nogil:
    cdef float[::1] wf = None, gf = None
    cdef double[::1] wd = None, gd = None
    cdef int t = threads_for(n), i
    cdef Py_ssize_t part = (n + t - 1) // t, start
    for i in prange(t, num_threads=t, schedule="static", use_threads_if=t > 1):
        start = i * part
        span_sgd(dtype, start, min(n, start + part), w, g, lr)


cdef void span_sgd(int dtype, Py_ssize_t start, Py_ssize_t stop, char* w, const char* g, double lr) noexcept nogil:
    cdef float[::1] wf = None, gf = None
    cdef double[::1] wd = None, gd = None
    if start >= stop: return
    if dtype == FLOAT32:
        view1f(wf, <float*>w + start, stop - start)
        view1f(gf, <float*>g + start, stop - start)
        sgd_[float](wf, gf, <float>lr)
    else:
        view1d(wd, <double*>w + start, stop - start)
        view1d(gd, <double*>g + start, stop - start)
        sgd_[double](wd, gd, lr)


cdef void adam(int dtype, Py_ssize_t n, char* w, const char* g, char* m, char* v, double rate, double beta1,
               double beta2, double eps) noexcept nogil:
    cdef int t = threads_for(n), i
    cdef Py_ssize_t part = (n + t - 1) // t, start
    for i in prange(t, num_threads=t, schedule="static", use_threads_if=t > 1):
        start = i * part
        span_adam(dtype, start, min(n, start + part), w, g, m, v, rate, beta1, beta2, eps)


cdef void span_adam(int dtype, Py_ssize_t start, Py_ssize_t stop, char* w, const char* g, char* m, char* v, double rate,
                    double beta1, double beta2, double eps) noexcept nogil:
    cdef float[::1] wf = None, gf = None, mf = None, vf = None
    cdef double[::1] wd = None, gd = None, md = None, vd = None
    if start >= stop: return
    if dtype == FLOAT32:
        view1f(wf, <float*>w + start, stop - start)
        view1f(gf, <float*>g + start, stop - start)
        view1f(mf, <float*>m + start, stop - start)
        view1f(vf, <float*>v + start, stop - start)
        adam_[float](wf, gf, mf, vf, <float>rate, <float>beta1, <float>beta2, <float>eps)
    else:
        view1d(wd, <double*>w + start, stop - start)
        view1d(gd, <double*>g + start, stop - start)
        view1d(md, <double*>m + start, stop - start)
        view1d(vd, <double*>v + start, stop - start)
        adam_[double](wd, gd, md, vd, rate, beta1, beta2, eps)
