"""What a backward pass does before it changes anything: it walks the graph from the heads, enters each node into its
table, finds those that lead to a wanted input, counts the contributions that each will receive, and checks all that can
be known beforehand. Nothing recurses and nothing is looked up by hash: a node remembers its place in the table."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_DECREF
from libc.string cimport memcpy, memset

from cygrad.core.store cimport layout as lay
from cygrad.core.backward.checks cimport check_node
from cygrad.core.graph.extras cimport kept_of
from cygrad.core.graph.tensor cimport NULL_REQ, RUNNING, Edge, Gradient, Leaf, Node, drop_gradient, edge_of
from cygrad.core.backward.heap cimport Item


@cython.freelist(4)
cdef class Walk:

    def __cinit__(self):
        self.entries, self.ready, self.capacity = self.inline_, self.inline_ready, SMALL

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n): self.drop_entry(&self.entries[i])
        if self.entries != self.inline_: PyMem_Free(self.entries)
        if self.ready != self.inline_ready: PyMem_Free(self.ready)

    cdef void drop_entry(self, Entry* e) noexcept:
        """Drop a gradient that nobody will use."""
        cdef Node node = <Node>e.node
        cdef int k
        if e.g.buffer == NULL: return
        if node.n_out > 1:
            for k in range(node.n_out): self.forget_one(&(<Gradient*>e.g.buffer)[k])
            PyMem_Free(e.g.buffer)
            e.g.buffer = NULL
        else:
            self.forget_one(&e.g)

    cdef void forget_one(self, Gradient* g) noexcept:
        if not self.graph: drop_gradient(g)
        elif g.buffer != NULL:
            Py_DECREF(<object><void*>g.buffer)
            g.buffer = NULL

    cdef Py_ssize_t find(self, Node node) noexcept:
        """The entry of `node`, or -1."""
        cdef Py_ssize_t at
        if not self.alone and node.op is None:
            at = self.shared_leaves.get(<size_t><void*>node, -1)
            return at
        at = node.mark
        return at if at < self.n and self.entries[at].node == <void*>node else -1

    cdef Py_ssize_t enter(self, Node node) except -1:
        """The entry of `node`, made on its first visit, when its state is checked."""
        cdef Py_ssize_t at = self.find(node)
        cdef Entry* e
        if at >= 0: return at
        if node.op is not None:
            if node.state == RUNNING:
                raise RuntimeError(f"backward runs through this graph (at {node.name()}) already, in another thread or "
                                   f"in a hook of its own; wait for that pass, or record the graph anew")
        if self.n == self.capacity:
            e = <Entry*>PyMem_Realloc(NULL if self.capacity == SMALL else self.entries, 4 * self.capacity * sizeof(Entry))
            if e == NULL: raise MemoryError("no memory for the table of a backward pass")
            if self.capacity == SMALL: memcpy(e, self.inline_, sizeof(self.inline_))
            self.entries, self.capacity = e, 4 * self.capacity
        at = self.n
        if not self.alone and node.op is None: self.shared_leaves[<size_t><void*>node] = at
        else: node.mark = at
        e = &self.entries[at]
        memset(e, 0, sizeof(Entry))
        e.node = <void*>node
        e.needed = not self.selective
        self.n += 1
        return at

    # ---- the walk

    cdef int walk(self, list roots) except -1:
        """Enter every node that the roots reach; find those that lead to a wanted input; count contributions; check."""
        cdef Py_ssize_t at, child, top, count = 0, capacity = SMALL, start
        cdef Py_ssize_t inline_[SMALL]
        cdef Py_ssize_t* stack = inline_
        cdef Py_ssize_t* more
        cdef Node node
        cdef Edge e
        cdef int i, first, last
        try:
            for root in roots:
                start = self.n
                at = self.enter(<Node>root)
                if self.n == start: continue
                stack[0], count = at, 1
                while count:
                    if self.selective:              # depth first: a node is done when all that it leads to is
                        at = stack[count - 1]
                        node = <Node>self.entries[at].node
                        i = self.entries[at].pending        # how many of its edges have been followed
                        if i == node.n_in:
                            self.entries[at].pending = 0
                            if <size_t><void*>node in self.wanted:
                                self.entries[at].needed = True
                                self.entries[at].captured = self.capturing
                            count -= 1
                            if count and self.entries[at].needed: self.entries[stack[count - 1]].needed = True
                            continue
                        self.entries[at].pending += 1
                        first, last = i, i + 1
                    else:
                        count -= 1
                        at = stack[count]
                        node = <Node>self.entries[at].node
                        first, last = 0, node.n_in
                    for i in range(first, last):
                        e = edge_of(node, i)
                        if e.node == NULL: continue
                        top = self.n
                        child = self.enter(<Node>e.node)
                        if self.n > top:
                            if count == capacity:
                                more = <Py_ssize_t*>PyMem_Realloc(NULL if stack == inline_ else stack, 16 * capacity)
                                if more == NULL: raise MemoryError("no memory for a backward pass")
                                if stack == inline_: memcpy(more, inline_, sizeof(inline_))
                                stack, capacity = more, 2 * capacity
                            stack[count] = child
                            count += 1
                        elif self.selective and self.entries[child].needed:
                            self.entries[at].needed = True
        finally:
            if stack != inline_: PyMem_Free(stack)
        for at in range(self.n):
            if not self.entries[at].needed: continue
            node = <Node>self.entries[at].node
            if node.op is None:
                self.check_leaf(<Leaf>node, &self.entries[at])
                continue
            for i in range(node.n_in):
                e = edge_of(node, i)
                if e.node == NULL: continue
                child = self.find(<Node>e.node)
                if self.entries[child].needed:
                    self.entries[child].pending += 1
                    self.entries[at].runs = True
            if self.entries[at].runs: check_node(node, self.mode)
            if self.graph:
                for nr, kept in kept_of(node):
                    if self.writes_kept(node, nr): self.check_leaf(<Leaf>kept, &self.entries[at])
        for root in roots:
            at = self.find(<Node>root)
            if self.entries[at].needed: self.entries[at].pending += 1
        if self.strict is not None:
            for n, _, position in self.captures:
                if self.find(<Node>n) < 0:
                    raise RuntimeError(f"{self.strict}: input {position} is not reachable from the outputs; pass "
                                       f"allow_unused=True to get None for it")
        if self.n > SMALL:
            self.ready = <Item*>PyMem_Malloc((self.n + 1) * sizeof(Item))
            if self.ready == NULL: raise MemoryError("no memory for a backward pass")
        return 0

    cdef int check_leaf(self, Leaf leaf, const Entry* e) except -1:
        if self.graph and leaf.given and leaf.req != NULL_REQ and not e.captured:
            raise RuntimeError(f"create_graph=True would put a new tensor in the place of the gradient that "
                               f"mark_variables was given for a variable of shape {lay.shape_tuple(leaf.layout)}; use "
                               f"autograd.grad, or attach_grad()")
        return 0

    cdef bint writes_kept(self, Node node, int k) except -1:
        """Whether the kept gradient of an output is for this pass to write."""
        if not self.selective: return True
        return any([n is node and nr == k and position < 0 for n, nr, position in self.captures])
