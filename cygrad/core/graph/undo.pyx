"""What a trace undoes when it ends (trace.pyx). What the program does to the gradient of a variable changes only the
variable's Twin, which the thread of the trace sees in its place, so there is nothing to restore. A change of the role
of a tensor, which other threads see, has a Twin too, without a state."""

from cygrad.core.graph.tensor cimport NULL_REQ, put_grad
from cygrad.core.store.buffer cimport VIRTUAL, ZEROS, count_again, drop, hold, recategorise

made_by_traces = {}


cdef class Twin:
    """The gradient of a variable from outside, as a trace sees it, or the role that the trace has changed."""

    cdef int clear(self) except -1:
        """Drop the gradient of the program."""
        return 0 if self.state is None else put_grad(self.state, None)

    cdef int restore(self) except -1:
        """Count the old gradient again. A stand-in that the program has stored somewhere shares its memory now."""
        cdef Tensor t, real
        if self.state is None: return self.restore_role()
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

    cdef int restore_role(self) except -1:
        """Track the tensor as its accumulator says, which only other threads have changed."""
        cdef Tensor x
        made_by_traces.pop(<size_t><void*>self.leaf, None)
        if self.leaf.tensor == NULL: return 0
        x = <Tensor>self.leaf.tensor
        if self.made: self.leaf.req = NULL_REQ
        if self.leaf.grad is not None and (self.made or self.leaf.grad.buffer.flags & VIRTUAL):
            put_grad(self.leaf, None)
            self.leaf.fresh = False
        elif self.leaf.grad is not None and self.leaf.grad.buffer.flags & ZEROS: self.leaf.grad.buffer.link.trace = NULL
        return track(x, self.leaf.req != NULL_REQ) if x._node is self.leaf else 0


cdef int keep_role(Leaf leaf) except -1:
    """This thread makes a tensor a variable that a trace has made one, in another thread: it remains one."""
    cdef Twin u = made_by_traces.pop(<size_t><void*>leaf, None)
    if u is not None: u.made = False
    return 0


cdef int track(Tensor x, bint wanted) except -1:
    """Let operations on a tensor with an accumulator be recorded, or not."""
    if wanted != x._tracked: x.buffer.parameters += 1 if wanted else -1
    x._tracked = wanted
    recategorise(x.buffer)
    return 0
