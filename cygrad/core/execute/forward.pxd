from libc.stdint cimport uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.graph.steps cimport Step
from cygrad.core.graph.trace cimport Trace

cdef class ForwardStep(Step):
    """A prepared execution of an operator."""
    cdef Operator op
    cdef Call call              # its attributes are in `held`
    cdef bint large

cdef int trace_forward(Execution* e, Operator op, const Operand* x, object attributes, Tensor target) except -1
cdef int read_outside(Trace t, const Operand* x, int n) except -1
cdef tuple note_inputs(Execution* e, const Operand* x)
cdef int note_call(Execution* e, Operator op, tuple inputs, object attributes, Node node, Tensor target) except -1
cdef int refuse_shape(Operator op) except -1
cdef int perform(Execution* e, Operator op, const Operand* x, object attributes) except -1
cdef int drop_frozen(const Operand* x, int n, uint64_t* wanted) except -1
