"""detect_anomaly(forward=True): an operation that computes a NaN from operands without NaN raises an error with its
name and line."""

import numpy as np

from cygrad.core.graph.provenance cimport line_here
from cygrad.core.interop.numpy cimport lend
from cygrad.kernels.array cimport Array, is_floating


cdef bint any_nan(const Array* a) except -1:
    if a.layout == NULL or a.data == NULL or not is_floating(a.dtype) or not a.layout.size: return False
    return np.isnan(np.min(lend(a, NULL, False)))   # (min of a NaN is a NaN)


cdef bint reads_nan(const Execution* e) except -1:
    """Whether an operand has a NaN."""
    for i in range(e.call.n_in):
        if any_nan(&e.call.x[i]): return True
    return False


cdef int refuse_nan(const Execution* e, Operator op, bint read) except -1:
    """Raise RuntimeError if a result has a NaN. `read`: an operand had one."""
    if read: return 0
    for k in range(e.call.n_out):
        if any_nan(&e.call.y[k]):
            raise RuntimeError(f"{op.name}, at {line_here()}, produced the first NaN: its operands had none")
