"""The scope behind fail_allocation. It is compiled for the same reason as the scopes of memory/scopes.pyx."""

cimport cython

from cygrad.memory.scopes cimport Open

from cygrad.core.store.buffer import set_failure as _set_failure

cdef object set_failure = _set_failure
cdef void* failing = NULL           # the open scope, or NULL


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc_clear
cdef class Failing(Open):
    """A scope in which the n-th allocation fails. `kind(n)` makes the result object of the scope."""
    cdef object n, persistent, kind
    cdef object seen

    @cython.embedsignature.format("c")
    def __init__(self, n, persistent, kind):
        self.n, self.persistent, self.kind = n, persistent, kind

    def __enter__(self):
        seen = self.kind(self.n)
        if failing != NULL: raise RuntimeError("fail_allocation: another such scope is open; they do not nest")
        self.link(&failing)
        try:
            set_failure(self.n, self.persistent)
        except:                                     # (there was no memory for the int that it returns)
            set_failure(0, False)
            self.unlink()
            raise
        self.seen = seen
        return seen

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.unlink(): raise RuntimeError("fail_allocation: this scope is not open, so it cannot be closed")
        self.seen.allocations = set_failure(0, False)

    def __dealloc__(self):
        if self.unlink(): set_failure(0, False)
