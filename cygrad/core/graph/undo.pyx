"""What a trace undoes when it ends (trace.pyx). What the program does to the gradient of a variable changes only the
variable's Twin, which the thread of the trace sees in its place, so there is nothing to restore."""

cimport cython

from cygrad.core.graph.tensor cimport put_grad
from cygrad.core.store.buffer cimport count_again, drop, hold


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Undo:
    """What is undone when the trace ends. A subclass has the values."""

    cdef int restore(self) except -1:
        raise NotImplementedError("an Undo has no restore")

    def check(self):
        """Raise RuntimeError if the program cannot repeat what is undone."""


cdef class Twin(Undo):
    """The gradient of a variable from outside, as a trace sees it."""

    cdef int clear(self) except -1:
        """Drop the gradient of the program."""
        return put_grad(self.state, None)

    cdef int restore(self) except -1:
        """Count the old gradient again. A stand-in that the program has stored somewhere shares its memory now."""
        cdef Tensor t, real
        for ref, kept, counted in self.aside:
            real = kept
            if counted: count_again(real.buffer)
            found = ref()
            if type(found) is not Tensor: continue  # (None, or a freed tensor)
            t = found
            hold(real.buffer)
            drop(t.buffer)
            t.buffer, t.rewrites = real.buffer, real.buffer.rewrites
        self.aside = []
        return 0
