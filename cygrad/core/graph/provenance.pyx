"""Where in the program a node was recorded and a buffer was last written, and the error that says so: what a node saved
was written in place. The lines are known while detect_anomaly is on."""

from libc.stdint cimport uint32_t

from cygrad.core.graph.extras cimport extras_of, give_extras
from cygrad.core.graph.slots cimport Slot, buffer_in, was_written
from cygrad.core.graph.tensor cimport EXTRAS, Node
from cygrad.core.source cimport where
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Layout

from cygrad.core.errors import InplaceError

cdef dict writes = {}               # address of a buffer -> (version, line) of the last write to it that was watched


cdef object line_of(Node node):
    """The line that recorded a node, or None."""
    return extras_of(node).line if node.flags & EXTRAS else None


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


cdef int check_slot(Node node, const Slot* s) except -1:
    """That what a slot saves is as it was."""
    return raise_rewritten_at(node, s.layout, s.version, buffer_in(s)) if was_written(s) else 0


cdef int raise_rewritten_at(Node node, const Layout* l, uint32_t kept, const Buffer* b) except -1:
    line = line_of(node)                            # (None unless detect_anomaly was on)
    at, write = writes.get(<size_t>b, (None, None))
    recorded = "" if line is None else f" (recorded at {line})"
    written = f" (at {write})" if at == b.version else ""
    gradient = " (a variable's .grad is written by backward itself: keep a copy() of it)" if b.gradients else ""
    raise InplaceError(
        f"{node.name()}{recorded} kept a tensor of shape {lay.shape_tuple(l)} for backward at version {kept}, but it "
        f"has been written in place since{written} and is at version {b.version}; write to a copy(), or compute what "
        f"needs it before the write{gradient}")
