"""Operations on tensors that have lifts (core/graph/lifts.pxd): their tangents are computed too, or all of their lanes.
"""

from cygrad.core.execute.operands cimport Operand


cdef bint reads_lifted(const Operand* x, int n, int depth)
cdef list operand_list(const Operand* x, int n)
