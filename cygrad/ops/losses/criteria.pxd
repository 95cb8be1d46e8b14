"""The base of elementwise losses with a reduction."""

from libc.stdint cimport uint8_t

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.losses.criteria cimport Terms

cdef enum:
    NONE, MEAN, SUM, BATCHMEAN      # Plan.kind

cdef struct Plan:           # Settings, for kernels
    int kind
    int variant             # which of the operator's variants
    double p[2]             # the numbers of the loss
    int n                   # inputs
    int operands[4]         # for each input the operand of the kernels: X, T, V or W

cdef class Settings(Attributes):
    cdef readonly str reduction
    cdef readonly int variant
    cdef readonly tuple numbers
    cdef readonly tuple operands
    cdef Plan plan

cdef class Criterion(Operator):
    cdef const Terms* value[2]
    cdef const Terms* slopes[2][4]

    cdef int compute(self, Call* c, const Terms* signs, uint8_t* codes) except -1 nogil
    cdef int refuse(self, Call* c) except -1

cdef class Signed(Criterion):
    cdef const Terms* signs

cdef Settings settings(str name, reduction, int variant, tuple numbers, tuple operands)
cdef object over_elements(c, g, tuple shape)
cdef tuple pair(str name, x, target)
cdef Tensor operand_like(v, Tensor x)
cdef Tensor widened_to(str name, str what, Tensor v, Tensor x)
cdef double number(str name, str what, value) except? -1
cdef double positive(str name, str what, value, bint or_zero=*) except -1
cdef object reduced(values, str name, reduction)
