from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.thread_state cimport Flags
from cygrad.core.execute.operands cimport Operand

cdef int run_into(Operator op, Operand* x, int n, object attributes, Tensor target) except -1
cdef int check_writable(Tensor t, Flags* f) except -1
cdef int check_family(Tensor t, int held) except -1
cdef int follow(Tensor t, Node node, int nr) except -1
cdef object apply_inplace(Operator op, Tensor target, object other, object attributes)
