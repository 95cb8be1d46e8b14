"""The containers that refer to an object, and the local variables of a frame, for memory.why.

No object knows what refers to it. But the garbage collector has a list of all containers, and a container visits what
it refers to, so one pass over the list finds all that refer to some objects. A pass over 200,000 containers takes
some 20 ms."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from cygrad.core.graph.tensor cimport Leaf, Node, Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.memory.states cimport Table

ctypedef int (*visit_t)(PyObject*, void*) noexcept
ctypedef int (*traverse_t)(PyObject*, visit_t, void*) noexcept

import gc
import sys

cdef extern from "cygrad/frames.h":
    PyObject* cg_local(object frame, int i, object name)

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        traverse_t tp_traverse
    PyTypeObject* Py_TYPE(PyObject*)
    void Py_DECREF(PyObject*)


cdef class Search:
    """What a pass looks for, and what it has found in the current container."""
    cdef Buffer* buffer     # tensors on this buffer, or
    cdef Table addresses    # the objects at these addresses
    cdef list found


cdef int visit(PyObject* o, void* search) noexcept:
    cdef Search s = <Search>search
    if s.addresses is None:
        if isinstance(<object>o, Tensor) and (<Tensor><object>o).buffer == s.buffer: s.found.append(<object>o)
    elif s.addresses.find(<uintptr_t>o) != NULL: s.found.append(<object>o)
    return 0


def referrers(list objects, wanted):
    """[(container, object)] for each of `objects` that refers to one of the wanted: the tensors on the memory of a
    tensor, or the objects of a list. Recorded nodes are left out, because memory.why counts what they save."""
    cdef Search s = Search()
    cdef list out = []
    if isinstance(wanted, Tensor): s.buffer = (<Tensor>wanted).buffer
    else:
        s.addresses = Table(256 << (<int>len(wanted)).bit_length())     # (so large that put() cannot fail)
        for o in wanted: s.addresses.put(<uintptr_t><PyObject*>o)
    s.found = []
    for o in objects:
        if isinstance(o, Node) and not isinstance(o, Leaf): continue
        Py_TYPE(<PyObject*>o).tp_traverse(<PyObject*>o, visit, <void*>s)
        if s.found:
            out += [(o, x) for x in {id(x): x for x in s.found}.values()]
            s.found = []
    return out


def containers():
    """The containers of the program: what the garbage collector lists, and what modules lead to. (The list has nothing
    that gc.freeze() has moved.)"""
    cdef list objects = gc.get_objects()
    if not gc.get_freeze_count(): return objects
    known = {id(o) for o in objects}
    level = [*sys.modules.values(), *objects]
    while level:
        level = list({id(o): o for o in gc.get_referents(*level) if gc.is_tracked(o) and id(o) not in known}.values())
        known.update(map(id, level))
        objects += level
    return objects


def shares(x, Tensor t not None):
    """Whether `x` is a tensor on the memory of `t`."""
    return isinstance(x, Tensor) and (<Tensor>x).buffer == t.buffer


def variables(frame):
    """[(name, value)] of the local variables of a function's frame, except for those that only a compiler can name."""
    cdef PyObject* p
    cdef int i
    cdef list out = []
    code = frame.f_code
    inner = [name for name in code.co_cellvars if name not in code.co_varnames]
    for i, name in enumerate([*code.co_varnames, *inner, *code.co_freevars]):
        p = cg_local(frame, i, name)
        if p == NULL: continue
        if name.isidentifier(): out.append((name, <object>p))
        Py_DECREF(p)
    return out
