"""The base of all operators (operator.pxd)."""

from libc.stdint cimport uint64_t

from cygrad.kernels.array cimport Layout

SIGNS_ALONE = <uint64_t>1 << 63
EVERY_INPUT = (<uint64_t>1 << (REST + 1)) - 1


cdef class Operator:
    """The base of all operators. `infer` and `forward` are the value, `keeps` says what backward needs, `formula` is
    the gradient over tensors and `backward`, where there is one, the same over buffers."""

    cdef int infer(self, Call* c) except -1 nogil:
        """Write the layout and the dtype of each output, or the input that output 0 is a view of, and the workspace."""
        with gil: return self.infer_with_gil(c)

    cdef int infer_with_gil(self, Call* c) except -1:
        """infer() of an operator that reads Python objects for it."""
        raise NotImplementedError(f"{self.name} has no infer")

    cdef int forward(self, Call* c) except -1 nogil:
        """Compute the outputs into memory that is there."""
        with gil: return self.forward_with_gil(c)

    cdef int forward_with_gil(self, Call* c) except -1:
        """forward() of an operator that computes with NumPy or Python."""
        raise NotImplementedError(f"{self.name} has no forward")

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """Declare the stages of backward by add_stage(); without any, the formula computes the gradients."""
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        """Compute what a stage declares, into b.dx and b.temporaries."""
        raise NotImplementedError("an operator that plans a backward has no run_backward")

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        """The gradient of input i as a view of what a stage reads, whose layout is `g`. The caller holds the GIL, which
        guards the counts of layouts."""
        with gil: raise NotImplementedError("an operator whose gradient is a view has no gradient_view")

    cdef object formula(self, c, int i, g):
        """The gradient of input `i` as a tensor, from the output's gradient `g` (of several outputs: a tuple) and what
        the context `c` gives: c.input(i), c.output(k), c.attributes, c.shape(i)."""
        raise RuntimeError(f"{self.name} has no gradient")

    def __repr__(self):
        return f"<operator {self.name}>"
