"""Row-major matrix products through SciPy's cython_blas. gemm() shares a product among threads. Kernels that share
their own work call product() between begin_products() and end_products(), and kernels/linalg/lapack.pyx calls LAPACK
between begin() and end().

The function pointers are loaded on the first product, so importing cygrad does not import SciPy. A large product is
divided into row panels, one for each thread, and each panel calls a single-threaded BLAS. The first product that starts
sets BLAS's number of threads to 1, and the last one that ends restores it. If a product ran on BLAS's threads while
another thread forks, fork would wait forever."""

import os

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, put_number
from cygrad.kernels.lanes cimport dot_of
from cygrad.kernels.threads cimport GRAIN, parallel_for, threads_for

ctypedef void (*sgemm_t)(char*, char*, int*, int*, int*, float*, float*, int*, float*, int*, float*, float*,
                         int*) noexcept nogil
ctypedef void (*dgemm_t)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*, double*,
                         int*) noexcept nogil
ctypedef void (*set_threads_t)(int) noexcept nogil
ctypedef int (*get_threads_t)() noexcept nogil

cdef extern from "cygrad/platform.h" nogil:
    void cg_lock(long* lock)
    void cg_unlock(long* lock)

cdef long lock = 0              # guards `running`, `own_threads` and BLAS's number of threads
cdef sgemm_t sgemm = NULL
cdef dgemm_t dgemm = NULL
cdef set_threads_t set_threads = NULL
cdef get_threads_t get_threads = NULL
cdef int running = 0            # products that run now, in all threads
cdef int own_threads = 1              # BLAS's number of threads before the first of them

cdef int load() except -1:
    """Load the function pointers."""
    global sgemm, dgemm
    import importlib

    capi = importlib.import_module("scipy.linalg.cython_blas").__pyx_capi__
    dgemm = <dgemm_t>PyCapsule_GetPointer(capi["dgemm"], PyCapsule_GetName(capi["dgemm"]))
    find_threads()
    sgemm = <sgemm_t>PyCapsule_GetPointer(capi["sgemm"], PyCapsule_GetName(capi["sgemm"]))     # last: marks the end


cdef int find_threads() except -1:
    """Find the functions that read and set the number of threads of an OpenBLAS. Another BLAS has none."""
    global set_threads, get_threads
    import ctypes
    from pathlib import Path

    import scipy
    for library in sorted(Path(scipy.__file__).parent.parent.glob("scipy.libs/*openblas*")):
        handle = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads"):
            if hasattr(handle, name.format("set")):
                set_threads = <set_threads_t><uintptr_t>address(handle[name.format("set")])
                get_threads = <get_threads_t><uintptr_t>address(handle[name.format("get")])
                return 0


cdef uintptr_t address(function) except? 0:
    import ctypes
    return ctypes.cast(function, ctypes.c_void_p).value


def blas_info():
    """The BLAS that multiplies matrices, as a string. Loads it."""
    if sgemm == NULL: load()
    import scipy
    threads = f"{get_threads()} threads" if get_threads != NULL else "unknown number of threads"
    return f"scipy.linalg.cython_blas of SciPy {scipy.__version__} ({threads})"


cdef void begin() noexcept nogil:
    """Count a product that starts. The first sets BLAS to one thread."""
    global running, own_threads
    cg_lock(&lock)
    if running == 0 and get_threads != NULL:
        own_threads = get_threads()
        if own_threads != 1: set_threads(1)
    running += 1
    cg_unlock(&lock)


cdef void end() noexcept nogil:
    """Count a product that ends. The last restores BLAS's number of threads."""
    global running
    cg_lock(&lock)
    running -= 1
    if running == 0 and own_threads != 1: set_threads(own_threads)
    cg_unlock(&lock)


def _before_fork():
    """Let no other thread change the number of threads during a fork: in the child the lock of BLAS stays locked."""
    cg_lock(&lock)


def _after_fork_in_parent():
    cg_unlock(&lock)


def _after_fork_in_child():
    """Discard the products of the parent's other threads, which never end in the child."""
    global running
    cg_unlock(&lock)
    if running > 0:
        running = 1
        end()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                        after_in_child=_after_fork_in_child)


