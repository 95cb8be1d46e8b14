from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor
from libc.stdint cimport uint64_t

cdef object run(Operator op, Operand* x, int n, object attributes)
cdef int wanted_inputs(const Operand* x, int n, uint64_t* out) except -1
cdef object apply1(Operator op, object x, object attributes)
cdef object apply2(Operator op, object x, object y, object attributes)
cdef object apply3(Operator op, object x, object y, object z, object attributes)
cdef object apply_list(Operator op, list xs, object attributes)
