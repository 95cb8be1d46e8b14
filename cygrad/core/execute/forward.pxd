from libc.stdint cimport uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport N_INLINE, Call, Operator
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.graph.trace cimport Step, Trace
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef class ForwardStep(Step):
    """A prepared execution of an operator."""
    cdef Operator op
    cdef object attributes
    cdef Call call
    cdef Array inline_x[N_INLINE]
    cdef double* numbers        # the operands that are Python numbers
    cdef Buffer* written        # held: the buffer from outside that an in-place write changes, or NULL
    cdef bint large

cdef int trace_forward(Execution* e, Operator op, const Operand* x, object attributes, Tensor target) except -1
cdef int read_outside(Trace t, const Operand* x, int n) except -1
cdef tuple note_inputs(Execution* e, const Operand* x)
cdef int note_call(Execution* e, Operator op, tuple inputs, object attributes, Node node, Tensor target) except -1
cdef int refuse_shape(Operator op) except -1
cdef int drop_frozen(const Operand* x, int n, uint64_t* wanted) except -1
