cdef enum:
    GRAIN = 32768           # the work of one thread: elements of cost 1 (Loop.cost in driver.pxd)

# Computes the range from start to stop of a job; see parallel_for().
ctypedef void (*range_t)(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil

cdef int n_threads          # that kernels may use

cdef void parallel_for(range_t f, void* job, Py_ssize_t n, Py_ssize_t part, int t) noexcept nogil


cdef inline int threads_for(Py_ssize_t work) noexcept nogil:
    """The number of threads to start for so many elements of cost 1. For 64 Ki elements, two threads are 0.9 times as
    fast as one at addition and 1.1 times at exponentials; for 128 Ki elements, 2.2 and 1.8 times."""
    cdef Py_ssize_t max_
    if work < 2 * GRAIN or n_threads == 1: return 1
    max_ = work // GRAIN
    return n_threads if max_ >= n_threads else <int>max_
