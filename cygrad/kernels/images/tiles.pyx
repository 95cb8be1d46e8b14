"""Items of a job, such as the tiles of a result, on threads that each have a workspace of their own."""

from cygrad.kernels.threads cimport parallel_for

cdef extern from "cygrad/platform.h" nogil:
    void cg_lock(long* lock)
    void cg_unlock(long* lock)

cdef struct Items:
    item_t f
    void* job
    Py_ssize_t n
    Py_ssize_t next         # the first item that no worker has taken
    long lock               # guards `next`
    char* workspace
    size_t nbytes


cdef void workers(void* items, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Workers start to stop - 1: each takes one item after the other."""
    cdef Items* all = <Items*>items
    cdef Py_ssize_t w, i
    for w in range(start, stop):
        while True:
            cg_lock(&all.lock)
            i = all.next
            all.next += 1
            cg_unlock(&all.lock)
            if i >= all.n: break
            all.f(all.job, i, all.workspace + w * all.nbytes)


cdef void each_item(item_t f, void* job, Py_ssize_t n, int t, char* workspace, size_t nbytes) noexcept nogil:
    """f(job, i, ...) for each i below n, on `t` threads. Thread w works in nbytes bytes of the workspace from
    w * nbytes on. An item must write only what no other item reads or writes; then the result does not depend on the
    number of threads."""
    cdef Items items = Items(f, job, n, 0, 0, workspace, nbytes)
    parallel_for(workers, &items, t, 1, t)
