"""What few nodes have: hooks, gradients of intermediates that are kept, the line that recorded them. It lies in a table
beside the nodes, so that those without, which may be a million, have no room for it; a flag says which have some."""

from cygrad.core.graph.tensor cimport EXTRAS, Extras, Leaf, Node, all_extras


cdef inline Extras extras_of(Node node):
    """A node's Extras, or None."""
    return <Extras>all_extras[<size_t><void*>node] if node.flags & EXTRAS else None

cdef inline Extras give_extras(Node node):
    """A node's Extras, new ones where it had none. It forgets them when it dies."""
    if not node.flags & EXTRAS:
        all_extras[<size_t><void*>node] = Extras.__new__(Extras)
        node.flags |= EXTRAS
    return extras_of(node)

cdef inline list kept_of(Node node):
    """The accumulators of a node's outputs whose gradients are kept: (output number, Leaf) for each."""
    cdef Extras extras = extras_of(node)
    return [] if extras is None or extras.kept is None else extras.kept

cdef inline int keep_for(Node node, int output_nr, Leaf leaf) except -1:
    """One more of them."""
    cdef Extras extras = give_extras(node)
    if extras.kept is None: extras.kept = []
    extras.kept.append((output_nr, leaf))
    return 0
