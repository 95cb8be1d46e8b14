from libc.stdint cimport uint8_t, uint64_t

from cygrad.core.graph.operator cimport N_INLINE, MAX_OUTPUTS, MAX_TEMPORARIES, BackwardCall
from cygrad.core.graph.tensor cimport Gradient, Node
from cygrad.kernels.array cimport Array, Layout

cdef enum Wanted:           # Turn.want: a gradient is not wanted (0), or is, or borrow_grad() has lent .grad for it and
    TO_MAKE = 1             # ... it has not been written,
    DELIVERED               # ... it has been written whole,
    IN_PART                 # ... the kernel failed while it might have been writing

cdef enum:
    N_INLINE_ARRAYS = 4 * N_INLINE    # FEW saved, FEW gradients of inputs, MAX_OUTPUTS of outputs


cdef class Turn:
    """One node's turn in a backward pass: its gradients, what they are placed in, and the call of its operator."""
    cdef Node node
    cdef bint retain        # the graph stays: nothing may be taken out of it
    cdef bint graph         # gradients are tensors with a graph
    cdef Gradient* g        # n_out of them
    cdef Gradient* dx       # n_in of them
    cdef uint8_t* want
    cdef void* into[N_INLINE]    # a borrowed Leaf whose .grad may be written directly, or NULL
    cdef bint first[N_INLINE]    # ... and is to be overwritten
    cdef uint64_t number    # the pass
    cdef void* lent[N_INLINE]    # the .grad that borrow_grad() gave out, counted until wrote() or return_grad()
    cdef bint locked[N_INLINE]
    cdef Gradient* sums[N_INLINE]    # what has come for input i so far, if it may be written to, or NULL
    cdef Gradient inline_g[MAX_OUTPUTS]
    cdef Gradient inline_dx[N_INLINE]
    cdef uint8_t inline_want[N_INLINE]
    cdef Gradient temporaries[MAX_TEMPORARIES]
    cdef BackwardCall call
    cdef Array inline_arrays[N_INLINE_ARRAYS]
    cdef const Layout* inline_layouts[N_INLINE]
    cdef uint8_t inline_sources[N_INLINE]
    cdef bint inline_as_bits[N_INLINE]

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
