"""The first part of a backward pass, which changes no gradient and frees nothing. It walks the graph from the heads,
enters each node into a table, finds the nodes from which a path leads to a wanted input, counts the contributions that
each will receive, and makes every check that can be made before a node runs. Later it finds memory to which a gradient
may be written. Nothing recurses, and there are no hash tables: a node has a field for its index in the table."""

cimport cython
from cpython.mem cimport PyMem_Free
from libc.string cimport memcpy, memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store cimport tables
from cygrad.core.backward.checks cimport check_node
from cygrad.core.graph.extras cimport accumulators_of
from cygrad.core.graph.running cimport runs
from cygrad.core.graph.tensor cimport (
    EXTRAS, NULL_REQ, RUNNING, WRITE, Edge, Leaf, Node, edge_of, is_tracked, output_layout,
)
from cygrad.core.backward.gradients cimport Gradient, drop_gradient, is_writable
from cygrad.core.backward.heap cimport Item
from cygrad.core.store.buffer cimport ZEROS
from cygrad.core.store.arena cimport Span
from cygrad.core.store.tables cimport free_table
from cygrad.core.thread_state cimport Flags, flags

from cygrad.core.store.buffer import take_table


cdef str NAME = "backward"

cdef enum:
    MANY = 8192             # a table of more entries grows to twice its size only


cdef inline size_t table_bytes(Py_ssize_t capacity) noexcept:
    """The bytes of a table: its entries, and a heap of them."""
    return capacity * sizeof(Entry) + (capacity + 1) * sizeof(Item)

cdef inline Py_ssize_t below(Entry* e) noexcept:
    """Take the top off the stack of the walk. Returns what is below."""
    cdef Py_ssize_t at = e.n_waiting
    e.n_waiting = 0
    return at


