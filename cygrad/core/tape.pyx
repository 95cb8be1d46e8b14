"""The tape: a ring of the nodes recorded in a scope, kept by the nodes themselves. A node that dies leaves the ring; a
tape that dies leaves its nodes to the enclosing one. Asking costs a walk, recording two pointers. Every node that lives
is in one of the rings: whoever looks for those that keep a buffer (memory.why) finds them there."""

import weakref

from cygrad.core.graph cimport KEPT, Node, Slot, slots_of
from cygrad.core.memory cimport EXTERNAL, Buffer
from cygrad.core.modes cimport Flags, flags


cdef class Tape:
    """What a `record()` scope has recorded, as it is right now; scopes opened inside it count too."""

    def __cinit__(self):
        self.head = Node.__new__(Node)
        self.head.before = self.head.after = <void*>self.head
        self.before = self.after = <void*>self
        if root is None: return
        self.after = root.after
        self.before = <void*>root
        (<Tape>root.after).before = <void*>self
        root.after = <void*>self

    def __init__(self):
        """Enclosed by the thread's tape, if it has one."""
        cdef Flags* f = flags()
        if f.tape != NULL:
            self.parent = <Tape>f.tape
            if self.parent.children is None: self.parent.children = weakref.WeakSet()
            self.parent.children.add(self)

    def __dealloc__(self):
        cdef Node head = self.head
        cdef Node outer
        (<Tape>self.after).before = self.before
        (<Tape>self.before).after = self.after
        if head.after == <void*>head or root is None: return
        outer = (root if self.parent is None else self.parent).head     # the nodes go on in the enclosing scope's ring
        (<Node>head.after).before = outer.before
        (<Node>outer.before).after = head.after
        (<Node>head.before).after = <void*>outer
        outer.before = head.before
        head.before = head.after = <void*>head

    @property
    def nodes(self):
        """How many recorded operations are alive."""
        cdef Py_ssize_t count = 0
        cdef void* p = self.head.after
        while p != <void*>self.head:
            count += 1
            p = (<Node>p).after
        return count + sum([t.nodes for t in self.children or ()])

    @property
    def saved_bytes(self):
        """Bytes kept for backward: each distinct buffer once, leaves and external memory not counted."""
        cdef size_t total = kept_bytes(self)
        kept_unmark(self)
        return total


root = Tape()


cdef void link(Node node, Flags* f) noexcept:
    """Let a new node be the last of the ring that the thread records in."""
    cdef Node head = (<Tape>f.tape if f.tape != NULL else root).head
    node.before, node.after = head.before, <void*>head
    (<Node>head.before).after = <void*>node
    head.before = <void*>node


cdef size_t kept_bytes(Tape t) except? 0:
    """Sum and mark the buffers that the nodes of `t` keep and that are not marked yet."""
    cdef size_t total = 0
    cdef void* p = t.head.after
    cdef Slot* s
    cdef Buffer* b
    cdef int k
    while p != <void*>t.head:
        s = slots_of(<Node>p)
        for k in range((<Node>p).n_slots):
            if s[k].kind != KEPT: continue
            b = s[k].what.buffer
            if b.mark or b.parameters or b.flags & EXTERNAL: continue
            b.mark = 1
            total += b.nbytes
        p = (<Node>p).after
    for child in t.children or (): total += kept_bytes(child)
    return total


cdef int kept_unmark(Tape t) except -1:
    cdef void* p = t.head.after
    cdef Slot* s
    cdef int k
    while p != <void*>t.head:
        s = slots_of(<Node>p)
        for k in range((<Node>p).n_slots):
            if s[k].kind == KEPT: s[k].what.buffer.mark = 0
        p = (<Node>p).after
    for child in t.children or (): kept_unmark(child)
    return 0
