"""A binary heap of numbers with keys, the largest key on top, in memory that the caller owns."""

from libc.stdint cimport uint64_t

cdef struct Item:
    uint64_t key
    Py_ssize_t at


cdef inline void push(Item* heap, Py_ssize_t* n, Py_ssize_t at, uint64_t key) noexcept:
    cdef Py_ssize_t i = n[0], parent
    n[0] += 1
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent].key >= key: break
        heap[i] = heap[parent]
        i = parent
    heap[i].key, heap[i].at = key, at


cdef inline Py_ssize_t pop(Item* heap, Py_ssize_t* n) noexcept:
    """Remove the number with the largest key from a heap that is not empty, and return it."""
    cdef Py_ssize_t top = heap[0].at, i = 0, child
    cdef Item last
    n[0] -= 1
    if n[0] == 0: return top
    last = heap[n[0]]
    while True:
        child = 2 * i + 1
        if child >= n[0]: break
        if child + 1 < n[0] and heap[child + 1].key > heap[child].key: child += 1
        if heap[child].key <= last.key: break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return top