@cython.freelist(4)
cdef class Walk:

    def __cinit__(self):
        self.entries, self.ready, self.capacity = self.inline_, self.inline_ready, SMALL

    def __dealloc__(self):
        for i in range(self.n): self.drop_entry(&self.entries[i])
        if self.table != NULL: free_table(self.table)

    cdef int grow(self) except -1:
        """Make room for more entries, in a table that an earlier pass has left, or in a larger one."""
        cdef Flags* f = flags()
        cdef void* op = f.op
        cdef Span* table = NULL
        if self.table == NULL: table, tables.spare = tables.spare, NULL
        if table == NULL:
            f.op = <void*>NAME                      # (for an error)
            try: table = <Span*><size_t>take_table(table_bytes(self.capacity * (4 if self.capacity < MANY else 2)))
            finally: f.op = op
        memcpy(table.data, self.entries, self.n * sizeof(Entry))
        if self.table != NULL: free_table(self.table)
        self.table, self.entries = table, <Entry*>table.data
        self.capacity = (table.size - sizeof(Item)) // (sizeof(Entry) + sizeof(Item))
        self.ready = <Item*>(self.entries + self.capacity)
        return 0

    cdef void drop_entry(self, Entry* e) noexcept:
        """Release the gradients of a node's outputs."""
        cdef int k
        drop_gradient(&e.gradient)
        if e.several == NULL: return
        for k in range((<Node>e.node).n_out): drop_gradient(&e.several[k])
        PyMem_Free(e.several)
        e.several = NULL

    cdef Py_ssize_t find(self, Node node) noexcept:
        """The index of the entry of `node`, or -1."""
        cdef Py_ssize_t at
        if self.shared_leaves is not None and node.op is None:
            at = self.shared_leaves.get(<size_t><void*>node, -1)
            return at
        at = node.mark
        return at if at < self.n and self.entries[at].node == <void*>node else -1

    cdef Py_ssize_t enter(self, Node node) except -1:
        """The index of the entry of `node`. The first visit checks the node's state and creates the entry."""
        cdef Py_ssize_t at = self.find(node)
        cdef Entry* e
        if at >= 0: return at
        if node.op is not None:
            if node.state == RUNNING:
                raise RuntimeError(f"a backward pass is already running in this graph (at {node.name()}), in another "
                                   f"thread or in one of its own hooks; wait for it, or record the graph again")
        if self.n == self.capacity: self.grow()
        at = self.n
        if self.shared_leaves is not None and node.op is None: self.shared_leaves[<size_t><void*>node] = at
        else: node.mark = at
        e = &self.entries[at]
        memset(e, 0, sizeof(Entry))
        e.node = <void*>node
        e.needed = not self.selective
        self.n += 1
        return at

    # ---- the walk

    cdef int walk(self, list roots) except -1:
        """Enter every node that the roots reach. Find those that are needed, count their contributions, check them."""
        cdef Py_ssize_t at, child, before, top = -1         # `top`: of a stack of entries (n_waiting)
        cdef Node node
        cdef Edge e
        cdef int i, first, last
        for root in roots:
            before = self.n
            at = self.enter(<Node>root)
            if self.n == before: continue
            self.entries[at].n_waiting = top
            top = at
            while top >= 0:
                at = top
                node = <Node>self.entries[at].node
                if self.selective:                  # depth first: a node is needed if a node below it is
                    i = self.entries[at].pending    # the number of its edges that have been followed
                    if i == node.n_in or (self.parts and <size_t><void*>node in self.wanted):
                        self.entries[at].pending = 0
                        if <size_t><void*>node in self.wanted:
                            self.entries[at].needed = True
                            self.entries[at].captured = self.capturing
                        top = below(&self.entries[at])
                        if top >= 0 and self.entries[at].needed: self.entries[top].needed = True
                        continue
                    self.entries[at].pending += 1
                    first, last = i, i + 1
                else:
                    top = below(&self.entries[at])
                    first, last = 0, node.n_in
                for i in range(first, last):
                    e = edge_of(node, i)
                    if e.node == NULL: continue
                    before = self.n
                    child = self.enter(<Node>e.node)
                    if self.n > before:
                        self.entries[child].n_waiting = top
                        top = child
                    elif self.selective and self.entries[child].needed:
                        self.entries[at].needed = True
        for at in range(self.known, self.n):
            if not self.entries[at].needed: continue
            node = <Node>self.entries[at].node
            if node.op is None:
                self.check_leaf(<Leaf>node, &self.entries[at])
                continue
            if self.parts and self.entries[at].captured: continue       # (where the walk has ended)
            for i in range(node.n_in):
                e = edge_of(node, i)
                if e.node == NULL: continue
                child = self.find(<Node>e.node)
                if self.entries[child].needed:
                    self.entries[child].pending += 1
                    self.entries[at].runs = True
            if self.entries[at].runs: check_node(node, self.mode)
            if self.graph:
                for nr, kept in accumulators_of(node):
                    if self.writes_kept(node, nr): self.check_leaf(<Leaf>kept, &self.entries[at])
        for root in roots:
            at = self.find(<Node>root)
            if self.entries[at].needed: self.entries[at].pending += 1
        if self.strict is not None:
            for n, _, position in self.captures:
                if self.find(<Node>n) < 0:
                    raise RuntimeError(f"{self.strict}: input {position} is not reachable from the outputs; pass "
                                       f"allow_unused=True to get None for it")

    cdef int check_leaf(self, Leaf leaf, const Entry* e) except -1:
        leaf = seen_by(self, leaf)
        if self.graph and leaf.given and leaf.req != NULL_REQ and not e.captured:
            raise RuntimeError(f"create_graph=True would replace the gradient that was given to mark_variables for a "
                               f"variable of shape {lay.shape_tuple(leaf.layout)}; use autograd.grad, or attach_grad()")

    cdef bint writes_kept(self, Node node, int k) except -1:
        """Whether this pass writes the kept gradient of output `k`."""
        if not self.selective: return True
        return any([n is node and nr == k and position < 0 for n, nr, position in self.captures])

    # ---- memory to which a kernel may write a gradient

    cdef int contributions_left(self, Node node) noexcept:
        """The number of contributions that a consumer of the gradient of a variable has to wait for; 0: it gets none,
        because the gradient is a result."""
        cdef const Entry* e = &self.entries[self.find(node)]
        return 0 if e.captured else e.pending + has_come(e)

    cdef int note_consumed(self, Consumer consumer) except -1:
        """Note that a consumer has taken, or will take, a contribution."""
        if self.consumed is None: self.consumed = []
        if consumer not in self.consumed: self.consumed.append(consumer)

    cdef int aim(self, Node node, int i, Target* t) except -1:
        """Find existing memory for the gradient of input i: a variable's .grad, which a kernel may overwrite or add to,
        or the sum of its contributions, to which a kernel may add. If several inputs are the same tensor, only the
        first that is computed gets it."""
        cdef Edge edge = edge_of(node, i)
        cdef Entry* e = &self.entries[self.find(<Node>edge.node)]
        cdef Gradient* sum = &e.gradient
        cdef Leaf leaf = self.direct(<Node>edge.node, e)
        if leaf is None: sum = self.sum_of(edge, e)
        if sum == NULL or sum.lent: return 0
        sum.lent = True
        t.sum = sum
        if leaf is None: return 0
        t.leaf = <void*>leaf
        t.first = self.overwrites(leaf, e)

    cdef bint overwrites(self, Leaf leaf, const Entry* e) noexcept:
        """Whether the next contribution overwrites .grad. With "write" the first of a pass does. Inside a
        GradientCollector only the first that it collects does, also with "add"."""
        if e.reached: return False
        if self.collected is None or (self.collected.adds and leaf.req != WRITE): return leaf.req == WRITE
        return leaf.collected != self.collected.number

    cdef bint half_way(self, Leaf leaf) noexcept:
        """Whether another pass has written some, but not all, of its contributions to .grad."""
        if not is_own(self, leaf): return False
        return leaf.busy != self.number and runs(leaf.busy)

    cdef Leaf direct(self, Node node, Entry* e):
        """The variable whose .grad a kernel may write directly, or None."""
        cdef Leaf leaf
        if node.op is not None or e.captured or not self.alone or node.flags & EXTRAS: return None
        leaf = seen_by(self, <Leaf>node)
        if (leaf.tensor == NULL or leaf.req == NULL_REQ or leaf.grad is None or is_tracked(leaf.grad)
                or leaf.grad.buffer.flags & ZEROS or not leaf.grad.layout.dense or leaf.grad.buffer.saved
                or (self.half_way(leaf) and not e.reached)):
            return None
        return leaf

    cdef Gradient* sum_of(self, Edge edge, Entry* e) noexcept:
        """The sum of the contributions to the output that an edge leads to, or NULL if it cannot be written to."""
        cdef Gradient* g = gradients_of(e)
        if not has_come(e): return NULL
        if (<Node>edge.node).n_out > 1: g = &g[edge.output_nr]
        return g if is_writable(g, output_layout(<Node>edge.node, edge.output_nr)) else NULL
