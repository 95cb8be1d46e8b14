from libc.stdint cimport uint8_t, uint64_t

from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.backward.walk cimport Target, Walk
from cygrad.core.graph.operator cimport N_INLINE, MAX_OUTPUTS, MAX_TEMPORARIES, BackwardCall
from cygrad.core.graph.tensor cimport Node
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array, Layout

cdef enum:
    N_INLINE_ARRAYS = 2 * N_INLINE + MAX_OUTPUTS    # saved values, gradients of inputs, gradients of outputs


cdef class Turn:
    """One node's turn in a backward pass: its gradients, where they are placed, and the call of its operator."""
    cdef Walk walk          # the pass
    cdef Node node
    cdef bint retain        # retain_graph: no slot may be emptied
    cdef bint graph         # create_graph: gradients are tensors with a graph
    cdef Gradient* g        # n_out gradients of the outputs
    cdef Gradient* dx       # n_in gradients of the inputs
    cdef uint8_t* want      # n_in values of Want
    cdef Target* targets    # n_in targets, or NULL: all stages write to new memory
    cdef bint direct        # a stage may write to a .grad or a sum
    cdef int by_rows        # the input whose gradient the running stage computes by ranges of rows, or -1
    cdef bint traced        # the thread traces: kernels are not run (core/backward/stages.pyx)
    cdef uint64_t number    # number of the pass
    cdef Gradient inline_g[MAX_OUTPUTS]
    cdef Gradient inline_dx[N_INLINE]
    cdef Target inline_targets[N_INLINE]
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
    cdef bint borrow_grad(self, int i, Array* out, bint* first) except -1
    cdef bint borrow_sum(self, int i, Array* out) noexcept
    cdef void wrote(self, int i) noexcept
    cdef void return_grad(self) noexcept
    cdef const Layout* input_layout(self, int i) noexcept

cdef int run_stages(Turn b) except -1
