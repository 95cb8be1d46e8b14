"""Singular values and eigenvalues of row-major matrices, by SciPy's LAPACK or by numpy.linalg.

If SciPy is installed (the extra cygrad[linalg]), its cython_lapack computes them, on the calling thread and without the
GIL. LAPACK is column-major: it reads a row-major matrix as its transpose. No matrix is transposed by a copy for that.
The factors are chosen instead so that those of the transpose are the wanted ones: the upper triangle for the lower one,
U and V exchanged.

Without SciPy, numpy.linalg computes them, with the GIL, in float64, and several small matrices in one call, which takes
10 us. It takes memory of its own: copies of its
operand and results, and LAPACK's work. The work that these functions ask for includes as many bytes, which they leave
untouched, so what the counters report and what limits bound is what is taken, or a little more.

The one or the other is loaded at first use."""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cpython.ref cimport PyObject, Py_INCREF
from numpy.linalg import LinAlgError

from cygrad.kernels.array cimport itemsize, loop_of, real
from cygrad.kernels.by_dtype cimport call, number
from cygrad.kernels.linalg.blas cimport find_threads

# void* stands for float* or double*.
ctypedef void (*gesdd_t)(char*, int*, int*, void*, int*, void*, void*, int*, void*, int*, void*, int*, int*,
                         int*) noexcept nogil
ctypedef void (*syevd_t)(char*, char*, int*, void*, int*, void*, void*, int*, int*, int*, int*) noexcept nogil

cdef enum:
    DOUBLE = sizeof(double)
    ELEMENTS = 1 << 14      # of the matrices of one call of numpy.linalg, unless one has more

cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char* p, Py_ssize_t nbytes, int flags)
    int PyBUF_WRITE

cdef gesdd_t gesdd[2]       # for LOOP_F32 and for LOOP_F64
cdef syevd_t syevd[2]
cdef bint loaded = False


cdef void* pointer(dict capi, str name) except NULL:
    return PyCapsule_GetPointer(capi[name], PyCapsule_GetName(capi[name]))


cdef int load() except -1:
    """Load SciPy's functions, or NumPy's if SciPy cannot be imported."""
    global loaded, by_numpy
    from cygrad.kernels.linalg.libraries import scipy_functions

    try: capi = scipy_functions("cython_lapack")
    except ImportError: by_numpy = True
    else:
        for i, letter in enumerate("sd"):
            gesdd[i] = <gesdd_t>pointer(capi, letter + "gesdd")
            syevd[i] = <syevd_t>pointer(capi, letter + "syevd")
    find_threads("numpy" if by_numpy else "scipy")              # for begin(), which sets LAPACK to one thread
    loaded = True


cdef int need() except -1 nogil:
    """Load SciPy's or NumPy's functions at first use."""
    if not loaded:
        with gil: load()


cdef int refuse_size(Py_ssize_t m, Py_ssize_t n) except -1 with gil:
    raise ValueError(f"a matrix of shape ({m}, {n}) is larger than the 32-bit sizes of LAPACK allow")


cdef int refuse_work(Py_ssize_t elements, Py_ssize_t m, Py_ssize_t n) except -1 nogil:
    if elements > 0x7fffffff: refuse_size(m, n)


# ---- numpy.linalg ----------------------------------------------------------------------------------------------------

cdef object memory(int dtype, char* p, Py_ssize_t count):
    """A memoryview of `count` elements, or None."""
    return None if p == NULL else PyMemoryView_FromMemory(p, count * itemsize(dtype), PyBUF_WRITE)


cdef int refused(e, PyObject** error) noexcept:
    """Pass an exception on, unless it says that an iteration did not converge."""
    if isinstance(e, LinAlgError): return 1
    Py_INCREF(e)
    error[0] = <PyObject*>e
    return 1


