"""Frees chains of nodes without recursion. A node that is freed appends its references to a list. If a loop is emptying
the list already, that loop releases them. So the depth of the C stack does not depend on the length of the chain."""

import os

from cpython.mem cimport PyMem_Realloc
from cpython.ref cimport Py_DECREF

cdef void** waiting = NULL
cdef Py_ssize_t n_waiting = 0, capacity = 0
cdef bint emptying = False


cdef void decref_later(void* node) noexcept:
    """Append an object to the list, which takes over one reference."""
    global waiting, n_waiting, capacity
    cdef void** more
    if n_waiting == capacity:
        more = <void**>PyMem_Realloc(waiting, (2 * capacity + 64) * sizeof(void*))
        if more == NULL:                            # no memory for the list: recurse rather than leak
            Py_DECREF(<object>node)
            return
        waiting = more
        capacity = 2 * capacity + 64
    waiting[n_waiting] = node
    n_waiting += 1


cdef void decref_waiting() noexcept:
    """Release every object in the list, including those that are appended meanwhile."""
    global n_waiting, emptying
    if emptying: return
    emptying = True
    while n_waiting:
        n_waiting -= 1
        Py_DECREF(<object>waiting[n_waiting])
    emptying = False


def _after_fork():
    global emptying
    emptying = False                                # another thread may have been emptying it


if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
