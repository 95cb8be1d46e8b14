"""Reference cycles and Python's garbage collector. Recording creates no cycle: a tensor refers to its node, and a node
to older nodes. User code can create one: by a hook that captures its tensor, by a ctx that refers to its own output, by
what `pack` returns, or by a .grad that is a variable. Such a cycle may contain any tensor, node or leaf, so the
collector must be able to traverse all of them.

By default, Cython registers each object with the collector at its creation, which costs 3 ns, and every full collection
walks all of them. Here objects have the collector's header and are registered when they can be part of a cycle. A leaf
is registered at its creation, a tensor when it gets a node or a base, and a plain tensor never. Nodes, of which a graph
may have a million, are registered when user code first creates such a reference (core/graph/tape.pyx, expect_cycles):
the existing ones then, later ones at their creation. The traversal visits all references that an object owns, except
for the owner of external memory: that is a NumPy array, and the collector does not track NumPy arrays. Clearing breaks
the references that user code can create, because every cycle contains one.

This module must be imported before the first node is made. core/graph/tape.pyx imports it."""

from cpython.object cimport PyObject

from cygrad.core.graph.extras cimport extras_of
from cygrad.core.graph.tensor cimport (
    EXTRAS, Extras, Leaf, Node, PyObject_GC_UnTrack, Tensor, edge_of, put_grad, slots_of,
)
from cygrad.core.graph.slots cimport Slot, empty_slot, object_in

ctypedef int (*visit_t)(PyObject*, void*) noexcept
ctypedef int (*traverse_t)(PyObject*, visit_t, void*) noexcept
ctypedef int (*clear_t)(PyObject*) noexcept
ctypedef PyObject* (*alloc_t)(PyTypeObject*, Py_ssize_t) noexcept
ctypedef void (*free_t)(void*) noexcept
ctypedef void (*dealloc_t)(PyObject*) noexcept

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        unsigned long tp_flags
        alloc_t tp_alloc
        free_t tp_free
        dealloc_t tp_dealloc
        traverse_t tp_traverse
        clear_t tp_clear
    PyTypeObject* Py_TYPE(PyObject*)
    unsigned long Py_TPFLAGS_HAVE_GC
    PyObject* PyType_GenericAlloc(PyTypeObject*, Py_ssize_t) noexcept
    void PyObject_GC_Del(void*) noexcept
    void PyType_Modified(PyTypeObject*)

cdef inline int visit_one(void* p, visit_t visit, void* arg) noexcept:
    return visit(<PyObject*>p, arg) if p != NULL and p != <void*>None else 0


cdef int visit_extras(Node n, visit_t visit, void* arg) noexcept:
    """Visit the node's entry in the side table, which the node owns."""
    cdef Extras extras = extras_of(n)
    return visit_one(<void*>extras.kept, visit, arg) or visit_one(<void*>extras.hooks, visit, arg)


cdef int traverse_node(PyObject* o, visit_t visit, void* arg) noexcept:
    cdef int i, k, stop
    cdef Slot* s = slots_of(<Node>o)
    stop = visit_one(<void*>(<Node>o).op, visit, arg) or visit_one(<void*>(<Node>o).attributes, visit, arg)
    if stop: return stop
    for i in range((<Node>o).n_in):
        stop = visit_one(edge_of(<Node>o, i).node, visit, arg)
        if stop: return stop
    for k in range((<Node>o).n_slots):
        stop = visit_one(object_in(&s[k]), visit, arg)
        if stop: return stop
    return visit_extras(<Node>o, visit, arg) if (<Node>o).flags & EXTRAS else 0


cdef int clear_node(PyObject* o) noexcept:
    cdef Node n = <Node>o
    cdef Extras extras
    cdef Slot* s = slots_of(n)
    cdef int k
    for k in range(n.n_slots):
        if object_in(&s[k]) != NULL: empty_slot(&s[k])
    if n.op is not None and n.op.joint_formula: n.attributes = None
    if n.flags & EXTRAS:
        extras = extras_of(n)
        extras.hooks = None
        extras.kept = None
    return 0


cdef int traverse_leaf(PyObject* o, visit_t visit, void* arg) noexcept:
    return (visit_one(<void*>(<Leaf>o).grad, visit, arg) or visit_one(<void*>(<Leaf>o).rows, visit, arg)
            or traverse_node(o, visit, arg))


cdef int clear_leaf(PyObject* o) noexcept:
    put_grad(<Leaf>o, None)
    return clear_node(o)


cdef int traverse_tensor(PyObject* o, visit_t visit, void* arg) noexcept:
    return visit_one(<void*>(<Tensor>o)._node, visit, arg) or visit_one(<void*>(<Tensor>o).base, visit, arg)


cdef PyObject* allocate_unseen(PyTypeObject* kind, Py_ssize_t n) noexcept:
    cdef PyObject* o = PyType_GenericAlloc(kind, n)
    if o != NULL: PyObject_GC_UnTrack(o)
    return o


cdef int make_collectable(type kind, traverse_t traverse, clear_t clear) except -1:
    cdef PyTypeObject* t = <PyTypeObject*>kind
    t.tp_flags |= Py_TPFLAGS_HAVE_GC
    t.tp_alloc, t.tp_free = allocate_unseen, PyObject_GC_Del
    t.tp_traverse, t.tp_clear = traverse, clear
    PyType_Modified(t)


cdef dealloc_t tensor_dealloc = (<PyTypeObject*>Tensor).tp_dealloc


cdef void dealloc_seen(PyObject* o) noexcept:
    """Unregister a tensor before the callbacks of weak references run. (A freed tensor has just been registered, by the
    code that Cython generates for a subclass.)"""
    if (<Tensor>o)._node is not None or (<Tensor>o).base is not None or Py_TYPE(o) != <PyTypeObject*>Tensor:
        PyObject_GC_UnTrack(o)
    tensor_dealloc(o)


make_collectable(Node, traverse_node, clear_node)
make_collectable(Leaf, traverse_leaf, clear_leaf)
make_collectable(Tensor, traverse_tensor, NULL)
(<PyTypeObject*>Tensor).tp_dealloc = dealloc_seen
