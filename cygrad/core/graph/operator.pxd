"""The contract of an operator: what a class declares and computes. Operators of other packages cimport this file.

`infer` writes the layouts and dtypes of the outputs, and `forward` computes them. The class declares in `reads` what
the gradient of each input reads; keeps() and the stages follow from it. `plan_backward` declares the stages of the
gradient, and `run_backward` computes one stage. `formula` is the same gradient over tensors, for derivatives of any
order. None of the methods allocates memory, and those declared nogil need
no Python object; an operator that computes with NumPy overrides `forward_with_gil`. The executor calls `infer` and
`gradient_view` with the GIL held, because the GIL guards the reference counts of layouts."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.driver cimport LoopCall

cdef enum:
    MAX_OUTPUTS = 8         # most outputs of an operation, hidden ones included
    MAX_INPUTS = 0xFFFF     # most inputs of an operation: a node counts them in 16 bits
    N_INLINE = 4            # a call with up to this many inputs needs no allocation
    N_READS = 4             # `reads` declares the gradients of up to this many inputs, the first ones

    # Masks of inputs and outputs have 64 bits: bit i is input i (input_bit), bit OUTPUT + k is output k (output_bit).
    REST = 39               # this bit stands for all inputs from number 39 on
    OUTPUT = 40

cdef uint64_t SIGNS_ALONE   # a bit of keeps(): backward needs only the signs of the saved outputs

cdef struct Call:           # one execution of an operator
    int n_in
    int n_out               # hidden outputs included; infer() sets it before it describes outputs other than 0
    int hidden              # this many outputs, the last ones, are saved for backward and not returned
    int view                # infer() sets it: output 0 is a view of this input; -1: it has memory of its own
    uint64_t wanted         # mask of the inputs whose gradients will be wanted; 0: no hidden output is needed
    Array* x                # the inputs
    Array y[MAX_OUTPUTS]    # the outputs: infer() sets layout (a new reference) and dtype, forward() fills data
    size_t workspace_bytes  # infer() sets it
    Py_ssize_t work         # in elements of an elementwise operation; 0: the size of the largest operand
    char* workspace
    void* attributes        # a borrowed Attributes object, or None

cdef enum:
    MAX_STAGES = 4          # most stages of a node's backward
    MAX_TEMPORARIES = 2
    TEMPORARY = 48          # Stage.computes: bit i is the gradient of input i, bit TEMPORARY + t is temporary t

cdef enum Writes:           # Stage.writes: where the results of a stage may be placed
    TO_NEW_MEMORY           # in new or donated memory only
    OVER_GRAD               # also in a variable's .grad, if the gradient overwrites it
    ADDING                  # also in a .grad or a sum to which the gradient is added: see adds()

cdef enum Want:             # BackwardCall.want: the state of an input's gradient; 0 if it is not wanted
    WANTED = 1              # to be written to dx
    WANTED_ADDED            # to be added to what dx has: see adds()
    WANTED_MULTIPLIED       # to be multiplied by a factor and added to what dx has: see adds() and factor()
    DELIVERED               # written to a .grad, or added to the sum of the input's contributions
    IN_PART                 # the kernel failed, and a part may have been written to a .grad

# One step of a node's backward. All stages are declared before the first one runs. The engine places the results of a
# stage, runs it, and then releases what no later stage reads.
cdef struct Stage:
    uint64_t computes       # mask of gradients and temporaries
    uint64_t saved          # mask of the saved inputs and outputs that it reads; at first by `reads`
    uint32_t gradients      # the incoming gradients that it reads: bit k for output k, MAX_OUTPUTS + t for temporary t
    uint64_t donated_saved  # the saved values that it reads and that its first result may overwrite element by element,
    uint32_t donated_gradients      # and the gradients. The engine overwrites one that no later stage reads and that
                            # has no other holder.
    const Layout* like      # the shape of the results; NULL: the shape of each input
    size_t workspace_bytes
    uint8_t writes          # a Writes
    uint64_t multiplies     # mask of the gradients of an ADDING stage that factor() can multiply,
    uint64_t by_rows        # and of those that it can compute a range of rows of: dx has only these, from row
                            # BackwardCall.row on
    uint8_t temporary_dtype         # dtype of the temporaries; at first that of the gradients
    bint view               # no computation: each result is a view of the gradient that it reads (gradient_view())

cdef struct BackwardCall:   # one execution of a node's backward
    int n_in
    int n_out
    int n_kept
    int n_stages
    int dtype               # dtype of the gradients
    Py_ssize_t work         # as in Call; plan_backward() may raise it
    uint8_t* want           # for each input a Want, 0 if its gradient is not wanted
    uint64_t wanted         # mask of the inputs whose gradients are wanted,
    uint64_t recorded       # and of those whose gradients were wanted when the node was recorded
    const uint64_t* saved_for       # of the operator
    void* attributes        # a borrowed Attributes object, or None
    const Layout* y         # layout of output 0
    const Layout** x        # layouts of the inputs whose gradients are wanted
    Array* g                # the gradients of the outputs; data is NULL if none arrived
    Array* kept             # the saved values
    uint8_t* sources        # the source of each: i for input i, OWN | k for output k
    bint* as_bits           # for each, whether only one bit for each element is saved: its sign
    Array* dx               # the gradients of the inputs
    Py_ssize_t row          # the first row of a gradient that is computed by ranges of rows (Stage.by_rows)
    const double* multiplier        # of WANTED_MULTIPLIED
    Array temporaries[MAX_TEMPORARIES]
    char* workspace
    Stage stages[MAX_STAGES]

cdef class Operator:
    """The base of all operators. An operator is stateless, and there is one instance of each class."""
    cdef readonly str name
    cdef readonly bint promotes             # the inputs are promoted to a common dtype,
    cdef readonly int n_unpromoted          # except this many, the first ones, such as a mask
    cdef readonly bint promotes_to_float    # the common dtype is a floating one
    cdef readonly bint fused        # it has plan_backward() and run_backward(); otherwise formula() is used
    cdef readonly bint differentiable
    cdef readonly bint mode_dependent       # forward depends on train mode
    cdef readonly bint joint_formula        # formula() returns the gradients of all inputs at once, as a tuple
    cdef readonly bint elementwise  # forward() computes floating elements one by one, and may write over an input that
                                    # has the layout of the output
    cdef readonly bint views        # output 0 is a view of an input,
    cdef readonly bint shows_part   # with each element of a part of the input once: see BackwardPass.runs_early()
    cdef readonly bint data_dependent_shape     # the shape of the result depends on values, which infer reads
    cdef readonly bint diagonal     # the formula of the gradient of an input is that of a tangent too
    cdef readonly bint signs        # backward needs only the signs of the saved output
    cdef readonly bint zero_derivative      # an input that gets no gradient has a derivative of zeros
    cdef readonly bint gradient_is_view     # by default, the gradient of input 0 is a view of that of the output,
    cdef readonly bint overwrites_gradient  # or may overwrite it
    cdef readonly object numpy      # the NumPy function that computes bools and integers, or None
    cdef uint64_t saved_for[N_READS]        # for each input, the mask of what its gradient reads

    cdef int infer(self, Call* c) except -1 nogil
    cdef int forward(self, Call* c) except -1 nogil
    cdef int forward_with_gil(self, Call* c) except -1
    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil
    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil
    cdef int plan_backward(self, BackwardCall* b) noexcept nogil
    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil
    cdef bint backward_loop(self, const BackwardCall* b, int stage, LoopCall* l) noexcept nogil
    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil
    cdef object formula(self, c, int i, g)
    cdef tuple row_of(self, attributes)
    cdef tuple call_of(self, operands, arguments)


cdef inline uint64_t input_bit(int i) noexcept nogil:
    """The bit of a mask for input i."""
    return <uint64_t>1 << (i if i < REST else <int>REST)

cdef inline uint64_t output_bit(int k) noexcept nogil:
    """The bit of a mask for output k."""
    return <uint64_t>1 << (OUTPUT + k)

cdef inline bint adds(const BackwardCall* b, int i) noexcept nogil:
    """Whether an ADDING stage must add gradient i to dx instead of overwriting dx."""
    return b.want[i] == WANTED_ADDED or b.want[i] == WANTED_MULTIPLIED

cdef inline double factor(const BackwardCall* b, int i) noexcept nogil:
    """What a stage that `multiplies` gradient i must multiply it by."""
    return b.multiplier[0] if b.want[i] == WANTED_MULTIPLIED else 1

cdef inline bint is_saved(const BackwardCall* b, int source) noexcept nogil:
    """Whether input i (source i) or output k (source OWN | k) is saved."""
    cdef int k
    for k in range(b.n_kept):
        if b.sources[k] == source: return True
    return False

cdef inline Array saved(const BackwardCall* b, int source) noexcept nogil:
    """The saved value of `source`, which the stage must have declared."""
    cdef int k = 0
    while b.sources[k] != source: k += 1
    return b.kept[k]

cdef inline const uint8_t* saved_bits(const BackwardCall* b, int source) noexcept nogil:
    """The sign bits of that value, one for each element (1 if it is positive), if only these are saved; else NULL."""
    cdef int k = 0
    while b.sources[k] != source: k += 1
    return <const uint8_t*>b.kept[k].data if b.as_bits[k] else NULL

cdef inline int bit_of(int source) noexcept nogil:
    """The bit of a slot's source (input i, or OWN | k for output k) in the masks of keeps() and of Stage."""
    return OUTPUT + (source & 0x7F) if source & 0x80 else source

