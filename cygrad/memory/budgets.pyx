"""memory.budget(), as a scope."""

cimport cython

from cygrad.core.execute.budget cimport Budget

from cygrad.core.sizes import read_size
from cygrad.memory.rows import Recomputed


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class budget:
    """A scope in which the live bytes of the whole process stay at or under `bytes`, an int or a string such as
    "256MiB": parameters, gradients, workspace, and what lived before are included; external memory is not.

        with cg.memory.budget("64MiB") as b:
            with cg.record(): loss = model(x).sum()
            loss.backward()

    Before an allocation that would exceed it, values that are kept for backward only are evicted. When backward needs
    one of them, its recipe makes it again: the operations that this thread has recorded in the scope, in forward and
    backward, give the same results bit for bit as without a budget. What a Python name, a view or another object refers
    to is not evicted, nor are results of an autograd.Function, draws from generators that are no operators, values from
    NumPy, and what was computed from memory that is shared with NumPy (asarray(), numpy()). Scopes nest, and the
    smallest applies. `.floor_bytes` are the most bytes so far that could not have been evicted: a smaller budget fails.
    `.recomputed` is (calls, share): the operations that were computed again, and their work as a share of all other
    work, forward and backward.

    Raises MemoryLimitError, a MemoryError, before an allocation for which too little can be evicted, with what was
    asked, by which operation and line, and what is live, and when the scope begins if more is live already. TypeError
    or ValueError for what is no size. RuntimeError when it is closed in another thread, or opened twice."""
    cdef Budget made
    cdef bint is_open

    @cython.embedsignature.format("c")
    def __init__(self, bytes):
        if self.is_open: raise RuntimeError("this memory.budget() is open, so it cannot be set up again")
        self.made = Budget(min(read_size(bytes, "memory.budget"), 1 << 62))

    def __enter__(self):
        if self.is_open or self.made is None:
            raise RuntimeError("this memory.budget() is already open; make another one for a scope inside it")
        self.made.open()
        self.is_open = True
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.is_open: raise RuntimeError("memory.budget: this scope is not open, so it cannot be closed")
        self.made.close()
        self.is_open = False

    def __dealloc__(self):
        if self.is_open and self.made is not None: self.made.leave()

    @property
    def floor_bytes(self):
        """The most bytes so far that could not have been evicted."""
        return self.made.floor if self.made is not None else 0

    @property
    def recomputed(self):
        """(calls, share) of the operations that were computed again."""
        return Recomputed(*(self.made.recomputed if self.made is not None else (0, 0.0)))
