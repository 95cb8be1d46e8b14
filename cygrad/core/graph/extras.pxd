"""Rare per-node state, in a side table: hooks, retained gradients of intermediates, and the line that recorded the
node. Nodes without it, of which there may be a million, spend no memory on it. A flag marks the nodes that have an
entry."""

from cygrad.core.graph.tensor cimport EXTRAS, Extras, Leaf, Node, all_extras


cdef inline Extras extras_of(Node node):
    """A node's Extras, or None."""
    return <Extras>all_extras[<size_t><void*>node] if node.flags & EXTRAS else None

cdef inline Extras give_extras(Node node):
    """A node's Extras, created if it has none. Freeing the node removes them."""
    if not node.flags & EXTRAS:
        all_extras[<size_t><void*>node] = Extras.__new__(Extras)
        node.flags |= EXTRAS
    return extras_of(node)

cdef inline list accumulators_of(Node node):
    """The accumulators of a node's outputs whose gradients are kept: a list of (output number, Leaf)."""
    cdef Extras extras = extras_of(node)
    return [] if extras is None or extras.kept is None else extras.kept

cdef inline int add_accumulator(Node node, int output_nr, Leaf leaf) except -1:
    """Add an accumulator for the gradient of output `output_nr`."""
    cdef Extras extras = give_extras(node)
    if extras.kept is None: extras.kept = []
    extras.kept.append((output_nr, leaf))

cdef inline object consumer_in(Node node):
    """What takes the gradients of a variable in place of .grad (core/backward/consumer.pxd), or None."""
    cdef Extras extras = extras_of(node)
    if extras is None or extras.hooks is None or not extras.hooks.get("consumed"): return None
    for consumer in extras.hooks["consumed"].values(): return consumer
