from libc.stdint cimport int64_t

from cygrad.kernels.array cimport Array

cdef enum CellKind:
    LSTM, GRU, TANH, RELU   # the last two are plain cells

cdef struct Recurrence:     # one layer in one direction over a whole sequence
    int kind                # a CellKind
    int dtype
    bint reverse
    Py_ssize_t steps, batch, hidden, width
    const int64_t* lengths  # or NULL
    const Array* x          # (steps, batch, width), with any strides
    const char* w_ih        # the weights and first states are dense
    const char* w_hh
    const char* b_ih
    const char* b_hh
    const char* h0
    const char* c0          # an LSTM has it
    char* y                 # (steps, batch, hidden)
    char* h                 # (batch, hidden): the running state and, in the end, the last one
    char* c
    char* gates             # (steps, batch, gates_of hidden), or NULL: they go to the workspace, some steps at a time
    char* cells             # (steps, batch, hidden), or NULL
    char* workspace
    const char* gy          # gradients of these, dense, or NULL
    const char* gh
    const char* gc
    const char* ggates
    const char* gcells
    char* dgates            # like gates, before activation; may be gates
    char* dh0               # or NULL
    char* dc0

cdef int gates_of(int kind) noexcept nogil
cdef int rows_of_weight(int kind) noexcept nogil
cdef Py_ssize_t steps_at_once(const Recurrence* r) noexcept nogil
cdef size_t forward_bytes(const Recurrence* r, bint kept) noexcept nogil
cdef size_t backward_bytes(const Recurrence* r) noexcept nogil
cdef int recur(Recurrence* r) except -1 nogil
cdef int recur_back(Recurrence* r) except -1 nogil
cdef void first_rows(const Recurrence* r, char* out) noexcept nogil
