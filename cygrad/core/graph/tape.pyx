"""The tape: a ring of the nodes recorded in a scope, linked through the nodes themselves. A freed node is unlinked;
when a tape is freed, its nodes move to the enclosing tape. Recording writes two pointers, a query walks the ring. Every
live node is in one of the rings, so memory.why can find the nodes that save a buffer."""

cimport cython
from cpython.object cimport PyObject

from cygrad.core.graph cimport tensor as graph
from cygrad.core.graph.tensor cimport Node, PyObject_GC_Track, slots_of
from cygrad.core.store.buffer cimport EXTERNAL, Buffer
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.packed cimport kept_by
from cygrad.core.graph.slots cimport Slot

import cygrad.core.graph.cycles  # no-cython-lint: before the first node is made

cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(PyObject*)


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc                                       # the ring's pointers are uncounted, and a tape is never in a cycle
cdef class Tape:
    """The live operations that a `record()` scope has recorded, including those of scopes opened inside it."""

    def __cinit__(self):
        self.before = self.after = <void*>self      # first: __dealloc__ runs even if the next line fails
        self.head = Node.__new__(Node)
        self.head.before = self.head.after = <void*>self.head
        if root is None: return
        self.after = root.after
        self.before = <void*>root
        (<Tape>root.after).before = <void*>self
        root.after = <void*>self

    @cython.embedsignature.format("c")
    def __init__(self):
        """Enclosed by the thread's tape, if it has one."""
        cdef Flags* f = flags()
        if f.tape != NULL: self.parent = <Tape>f.tape

    def __dealloc__(self):
        cdef Node head = self.head
        cdef Node outer
        (<Tape>self.after).before = self.before
        (<Tape>self.before).after = self.after
        if head is None or head.after == <void*>head or root is None: return
        outer = (root if self.parent is None else self.parent).head     # move the nodes to the enclosing tape's ring
        (<Node>head.after).before = outer.before
        (<Node>outer.before).after = head.after
        (<Node>head.before).after = <void*>outer
        outer.before = head.before
        head.before = head.after = <void*>head

    @property
    def nodes(self):
        """The number of recorded operations that are alive."""
        cdef Py_ssize_t count = 0
        cdef void* t = <void*>self
        cdef void* p
        while t != NULL:
            p = (<Tape>t).head.after
            while p != <void*>(<Tape>t).head:
                count += 1
                p = (<Node>p).after
            t = following(t, self)
        return count

    @property
    def saved_bytes(self):
        """The bytes saved for backward. Each buffer counts once; variables and external memory do not count."""
        cdef size_t total = 0
        cdef void* t = <void*>self
        while t != NULL:
            total += kept_bytes(t)
            t = following(t, self)
        t = <void*>self
        while t != NULL:
            kept_unmark(t)
            t = following(t, self)
        return total

    def __repr__(self):
        return f"<Tape: {self.nodes:,} operations, {self.saved_bytes:,} bytes saved for backward>"

    def _repr_html_(self):
        """The operations as a table, for Jupyter. A buffer that several save counts for the first of them."""
        from cygrad.core.notebook import table, titled

        cdef dict counts = {}, sizes = {}
        cdef set seen = set()
        cdef Node node
        cdef Slot* s
        cdef Buffer* b
        cdef int k
        for node in nodes_of(self):
            name = node.name()
            counts[name] = counts.get(name, 0) + 1
            s = slots_of(node)
            for k in range(node.n_slots):
                b = kept_by(&s[k])
                if b == NULL or b.parameters or b.flags & EXTERNAL or <size_t>b in seen: continue
                seen.add(<size_t>b)
                sizes[name] = sizes.get(name, 0) + b.nbytes
        rows = [(name, counts[name], sizes.get(name, 0)) for name in counts]
        rows.sort(key=lambda row: -row[2])
        return titled("Tape", f"{sum(counts.values()):,} operations, {sum(sizes.values()):,} bytes saved for backward",
                      table(("operation", "number", "bytes"), rows))


root = Tape()


cdef void* following(void* t, Tape outer) noexcept:
    """The next tape after `t` in the ring that was opened inside `outer`, or NULL if there is none before `outer`."""
    cdef void* p
    while True:
        t = (<Tape>t).after
        if t == <void*>outer: return NULL
        p = <void*>(<Tape>t).parent
        while p != <void*>None and p != <void*>outer: p = <void*>(<Tape>p).parent
        if p == <void*>outer: return t


cdef list nodes_of(Tape outer):
    """The nodes of a tape and of those opened inside it."""
    cdef list nodes = []
    cdef Tape tape = outer          # (what is held stays in its ring, also if appending runs the garbage collector)
    cdef Node node
    cdef void* t = <void*>outer
    while t != NULL:
        tape = <Tape>t
        node = <Node>tape.head.after
        while node is not tape.head:
            nodes.append(node)
            node = <Node>node.after
        t = following(t, outer)
    return nodes


cdef void link(Node node, Flags* f) noexcept:
    """Append a new node to the ring that the thread records in."""
    cdef Node head = (<Tape>f.tape if f.tape != NULL else root).head
    node.before, node.after = head.before, <void*>head
    (<Node>head.before).after = <void*>node
    head.before = <void*>node


cdef size_t kept_bytes(void* t) noexcept:
    """Mark the unmarked buffers that the nodes of a tape save, and return the sum of their bytes."""
    cdef size_t total = 0
    cdef void* p = (<Tape>t).head.after
    cdef Slot* s
    cdef Buffer* b
    cdef int k
    while p != <void*>(<Tape>t).head:
        s = slots_of(<Node>p)
        for k in range((<Node>p).n_slots):
            b = kept_by(&s[k])
            if b == NULL or b.mark or b.parameters or b.flags & EXTERNAL: continue
            b.mark = 1
            total += b.nbytes
        p = (<Node>p).after
    return total


cdef void kept_unmark(void* t) noexcept:
    cdef void* p = (<Tape>t).head.after
    cdef Slot* s
    cdef Buffer* b
    cdef int k
    while p != <void*>(<Tape>t).head:
        s = slots_of(<Node>p)
        for k in range((<Node>p).n_slots):
            b = kept_by(&s[k])
            if b != NULL: b.mark = 0
        p = (<Node>p).after


cdef void expect_cycles() noexcept:
    """Register every node with the garbage collector from now on, because user code creates a reference that may close
    a cycle."""
    cdef void* tape = <void*>root
    cdef void* p
    if graph.collected: return
    graph.collected = True
    while True:
        p = (<Tape>tape).head.after
        while p != <void*>(<Tape>tape).head:
            if not PyObject_GC_IsTracked(<PyObject*>p): PyObject_GC_Track(<PyObject*>p)
            p = (<Node>p).after
        tape = (<Tape>tape).after
        if tape == <void*>root: return
