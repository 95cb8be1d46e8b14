"""The base of all operators (operator.pxd)."""

from libc.stdint cimport uint32_t, uint64_t

from cygrad.kernels.array cimport Layout

EVERY_INPUT = (<uint64_t>1 << (REST + 1)) - 1


cdef class Operator:
    """The base of all operators. `infer` and `forward` are the value, `keeps` says what backward needs, `formula` is
    the gradient over tensors and `backward`, where there is one, the same over buffers."""

    cdef int infer(self, Call* c) except -1:
        raise NotImplementedError(f"{self.name} has no infer")

    cdef int forward(self, Call* c) except -1:
        raise NotImplementedError(f"{self.name} has no forward")

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept nogil:
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """Declare the stages of backward by add_stage(); without any, the formula computes the gradients."""
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        """Compute what a stage declares, into b.dx and b.temporaries."""
        raise NotImplementedError("an operator that plans a backward has no run_backward")

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        """The gradient of input i as a view of what a stage reads, whose layout is `g`."""
        raise NotImplementedError(f"{self.name} has no gradient_view")

    cdef object formula(self, c, int i, g):
        """The gradient of input `i` as a tensor, from the output's gradient `g` (of several outputs: a tuple) and what
        the context `c` gives: c.input(i), c.output(k), c.attributes, c.shape(i)."""
        raise RuntimeError(f"{self.name} has no gradient")

    def __repr__(self):
        return f"<operator {self.name}>"
