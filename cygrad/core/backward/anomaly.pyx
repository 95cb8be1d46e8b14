"""detect_anomaly: nodes know the line that recorded them, and the first NaN that a node's backward makes out of
gradients without one is an error that names it."""

import numpy as np

from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.provenance cimport line_of
from cygrad.core.graph.tensor cimport Gradient, Node, Tensor, array_of, edge_of
from cygrad.core.backward.turn cimport Turn
from cygrad.kernels.array cimport Array, itemsize


cdef bint any_nan(Turn b, const Gradient* g, int n) except -1:
    """Whether one of `n` gradients of the node's outputs (b.g) or inputs (b.dx) has a NaN."""
    cdef Array a
    cdef int k
    for k in range(n):
        if g[k].buffer == NULL: continue
        if b.graph: a = array_of(<Tensor><void*>g[k].buffer)
        else:
            a.dtype = b.node.dtype if g == b.g else (<Node>edge_of(b.node, k).node).dtype
            a.layout = g[k].layout
            a.data = g[k].buffer.data + a.layout.offset * itemsize(a.dtype)
        if a.layout.size and np.isnan(np.min(lend(&a, NULL, False))): return True      # (which a NaN passes through)
    return False


cdef int raise_nan(Node node) except -1:
    line = line_of(node)
    line = "" if line is None else f", recorded at {line},"
    raise RuntimeError(f"the backward of {node.name()}{line} made the first NaN: its incoming gradients had none")