cdef struct Product:
    int dtype
    bint ta, tb
    int n, k, lda, ldb, ldc
    const char* a
    const char* b
    char* c
    double beta


cdef void panel(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows start to stop - 1. BLAS is column-major and reads our matrices as their transposes: C' = B' A'."""
    cdef Product* p = <Product*>job
    cdef char t = b'T', no = b'N'
    cdef double alpha, beta                         # numbers of the dtype
    cdef int m = <int>(stop - start), size = itemsize(p.dtype)
    cdef const char* a = p.a + start * (1 if p.ta else p.lda) * size
    cdef char* c = p.c + start * p.ldc * size
    put_number(p.dtype, &alpha, 0, 1)
    put_number(p.dtype, &beta, 0, p.beta)
    call(p.dtype, sgemm, dgemm, &t if p.tb else &no, &t if p.ta else &no, &p.n, &m, &p.k, <void*>&alpha, <void*>p.b,
         &p.ldb, <void*>a, &p.lda, <void*>&beta, <void*>c, &p.ldc)


cdef int check_sizes(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 nogil:
    """Raises ValueError if a size of the product (m, k) x (k, n) does not fit into 32 bits, as BLAS requires."""
    if m > 0x7fffffff or n > 0x7fffffff or k > 0x7fffffff: return refuse_sizes(m, n, k)


cdef int refuse_sizes(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 with gil:
    raise ValueError(f"a matrix product of ({m}, {k}) and ({k}, {n}) is larger than the 32-bit sizes of BLAS allow")


cdef void dot(const real* a, Py_ssize_t a_step, const real* b, Py_ssize_t b_step, Py_ssize_t k, double beta,
              real* c) noexcept nogil:
    """A product of one element: c = beta c + the sum of a b. For these, BLAS copies an operand on some CPUs, to memory
    from malloc that nothing counts."""
    cdef double s = 0
    cdef Py_ssize_t i
    if a_step == 1 and b_step == 1: s = dot_of(a, b, k)
    else:
        for i in range(k): s += <double>a[i * a_step] * b[i * b_step]
    c[0] = <real>(s if beta == 0 else beta * c[0] + s)


cdef int begin_products() except -1 nogil:
    """Load BLAS and set it to one thread until end_products(). In between, any thread may call product()."""
    if sgemm == NULL:
        with gil: load()
    begin()


cdef void end_products() noexcept nogil:
    end()


cdef void product(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                  const char* b, Py_ssize_t ldb, double beta, char* c, Py_ssize_t ldc) noexcept nogil:
    """gemm() in the calling thread alone, between begin_products() and end_products(), for sizes that check_sizes() has
    passed."""
    cdef Py_ssize_t row
    cdef Product p
    if m == 0 or n == 0: return
    if k == 0:
        if beta == 0:
            for row in range(m): memset(c + row * ldc * itemsize(dtype), 0, n * itemsize(dtype))
    elif m == 1 and n == 1:
        call(dtype, dot[float], dot[double], <void*>a, lda if ta else 1, <void*>b, 1 if tb else ldb, k, beta, <void*>c)
    else:
        p = Product(dtype, ta, tb, <int>n, <int>k, <int>max(lda, 1), <int>max(ldb, 1), <int>max(ldc, 1), a, b, c, beta)
        panel(&p, 0, m)


cdef int gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
              const char* b, Py_ssize_t ldb, double beta, char* c, Py_ssize_t ldc) except -1 nogil:
    """C := op(A) op(B) + beta C, all row-major: op(A) is (m, k), op(B) is (k, n), C is (m, n); ta and tb transpose.
    With beta = 0, C is not read. Raises ValueError for sizes that do not fit into 32 bits."""
    cdef int t
    cdef Product p
    if m * n <= 1 or k == 0:                                                # without BLAS
        product(dtype, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
        return 0
    check_sizes(m, n, max(k, lda, ldb, ldc))
    begin_products()
    if m * n * k < 16 * GRAIN: product(dtype, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
    else:
        t = threads_for(m * n * k // 32)
        p = Product(dtype, ta, tb, <int>n, <int>k, <int>max(lda, 1), <int>max(ldb, 1), <int>max(ldc, 1), a, b, c, beta)
        parallel_for(panel, &p, m, (m + t - 1) // t, t)
    end_products()
