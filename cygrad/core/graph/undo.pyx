"""What a trace restores when it ends (trace.pyx)."""

cimport cython
from cpython.object cimport PyObject

from cygrad.core.graph.tensor cimport put_grad
from cygrad.core.store.buffer cimport EXTERNAL, VIRTUAL, ZEROS, count_again, drop, set_aside

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Undo:
    """What is restored when the trace ends. A subclass has the values."""

    cdef int restore(self) except -1:
        raise NotImplementedError("an Undo has no restore")

    def check(self):
        """Raise RuntimeError if the program cannot repeat what is undone."""


cdef class VersionUndo(Undo):
    """Of a real buffer that the program writes to."""
    cdef int restore(self) except -1:
        self.tensor.buffer.version = self.version
        return 0


cdef class LeafUndo(Undo):
    """Of a variable that receives a gradient. The memory of .grad is set aside: a virtual buffer stands in for it."""
    cdef bint take_back(self) except -1:
        """Give `grad` its memory back, if it was set aside. It still counts nothing."""
        cdef Buffer* stand_in = self.grad.buffer if self.grad is not None else NULL
        if stand_in == NULL or self.memory == NULL: return False
        self.grad.buffer, self.grad.rewrites = self.memory, self.memory.rewrites
        self.memory = NULL
        if self.leaf.grad is self.grad: stand_in.gradients -= 1
        drop(stand_in)
        return True

    cdef int release_if_unused(self) except -1:
        """Release the stand-in if another tensor is the .grad now, and only the trace refers to the old one. Rows are
        real: they count nothing from then on."""
        if self.rows is not None and self.rows is not self.leaf.rows and Py_REFCNT(<PyObject*>self.rows) == 1:
            if not self.uncounted: self.count_rows(False)
        if self.grad is None: return 0
        if self.leaf.grad is self.grad or Py_REFCNT(<PyObject*>self.grad) > 1: return 0
        self.released |= self.take_back()
        return 0

    cdef int count_rows(self, bint again) except -1:
        """Count the memory of the old rows again, or do not count it."""
        cdef Tensor x
        self.uncounted = not again
        for x in (self.rows.indices, self.rows.values):
            if x.buffer.holders > 1 or x.buffer.flags & (EXTERNAL | ZEROS | VIRTUAL): continue
            (count_again if again else set_aside)(x.buffer)
        return 0

    cdef int drop_new(self) except -1:
        """Drop the .grad that the program has made."""
        return put_grad(self.leaf, None) if self.leaf.grad is not self.grad else 0

    cdef int restore(self) except -1:
        cdef Leaf leaf = self.leaf
        cdef Tensor now = leaf.grad
        cdef bint aside = self.take_back() or self.released
        if aside:
            if not self.grad.buffer.flags & (ZEROS | EXTERNAL): count_again(self.grad.buffer)
        if now is not self.grad and not aside: put_grad(leaf, self.grad)
        elif now is not self.grad:
            put_grad(leaf, None)
            leaf.grad = self.grad                   # its memory still counts as the gradient of this variable
        leaf.rows = self.rows
        if self.uncounted: self.count_rows(True)
        leaf.fresh, leaf.incomplete, leaf.given, leaf.collected = (
            self.fresh, self.incomplete, self.given, self.collected)
        return 0
