"""The lines of the program that recorded a node and that last wrote to a buffer, and the error for a saved tensor that
was written in place. The lines are recorded while detect_anomaly is on."""

from libc.stdint cimport uint32_t

from cygrad.core.graph.extras cimport extras_of, give_extras
from cygrad.core.graph.slots cimport Slot, buffer_in
from cygrad.core.graph.tensor cimport EXTRAS, Node
from cygrad.core.graph.trace cimport traces, version_of, version_saved, was_rewritten
from cygrad.core.source cimport where
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport VIRTUAL, Buffer, refuse_virtual
from cygrad.kernels.array cimport Layout

from cygrad.core.errors import InplaceError

cdef dict writes = {}               # address of a buffer -> (version, line) of its last write under detect_anomaly


cdef object line_of(Node node):
    """The line that recorded a node, or None."""
    return extras_of(node).line if node.flags & EXTRAS else None


cdef str line_here():
    name, line, function = where()
    return f"{name}:{line} in {function}"


cdef int remember_line(Node node) except -1:
    """Store the line of the program that records the node."""
    give_extras(node).line = line_here()
    return 0


cdef int remember_write(const Buffer* b) except -1:
    """Store the line that has just written to a buffer."""
    if len(writes) >= 10000: writes.clear()         # (freeing a buffer does not remove its entry)
    writes[<size_t>b] = b.version, line_here()
    return 0


cdef int check_slot(Node node, const Slot* s) except -1:
    """Raise InplaceError if the buffer of a slot was written after it was saved."""
    cdef Buffer* b = buffer_in(s)
    if b == NULL or not was_rewritten(node, s, b): return 0
    return raise_rewritten_at(node, s.layout, version_saved(node, s, b), b, 0)


cdef int raise_rewritten_at(Node node, const Layout* l, uint32_t kept, const Buffer* b, uint32_t last) except -1:
    """Raise InplaceError for what `node` saved of a buffer at version `kept`. A buffer that was released since is NULL,
    and its version was `last`."""
    if b != NULL and b.flags & VIRTUAL and not traces(): refuse_virtual()       # (another thread's trace made it)
    line = line_of(node)                            # (None unless detect_anomaly was on)
    at, write = writes.get(<size_t>b, (None, None)) if b != NULL else (None, None)
    if b != NULL: last = version_of(b)
    recorded = "" if line is None else f" (recorded at {line})"
    written = f" (at {write})" if at == last else ""
    gradient = ""
    if b != NULL and b.gradients: gradient = " (backward itself writes to a variable's .grad: use a copy() of it)"
    raise InplaceError(
        f"{node.name()}{recorded} saved a tensor of shape {lay.shape_tuple(l)} for backward at version {kept}, but it "
        f"has been written in place since{written} and is at version {last}; write to a copy(), or compute "
        f"what uses it before the write{gradient}")
