"""detect_anomaly: nodes know the line that recorded them, and the first NaN that a node's backward makes out of
gradients without one is an error that names it."""

import numpy as np

from cygrad.core.bridge cimport lend
from cygrad.core.extras cimport extras_of, give_extras
from cygrad.core.graph cimport EXTRAS, Gradient, Node, Tensor, array_of, edge_of, plug
from cygrad.core.memory cimport Buffer
from cygrad.core.source cimport where
from cygrad.core.turn cimport Turn
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


cdef object line_of(Node node):
    """The line that recorded a node, or None."""
    return extras_of(node).line if node.flags & EXTRAS else None


cdef int raise_nan(Node node) except -1:
    line = line_of(node)
    line = "" if line is None else f", recorded at {line},"
    raise RuntimeError(f"the backward of {node.name()}{line} made the first NaN: its incoming gradients had none")


cdef dict writes = {}               # address of a buffer -> (version, line) of the last write to it that was watched


cdef str line_here():
    name, line, function = where()
    return f"{name}:{line} in {function}"


cdef int remember_line(Node node) except -1:
    """Let the node know which line of the program records it."""
    give_extras(node).line = line_here()
    return 0


cdef int remember_write(const Buffer* b) except -1:
    """Which line has just written to a buffer."""
    if len(writes) >= 10000: writes.clear()         # (buffers die unnoticed)
    writes[<size_t>b] = b.version, line_here()
    return 0


def _lines_of(Node node, size_t buffer, version):
    """What an error may say of where a node was recorded, and a buffer last written to."""
    line = line_of(node)
    at, write = writes.get(buffer, (None, None))
    return ("" if line is None else f" (recorded at {line})", f" (at {write})" if at == version else "")


plug("lines_of", _lines_of)
