from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.graph.tensor cimport Leaf, Node
from cygrad.core.backward.turn cimport Turn

cdef int on_outputs(Node node, Gradient* g, bint graph) except -1
cdef int before_node(Node node, Gradient* g, bint graph) except -1
cdef int after_node(Node node, Turn b, tuple outputs) except -1
cdef int after_leaf(Leaf leaf, tuple given, bint graph) except -1
cdef tuple outputs_of(Node node, const Gradient* g)
cdef void remove_hooks(Node node) noexcept
cdef list hooks_of(Node node, str kind)
cdef bint has_hooks(Node node, str kind) noexcept
cdef object call_watched(f, tuple args, bint graph, str what)
