"""The contract of an operator: what a class declares and computes. Operators of other packages cimport this file.

`infer` says what comes out and how much workspace is needed, `forward` fills it, `keeps` says what backward needs.
`plan_backward` declares the stages of the gradient and `run_backward` computes one of them; `formula` is the same gradient
over tensors, for derivatives of any order."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from cygrad.kernels.array cimport Array, Layout

cdef enum:
    MAX_OUTPUTS = 8         # of one operation, hidden ones included
    MAX_INPUTS = 0xFFFF     # ... which a node counts in 16 bits
    N_INLINE = 4                 # inputs that need no allocation of their own

    # Masks have 64 bits: bit i is input i (input_bit), bit OUTPUT + k is output k (output_bit).
    REST = 39               # this bit stands for all inputs from here on
    OUTPUT = 40

cdef uint64_t SIGNS_ALONE   # of what keeps() returns: of the outputs only the signs are needed, in this call

cdef struct Call:           # one execution: what infer() reads and writes, and what forward() computes
    int n_in
    int n_out               # outputs, hidden ones included
    int hidden              # the last so many outputs are for backward alone
    int view                # the input whose memory output 0 shares; -1: fresh memory
    uint64_t wanted         # the inputs whose gradients will be wanted, as bits; 0: no hidden output is needed
    Array* x
    Array y[MAX_OUTPUTS]    # infer() sets layout (one count) and dtype; data is there when forward() runs
    size_t workspace_bytes
    Py_ssize_t work         # elements; 0: as many as the largest operand has. Large work runs without the GIL
    char* workspace
    void* attributes        # a borrowed Python object

cdef enum:
    MAX_STAGES = 4          # of one node's backward
    MAX_TEMPORARIES = 2
    TEMPORARY = 48          # Stage.computes: bit i is the gradient of input i, bit TEMPORARY + t temporary t

cdef enum Writes:           # Stage.writes: where a stage can leave what it computes
    TO_NEW_MEMORY           # where nothing is yet
    OVER_GRAD               # ... or over a variable's .grad, where that is to be overwritten
    ADDING                  # ... or added to what is there, where adds() is true

cdef enum Want:             # BackwardCall.want: whether the gradient of an input is wanted (not 0), and where it is
    WANTED = 1              # to be written to dx
    WANTED_ADDED            # to be added to what dx has: see adds()
    DELIVERED               # written to a .grad, or added to the input's pending sum
    IN_PART                 # perhaps in part in a .grad: the kernel failed

cdef struct Stage:          # One step of a node's backward, declared before any runs. The engine places what the stage
                            # computes, runs it, and releases what no later stage reads.
    uint64_t computes
    uint64_t saved          # what it reads of the saved inputs and outputs, bits as in keeps(); of that, and of the
    uint32_t gradients      # gradients of the outputs that it reads (bit k; MAX_OUTPUTS + t: temporary t), if
    uint64_t donated_saved  # ... nobody else holds it and no later stage reads it, these may be written over, element
    uint32_t donated_gradients      # ... by element, with the first that it computes
    const Layout* like      # the shape of what it computes; NULL: each gradient has its input's
    size_t workspace_bytes
    uint8_t writes          # a Writes
    bint view               # it computes nothing: each gradient is the one that it reads, seen by gradient_view()

cdef struct BackwardCall:   # one execution of a node's backward: what plan_backward() reads, and what run_backward() does
    int n_in
    int n_out
    int n_kept
    int n_stages
    int dtype               # of the gradients
    Py_ssize_t work         # elements of the largest of them, unless plan_backward() changes it (see Call)
    uint8_t* want           # for each input whether its gradient is wanted (a Want), ...
    uint64_t recorded       # ... and was when the node was recorded: bit i
    void* attributes        # a borrowed Python object
    const Layout* y         # of output 0
    const Layout** x        # of each input whose gradient is wanted
    Array* g                # the gradients of the outputs; data is NULL where none came
    Array* kept             # what is saved, with
    uint8_t* sources        # ... what each of them is, and
    bint* as_bits           # ... whether one bit an element is all that is left of it
    Array* dx               # what a stage writes to, or adds to
    Array temporaries[MAX_TEMPORARIES]
    char* workspace
    Stage stages[MAX_STAGES]

cdef class Operator:
    """An operator is a stateless singleton: what comes out, how it is computed, what backward keeps, its gradient."""
    cdef readonly str name
    cdef readonly bint promotes     # bring the inputs to one dtype
    cdef readonly int n_unpromoted         # ... but for the first so many, such as a mask
    cdef readonly bint promotes_to_float       # ... a floating one
    cdef readonly bint fused        # plan_backward() and run_backward() are written; else formula() runs instead
    cdef readonly bint differentiable
    cdef readonly bint mode_dependent      # forward depends on train mode
    cdef readonly bint joint_formula        # formula() gives the gradients of all inputs at once, a tuple
    cdef readonly bint views        # output 0 shares its input's memory
    cdef readonly bint shows_part   # ... and has each element of a part of it once: see Pass.runs_early()
    cdef readonly bint data_dependent_shape     # infer reads values: the shape of the result depends on them
    cdef readonly bint signs        # of the output that it keeps it needs only which elements are positive
    cdef readonly bint zero_derivative         # where a derivative is none, it is zeros
    cdef readonly object numpy      # the NumPy function that computes bools and integers, if any

    cdef int infer(self, Call* c) except -1 nogil
    cdef int infer_with_gil(self, Call* c) except -1
    cdef int forward(self, Call* c) except -1 nogil
    cdef int forward_with_gil(self, Call* c) except -1
    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil
    cdef int plan_backward(self, BackwardCall* b) noexcept nogil
    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil
    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil
    cdef object formula(self, c, int i, g)


cdef inline uint64_t input_bit(int i) noexcept nogil:
    """The bit of a mask for input i."""
    return <uint64_t>1 << (i if i < REST else <int>REST)

cdef inline uint64_t output_bit(int k) noexcept nogil:
    """The bit of a mask for output k."""
    return <uint64_t>1 << (OUTPUT + k)

cdef inline bint adds(const BackwardCall* b, int i) noexcept nogil:
    """Whether an ADDING stage must add gradient i to what dx has, and not write over that."""
    return b.want[i] == WANTED_ADDED

cdef inline bint is_saved(const BackwardCall* b, int source) noexcept nogil:
    """Whether input i (source i) or output k (source OWN | k) is saved."""
    cdef int k
    for k in range(b.n_kept):
        if b.sources[k] == source: return True
    return False

cdef inline Array saved(const BackwardCall* b, int source) noexcept nogil:
    """What is saved from a source, which the stage has declared."""
    cdef int k = 0
    while b.sources[k] != source: k += 1
    return b.kept[k]

cdef inline const uint8_t* saved_bits(const BackwardCall* b, int source) noexcept nogil:
    """The same, where one bit for each element (it is positive) is all that is left; else NULL."""
    cdef int k = 0
    while b.sources[k] != source: k += 1
    return <const uint8_t*>b.kept[k].data if b.as_bits[k] else NULL

cdef uint64_t EVERY_INPUT           # Stage.computes: each gradient that is wanted

cdef inline uint64_t temporary(int t) noexcept nogil:
    """The bit of Stage.computes for a temporary."""
    return <uint64_t>1 << (TEMPORARY + t)

cdef inline uint32_t reads_temporary(int t) noexcept nogil:
    """... and that of Stage.gradients."""
    return <uint32_t>1 << (MAX_OUTPUTS + t)

cdef inline Stage* add_stage(BackwardCall* b, uint64_t computes) noexcept nogil:
    """The next stage of a node's backward: it reads all gradients of outputs, and writes to new memory."""
    cdef Stage* s = &b.stages[b.n_stages]
    b.n_stages += 1
    memset(s, 0, sizeof(Stage))
    s.computes = computes
    s.gradients = (<uint32_t>1 << b.n_out) - 1
    return s