cdef inline bint computes(const Stage* s, int i) noexcept nogil:
    """Whether a stage computes the gradient of input i."""
    return s.computes >> (i if i < REST else <int>REST) & 1

cdef inline void hide(Call* c, Layout* layout, int dtype) noexcept nogil:
    """Declare output 1, a hidden one."""
    c.n_out, c.hidden = 2, 1
    c.y[1].layout, c.y[1].dtype = layout, dtype

cdef uint64_t EVERY_INPUT   # Stage.computes: the gradients of all inputs

cdef inline uint64_t temporary(int t) noexcept nogil:
    """The bit of Stage.computes for a temporary."""
    return <uint64_t>1 << (TEMPORARY + t)

cdef inline uint32_t reads_temporary(int t) noexcept nogil:
    """The bit of Stage.gradients for a temporary."""
    return <uint32_t>1 << (MAX_OUTPUTS + t)

cdef inline uint64_t declared(const uint64_t* saved_for, uint64_t wanted, int n_in) noexcept nogil:
    """The mask of what the gradients of the inputs `wanted` read, of those inputs that a call of `n_in` has."""
    cdef uint64_t mask = 0, inputs = (<uint64_t>1 << OUTPUT) - 1
    if wanted & 1: mask = saved_for[0]
    if wanted & 2: mask |= saved_for[1]
    if wanted & 4: mask |= saved_for[2]
    if wanted & 8: mask |= saved_for[3]
    return mask & ~(inputs >> n_in << n_in) if n_in < OUTPUT else mask

cdef inline Stage* new_stage(BackwardCall* b, uint64_t computes) noexcept nogil:
    """Add a stage that reads all incoming gradients, but nothing that is saved. Its results go to new memory."""
    cdef Stage* s = &b.stages[b.n_stages]
    b.n_stages += 1
    memset(s, 0, sizeof(Stage))
    s.computes, s.temporary_dtype = computes, b.dtype
    s.gradients = (<uint32_t>1 << b.n_out) - 1
    return s

cdef inline Stage* add_stage(BackwardCall* b, uint64_t computes) noexcept nogil:
    """The same, but at first it reads what `reads` declares for the wanted gradients that it computes."""
    cdef Stage* s = new_stage(b, computes)
    s.saved = declared(b.saved_for, computes & b.wanted if computes & (computes - 1) else computes, b.n_in)
    return s
