"""Cycles, and Python's garbage collector. Recording makes none: tensors know nodes, nodes know nodes that are older. A
user makes one by what refers back: a hook that captures its tensor, a ctx with its own output, what `pack` returned, a
.grad that is a variable. Such a cycle may pass through any tensor, node and leaf, so the collector must see them all.

Cython would show it each object from birth: 3 ns for each, and a walk over all of them at each full collection. Ours
have the collector's header and are shown to it when they can be part of a cycle. A leaf is shown at birth, a tensor
when it gets a node or a base: plain tensors never. Nodes, of which a graph may have a million, are shown when the first
of these references is made (core.tape.expect_cycles), those that exist too, and from then on at birth. The traversal
visits all that an object owns, but not the owner of external memory: that is a NumPy array, which the collector does
not know either. Clearing breaks the references that a user can make, since every cycle has one.

This must be imported before the first node is made: core/graph/tape.pyx does."""

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
    """What the side table holds for a node is the node's own."""
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
    return visit_one(<void*>(<Leaf>o).grad, visit, arg) or traverse_node(o, visit, arg)


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
    return 0


cdef dealloc_t tensor_dealloc = (<PyTypeObject*>Tensor).tp_dealloc


cdef void dealloc_seen(PyObject* o) noexcept:
    """The collector forgets a tensor before the callbacks of weak references run. (One that was freed has just been
    shown to it, by what Cython writes for a subclass.)"""
    if (<Tensor>o)._node is not None or (<Tensor>o).base is not None or Py_TYPE(o) != <PyTypeObject*>Tensor:
        PyObject_GC_UnTrack(o)
    tensor_dealloc(o)


make_collectable(Node, traverse_node, clear_node)
make_collectable(Leaf, traverse_leaf, clear_leaf)
make_collectable(Tensor, traverse_tensor, NULL)
(<PyTypeObject*>Tensor).tp_dealloc = dealloc_seen
