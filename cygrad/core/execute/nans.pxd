from cygrad.core.execute.executor cimport Execution
from cygrad.core.graph.operator cimport Operator

cdef bint reads_nan(const Execution* e) except -1
cdef int refuse_nan(const Execution* e, Operator op, bint read) except -1
