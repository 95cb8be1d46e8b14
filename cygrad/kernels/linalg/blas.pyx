"""Row-major matrix products. gemm() shares a product among threads. Kernels that share their own work call product()
between begin_products() and end_products(), and kernels/linalg/matrices.pyx calls LAPACK between begin() and end().

Products are those of panels.pyx, or, with CYGRAD_BLAS=scipy, those of SciPy's cython_blas. Its function
pointers are loaded on the first product, so importing cygrad does not import SciPy. A large product is
divided into row panels, one for each thread, and each panel calls a single-threaded BLAS. The first product that starts
sets BLAS's number of threads to 1, and the last one that ends restores it. If a product ran on BLAS's threads while
another thread forks, fork would wait forever."""

import os

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from cygrad.kernels.array cimport itemsize
from cygrad.kernels.by_dtype cimport call, put_number
from cygrad.kernels.linalg.panels cimport Factors, factors_of, multiply_alone, multiply_shared
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
    void cg_rest()

cdef extern from "Python.h" nogil:
    int PyGILState_Check()
    void* PyEval_SaveThread()
    void PyEval_RestoreThread(void* state)

own = True
cdef bint forking = False       # a fork has the lock
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
    from cygrad.kernels.linalg.libraries import scipy_functions

    try: capi = scipy_functions("cython_blas")
    except ImportError as e:
        raise ImportError("CYGRAD_BLAS is 'scipy', but SciPy cannot be imported; install it with pip install "
                          "'cygrad[linalg]', or unset CYGRAD_BLAS") from e
    dgemm = <dgemm_t>PyCapsule_GetPointer(capi["dgemm"], PyCapsule_GetName(capi["dgemm"]))
    find_threads("scipy")
    sgemm = <sgemm_t>PyCapsule_GetPointer(capi["sgemm"], PyCapsule_GetName(capi["sgemm"]))     # last: marks the end


cdef int find_threads(str package) except -1:
    """Find the functions that read and set the number of threads of the OpenBLAS of SciPy or NumPy."""
    global set_threads, get_threads
    from cygrad.kernels.linalg.libraries import thread_functions

    setter, getter = thread_functions(package)
    set_threads, get_threads = <set_threads_t><uintptr_t>setter, <get_threads_t><uintptr_t>getter


def are_own(name):
    """Whether products are cygrad's, by the value of CYGRAD_BLAS, or None. Raises ValueError for another name."""
    name = name if name else "own"
    if name not in ("own", "scipy"):
        raise ValueError(f"CYGRAD_BLAS is {name!r}; it must be own (the default) or scipy")
    return name != "scipy"


own = are_own(os.environ.get("CYGRAD_BLAS"))


def blas_info():
    """The BLAS that multiplies matrices, as a string. Loads it."""
    if sgemm == NULL: load()
    import scipy
    threads = f"{get_threads()} threads" if get_threads != NULL else "unknown number of threads"
    return f"scipy.linalg.cython_blas of SciPy {scipy.__version__} ({threads})"


cdef void take_lock() noexcept nogil:
    """Take the lock. While a fork has it, the hooks of other modules run, which may need the GIL."""
    cdef void* state
    while forking:
        state = PyEval_SaveThread() if PyGILState_Check() else NULL
        cg_rest()
        if state != NULL: PyEval_RestoreThread(state)
    cg_lock(&lock)


cdef void begin() noexcept nogil:
    """Count a product that starts. The first sets BLAS to one thread."""
    global running, own_threads
    take_lock()
    if running == 0 and get_threads != NULL:
        own_threads = get_threads()
        if own_threads != 1: set_threads(1)
    running += 1
    cg_unlock(&lock)


cdef void end() noexcept nogil:
    """Count a product that ends. The last restores BLAS's number of threads."""
    global running
    take_lock()
    running -= 1
    if running == 0 and own_threads != 1: set_threads(own_threads)
    cg_unlock(&lock)


def _before_fork():
    """Let no other thread change the number of threads during a fork: in the child the lock of BLAS stays locked."""
    global forking
    cg_lock(&lock)
    forking = True


def _after_fork_in_parent():
    global forking
    forking = False
    cg_unlock(&lock)


def _after_fork_in_child():
    """Discard the products of the parent's other threads, which never end in the child."""
    global running
    _after_fork_in_parent()
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
    double alpha, beta


