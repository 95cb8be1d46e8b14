"""detect_anomaly: each node stores the line that recorded it. If the backward of a node computes a NaN from gradients
without NaN, an error names the node and the line."""

import numpy as np

from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.provenance cimport line_of
from cygrad.core.graph.tensor cimport Node, array_of
from cygrad.core.backward.gradients cimport DENSE, ROWS, TENSOR, Gradient, elements_of, rows_in, tensor_in
from cygrad.kernels.array cimport Array


cdef bint any_nan(const Gradient* g, int n) except -1:
    """Whether any of `n` gradients contains a NaN."""
    cdef Array a
    for k in range(n):
        if g[k].kind == DENSE: a = elements_of(&g[k])
        elif g[k].kind == TENSOR: a = array_of(tensor_in(&g[k]))
        elif g[k].kind == ROWS: a = array_of(rows_in(&g[k]).values)
        else: continue
        if a.layout.size and np.isnan(np.min(lend(&a, NULL, False))): return True      # (min of a NaN is a NaN)
    return False


cdef int raise_nan(Node node) except -1:
    line = line_of(node)
    line = "" if line is None else f", recorded at {line},"
    raise RuntimeError(f"the backward of {node.name()}{line} produced the first NaN: its incoming gradients had none")
