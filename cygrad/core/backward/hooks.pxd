from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.graph.tensor cimport Leaf, Node
from cygrad.core.backward.turn cimport Turn
from cygrad.core.backward.walk cimport Walk

cdef class MultiHook:
    cdef object f
    cdef Py_ssize_t n           # number of tensors
    cdef bint first             # the first gradient of a pass is enough
    cdef dict passes            # number of a pass -> [number of gradients that it waits for, the gradients so far];
                                # with `first`: True, it was called

    cdef int arrive(self, Walk walk, Py_ssize_t at, gradient) except -1
    cdef Py_ssize_t awaited(self, Walk walk) except -1


cdef class MultiHookPart:
    cdef MultiHook hook
    cdef Py_ssize_t at          # the number of its tensor


cdef int on_outputs(Node node, Gradient* g, Walk walk) except -1
cdef void forget_pass(Node node, Walk walk) noexcept
cdef int before_node(Node node, Gradient* g, bint graph) except -1
cdef int after_node(Node node, Turn b, tuple outputs) except -1
cdef int after_leaf(Leaf leaf, tuple given, bint graph) except -1
cdef tuple outputs_of(Node node, const Gradient* g)
cdef void remove_hooks(Node node) noexcept
cdef list hooks_of(Node node, str kind)
cdef bint has_hooks(Node node, str kind) noexcept
cdef object call_watched(f, tuple args, bint graph, str what)
