from cygrad.kernels.driver cimport LoopCall
from cygrad.kernels.array cimport MAX_OPERANDS

cdef enum:
    MAX_LINKS = 32          # calls of one chain
    SCRATCH = 32768         # bytes of its strips

cdef struct Link:           # a call of a chain
    LoopCall call
    int source[MAX_OPERANDS]        # the operand is the result of this call; -1: it is in memory
    int strip[MAX_OPERANDS]         # the strip of scratch memory that it needs; -1: none. A result that has memory too
                                    # needs it if it is streamed.

cdef struct Chain:
    Link* links
    int n_links
    int itemsize            # of the widest operand
    Py_ssize_t n            # elements of every result
    Py_ssize_t strip        # elements of a strip, a multiple of STRIP

cdef void run_chain(Chain* c) noexcept nogil
cdef bint needs_strip(const LoopCall* c, int k, Py_ssize_t n) noexcept nogil
cdef bint is_filled(const LoopCall* c, int k, Py_ssize_t n) noexcept nogil
