from libc.stdint cimport uint8_t, uint64_t

from cygrad.core.graph.operator cimport FEW, MAX_OUTPUTS, MAX_TEMPORARIES, BackwardCall
from cygrad.core.graph.tensor cimport Gradient, Node
from cygrad.kernels.array cimport Array, Layout

cdef enum Wanted:           # Turn.want: a gradient is not wanted (0), or is, or borrow_grad() has lent .grad for it and
    TO_MAKE = 1             # ... it has not been written,
    DELIVERED               # ... it has been written whole,
    IN_PART                 # ... the kernel failed while it might have been writing

cdef enum:
    FEW_ARRAYS = 4 * FEW    # FEW saved, FEW gradients of inputs, MAX_OUTPUTS of outputs


cdef class Turn:
    """One node's turn in a backward pass: its gradients, what they are placed in, and the call of its operator."""
    cdef Node node
    cdef bint retain        # the graph stays: nothing may be taken out of it
    cdef bint graph         # gradients are tensors with a graph
    cdef Gradient* g        # n_out of them
    cdef Gradient* dx       # n_in of them
    cdef uint8_t* want
    cdef void* into[FEW]    # a borrowed Leaf whose .grad may be written directly, or NULL
    cdef bint first[FEW]    # ... and is to be overwritten
    cdef uint64_t number    # the pass
    cdef void* lent[FEW]    # the .grad that borrow_grad() gave out, counted until wrote() or return_grad()
    cdef bint locked[FEW]
    cdef Gradient* sums[FEW]    # what has come for input i so far, if it may be written to, or NULL
    cdef Gradient few_g[MAX_OUTPUTS]
    cdef Gradient few_dx[FEW]
    cdef uint8_t few_want[FEW]
    cdef Gradient temporaries[MAX_TEMPORARIES]
    cdef BackwardCall call
    cdef Array few_arrays[FEW_ARRAYS]
    cdef const Layout* few_layouts[FEW]
    cdef uint8_t few_sources[FEW]
    cdef bint few_as_bits[FEW]

    cdef Array kept(self, int source) except *
    cdef void done(self, int source) noexcept
    cdef Array make(self, int i, const Layout* like, int dtype) except *
    cdef bint take_saved(self, int source, Gradient* out) noexcept
    cdef bint borrow_grad(self, int i, Array* out, bint* first) noexcept
    cdef bint sum_so_far(self, int i, Array* out) noexcept
    cdef void added(self, int i) noexcept
    cdef void wrote(self, int i) noexcept
    cdef void return_grad(self, bint whole) noexcept
    cdef const Layout* input_layout(self, int i) noexcept

cdef int run_stages(Turn b) except -1
