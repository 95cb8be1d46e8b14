from libc.stdint cimport uint64_t

from cygrad.kernels.array cimport MAX_NDIM

cdef enum:
    QUERIES = 64            # rows of a block
    KEYS = 512              # columns of a block, a multiple of 4: the numbers of dropout come in fours

cdef enum MaskKind:
    NO_MASK, BOOL_MASK, ADDED_MASK

cdef enum:                  # the gradients that gradients() computes
    DQ = 1
    DK = 2
    DV = 4

cdef struct Matrices:       # a matrix for each index of the leading dimensions
    char* data
    Py_ssize_t down, right  # the steps between rows and between columns
    int nd
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t strides[MAX_NDIM]

cdef struct Attention:
    int dtype
    Py_ssize_t heads        # matrices of q
    Py_ssize_t group        # matrices of q for each of k and v
    Py_ssize_t queries, keys, width, value_width
    Matrices q, k, v, mask, y, g
    int kind                # the MaskKind
    bint causal
    double scale
    double p                # dropout
    uint64_t key, counter
    char* statistics        # log sum e^score of each query; infinite if it may see nothing
    char* delta             # the sum of g times y for each query
    Matrices dq, dk, dv, dmask
    char* workspace
    Py_ssize_t workers      # each has slot_bytes of workspace
    int wanted

cdef size_t slot_bytes(int dtype, bint backward) noexcept nogil
cdef int attention(Attention* a) except -1 nogil
cdef void deltas(Attention* a) noexcept nogil
cdef int gradients(Attention* a) except -1 nogil
cdef int mask_gradient(Attention* a) except -1 nogil