cdef void panel(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows start to stop - 1. BLAS is column-major and reads our matrices as their transposes: C' = B' A'."""
    cdef Product* p = <Product*>job
    cdef char t = b'T', no = b'N'
    cdef double alpha, beta                         # numbers of the dtype
    cdef int m = <int>(stop - start), size = itemsize(p.dtype)
    cdef const char* a = p.a + start * (1 if p.ta else p.lda) * size
    cdef char* c = p.c + start * p.ldc * size
    put_number(p.dtype, &alpha, 0, p.alpha)
    put_number(p.dtype, &beta, 0, p.beta)
    call(p.dtype, sgemm, dgemm, &t if p.tb else &no, &t if p.ta else &no, &p.n, &m, &p.k, <void*>&alpha, <void*>p.b,
         &p.ldb, <void*>a, &p.lda, <void*>&beta, <void*>c, &p.ldc)


cdef int check_sizes(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 nogil:
    """Raises ValueError if a size of the product (m, k) x (k, n) does not fit into 32 bits, as kernels and BLAS
    require."""
    if m > 0x7fffffff or n > 0x7fffffff or k > 0x7fffffff: return refuse_sizes(m, n, k)


cdef int refuse_sizes(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 with gil:
    raise ValueError(f"a matrix product of ({m}, {k}) and ({k}, {n}) is larger than the 32-bit sizes of products allow")


cdef int begin_products() except -1 nogil:
    """Load BLAS and set it to one thread until end_products(). In between, any thread may call product()."""
    if own: return 0
    if sgemm == NULL:
        with gil: load()
    begin()


cdef void end_products() noexcept nogil:
    if not own: end()


cdef void product(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                  const char* b, Py_ssize_t ldb, double beta, char* c, Py_ssize_t ldc) noexcept nogil:
    """gemm() in the calling thread alone, between begin_products() and end_products(), for sizes that check_sizes() has
    passed."""
    scaled_product(dtype, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc)


cdef void scaled_product(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                         const char* a, Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                         Py_ssize_t ldc) noexcept nogil:
    cdef Factors f = factors_of(dtype, ta, tb, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    cdef Product p
    if own or m < 2 or n < 2 or k < 2: multiply_alone(&f, m)
    else:
        p = Product(dtype, ta, tb, <int>n, <int>k, <int>max(lda, 1), <int>max(ldb, 1), <int>max(ldc, 1), a, b, c, alpha,
                    beta)
        panel(&p, 0, m)


cdef int gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
              const char* b, Py_ssize_t ldb, double beta, char* c, Py_ssize_t ldc) except -1 nogil:
    """scaled_gemm() with alpha = 1."""
    return scaled_gemm(dtype, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc)


cdef int scaled_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                     const char* a, Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                     Py_ssize_t ldc) except -1 nogil:
    """C := alpha op(A) op(B) + beta C, all row-major: op(A) is (m, k), op(B) is (k, n), C is (m, n); ta and tb
    transpose. With beta = 0, C is not read. Raises ValueError for sizes that do not fit into 32 bits."""
    return biased_gemm(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, NULL)


cdef int biased_gemm(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha,
                     const char* a, Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                     Py_ssize_t ldc, const char* bias) except -1 nogil:
    """The same, or, unless `bias` is NULL, C := alpha op(A) op(B) + the n numbers of `bias` in each row, with the bits
    of a C that starts as these and beta = 1."""
    cdef int t
    cdef Product p
    cdef Factors f
    cdef Py_ssize_t i
    if m > 1 and n > 1 and k > 1: check_sizes(m, n, max(k, lda, ldb, ldc))
    if own or m < 2 or n < 2 or k < 2:
        f = factors_of(dtype, ta, tb, n, k, alpha, a, lda, b, ldb, beta if bias == NULL else 1, c, ldc)
        f.d = bias
        multiply_shared(&f, m)
        return 0
    if bias != NULL:
        for i in range(m): memcpy(c + i * ldc * itemsize(dtype), bias, n * itemsize(dtype))
        beta = 1
    begin_products()
    if m * n * k < 16 * GRAIN: scaled_product(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    else:
        t = threads_for(m * n * k // 32)
        p = Product(dtype, ta, tb, <int>n, <int>k, <int>max(lda, 1), <int>max(ldb, 1), <int>max(ldc, 1), a, b, c, alpha,
                    beta)
        parallel_for(panel, &p, m, (m + t - 1) // t, t)
    end_products()
