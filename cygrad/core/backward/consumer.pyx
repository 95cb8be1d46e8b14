"""What takes the gradient of a variable in place of its .grad (consumer.pxd).

One pass at a time may be between begin() and take(), and only while no other pass runs in the process. Other passes
give whole gradients, and wait for the lock."""

from cpython.pythread cimport PyThread_get_thread_ident

from cygrad.core.graph.extras cimport consumer_in, extras_of
from cygrad.core.graph.running cimport runs

cdef extern from "cygrad/platform.h" nogil:
    void cg_rest()


cdef int n_consumers = 0        # that exist: without one, a backward pass looks for none


cdef class Consumer:
    """Takes the gradients of one variable."""

    def __cinit__(self):
        global n_consumers
        n_consumers += 1

    def __dealloc__(self):
        global n_consumers
        n_consumers -= 1

    cdef int lock(self, uint64_t number) noexcept:
        """Let the pass of this number call begin() and take(). Waits for passes of other threads. The pass unlocks it
        by setting `owner` to 0."""
        cdef unsigned long thread = PyThread_get_thread_ident()
        while runs(self.owner) and self.thread != thread:
            with nogil: cg_rest()
        self.owner, self.thread = number, thread
        return 0

    cdef bint fits(self, Leaf leaf) except -1:
        """Whether this is the variable. (A copy of it in another dtype has its hooks.)"""
        return True

    cdef str obstacle(self):
        """Why no pass may reach the variable now, or None."""
        return None

    cdef Taking takes(self) except? TAKES_ROWS:
        """How the gradient can arrive now."""
        return TAKES_WHOLE

    cdef Buffer* target(self, Array* out) except? NULL:
        """The elements to which multiples are added, and their memory; NULL if it takes gradients whole."""
        return NULL

    cdef int begin(self, bint by_rows) except -1:
        """Before a kernel: it adds `multiplier` times a contribution to the target, or computes it by rows. It may be
        called again for the next contribution, before take()."""

    cdef int update_rows(self, const Array* rows, Py_ssize_t first) except -1:
        """Take the rows of the gradient from row `first` on."""

    cdef bint take(self, object gradient) except -1:
        """Take the complete gradient, or what did not arrive after begin(): a tensor, a GradientSlice, or None. Returns
        False if the gradient must go to .grad."""
        return False

    cdef int fail(self) except -1:
        """The pass has failed after begin()."""

    cdef int passed(self) except -1:
        """A pass that gave it contributions has ended."""


cdef Consumer consumer_of(Node node):
    """What takes the gradients of a variable, or None."""
    cdef Consumer consumer = <Consumer>consumer_in(node)
    return consumer if consumer is not None and consumer.fits(<Leaf>node) else None


cdef bint has_other_hooks(Node node):
    """Whether a variable has hooks that read its complete gradient."""
    return any([hooks for kind, hooks in extras_of(node).hooks.items() if kind in ("tensor", "before", "after")])