cdef Py_ssize_t at_once(Py_ssize_t count, Py_ssize_t elements) except -1 nogil:
    """How many of `count` matrices of so many elements one call decomposes: one, if it is not numpy.linalg's."""
    need()
    return max(<Py_ssize_t>1, min(count, ELEMENTS // max(elements, <Py_ssize_t>1))) if by_numpy else 1


# ---- singular values -------------------------------------------------------------------------------------------------

cdef Py_ssize_t svd_bytes(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint vectors,
                          bint full) except -1 nogil:
    """Bytes of work for `count` matrices: gesdd's integers and numbers."""
    cdef char job = b'N' if not vectors else b'A' if full else b'S'
    cdef Py_ssize_t k = min(m, n)
    cdef int rows = <int>m, columns = <int>n, ldu = max(columns, 1), ldvt = max(rows if full else <int>k, 1)
    cdef int query = -1, info = 0
    cdef double room = 0                            # (float32 uses the lower half)
    if k == 0: return 0
    need()
    if by_numpy:
        return count * DOUBLE * (DOUBLE // itemsize(dtype) * m * n + 80 * (m + n) + (
                                 5 * k * k + 2 * (m * m + n * n if full else k * (m + n)) if vectors else 0))
    gesdd[loop_of(dtype)](&job, &columns, &rows, NULL, &ldu, NULL, NULL, &ldu, NULL, &ldvt, &room, &query, NULL, &info)
    if info: refuse_size(m, n)
    refuse_work(<Py_ssize_t>number(dtype, <char*>&room, 0), m, n)
    return aligned(8 * k * INT) + <Py_ssize_t>number(dtype, <char*>&room, 0) * itemsize(dtype)


cdef int decompose_svd(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint full, char* a, char* u, char* s,
                       char* vh, char* work, size_t nbytes, PyObject** error) noexcept nogil:
    """Singular values of at_once() matrices a (m, n), which are overwritten, and unless u is NULL their vectors; u is
    (m, k) or (m, m), vh is (k, n) or (n, n). Column-major, the left vectors of a' are the right ones of a. `work` has
    `nbytes` of at least svd_bytes(). Sizes are at least 1. Returns 1 if one does not converge, or for an error."""
    cdef int rows = <int>m, columns = <int>n, k = <int>min(m, n), ldvt = rows if full else k, size, info
    cdef char job = b'N' if u == NULL else b'A' if full else b'S'
    cdef char* rest = work + aligned(8 * k * INT)
    if by_numpy:
        with gil:
            try: return numpy_svd(dtype, count, m, n, full, a, u, s, vh)
            except BaseException as e: return refused(e, error)
    size = <int>min(<Py_ssize_t>0x7fffffff, (<Py_ssize_t>nbytes - (rest - work)) // itemsize(dtype))
    gesdd[loop_of(dtype)](&job, &columns, &rows, a, &columns, s, vh, &columns, u, &ldvt, rest, &size, <int*>work, &info)
    return info != 0


cdef int numpy_svd(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint full, char* a, char* u, char* s,
                   char* vh) except -1:
    from cygrad.kernels.linalg.libraries import svd
    cdef Py_ssize_t k = min(m, n)
    svd(f"f{itemsize(dtype)}", count, m, n, bool(full), memory(dtype, a, count * m * n),
        memory(dtype, u, count * m * (m if full else k)), memory(dtype, s, count * k),
        memory(dtype, vh, count * n * (n if full else k)))


# ---- eigenvalues -----------------------------------------------------------------------------------------------------

cdef Py_ssize_t symmetric_bytes(int dtype, Py_ssize_t count, Py_ssize_t n, bint vectors) except -1 nogil:
    """Bytes of work for `count` matrices: syevd's numbers and integers."""
    cdef Py_ssize_t work = 1 + 6 * n + 2 * n * n if vectors else 2 * n + 1
    need()
    if by_numpy:
        return count * DOUBLE * (DOUBLE // itemsize(dtype) * n * n + (n * n if vectors else 0) + work + 80 * n)
    refuse_work(work, n, n)
    return aligned(work * itemsize(dtype)) + (3 + 5 * n if vectors else 1) * INT


cdef int decompose_symmetric(int dtype, Py_ssize_t count, Py_ssize_t n, bint upper, bint vectors, char* a, char* w,
                             char* work, PyObject** error) noexcept nogil:
    """Eigenvalues of at_once() matrices a (n, n), of which one triangle is read and which are overwritten, with
    `vectors` by their eigenvectors. n is at least 1. Returns 1 if one does not converge, or for an error."""
    cdef char what = b'V' if vectors else b'N', uplo = b'L' if upper else b'U'
    cdef int rows = <int>n, info
    cdef int n_work = 1 + 6 * rows + 2 * rows * rows if vectors else 2 * rows + 1
    cdef int n_integers = 3 + 5 * rows if vectors else 1
    cdef char* integers = work + aligned(n_work * itemsize(dtype))
    if by_numpy:
        with gil:
            try: return numpy_symmetric(dtype, count, n, upper, vectors, a, w)
            except BaseException as e: return refused(e, error)
    syevd[loop_of(dtype)](&what, &uplo, &rows, a, &rows, w, work, &n_work, <int*>integers, &n_integers, &info)
    if vectors: call(dtype, transpose[float], transpose[double], <void*>a, n)
    return info != 0


cdef int numpy_symmetric(int dtype, Py_ssize_t count, Py_ssize_t n, bint upper, bint vectors, char* a,
                         char* w) except -1:
    from cygrad.kernels.linalg.libraries import eigh
    eigh(f"f{itemsize(dtype)}", count, n, "U" if upper else "L", bool(vectors), memory(dtype, a, count * n * n),
         memory(dtype, w, count * n))


cdef void transpose(real* a, Py_ssize_t n) noexcept nogil:
    """Transpose in place, by blocks that fit into the cache."""
    cdef Py_ssize_t i, j, p, q
    cdef real v
    for p in range(0, n, 32):
        for q in range(0, p + 1, 32):
            for i in range(p, min(n, p + 32)):
                for j in range(q, min(i, q + 32)):
                    v = a[i * n + j]
                    a[i * n + j] = a[j * n + i]
                    a[j * n + i] = v
