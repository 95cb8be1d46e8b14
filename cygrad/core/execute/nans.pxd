from cygrad.core.execute.executor cimport Execution
from cygrad.core.graph.operator cimport Operator
from cygrad.core.thread_state cimport Flags

cdef enum:
    FORWARD = 1 << 16       # what an open detect_anomaly(forward=True) adds to Flags.anomaly

cdef bint reads_nan(const Execution* e) except -1
cdef int refuse_nan(const Execution* e, Operator op, bint read) except -1
