"""A node's turn in a backward pass. Its operator has declared what each stage of its backward computes, reads and may
write over; here the results are placed, and what no later stage reads is released. So the memory at every moment follows
from the plan."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.execute.executor cimport LARGE_WORK
from cygrad.core.graph.operator cimport (
    ADDING, N_INLINE, MAX_OUTPUTS, MAX_TEMPORARIES, OUTPUT, OVER_GRAD, REST, TEMPORARY, TO_NEW_MEMORY, BackwardCall, Stage,
)
from cygrad.core.graph.provenance cimport check_slot
from cygrad.core.graph.tensor cimport (
    Edge, Gradient, Leaf, Node, Tensor, drop_gradient, edge_of, is_tracked, lock_grad, output_layout, share_gradient,
    slot_from, slots_of, sole,
)
from cygrad.core.store.buffer cimport GRADIENTS, WORKSPACE, ZEROS, Buffer, allocate, allocate_for, drop, mark_gradient
from cygrad.core.graph.slots cimport (
    OWN, Slot, buffer_in, elements, empty_slot, has_elements, sign_bits, take_buffer, was_written,
)
from cygrad.kernels.array cimport Array, Layout, itemsize
from cygrad.kernels.reduce cimport sum_to


@cython.freelist(4)
cdef class Turn:
    """One node's turn in a backward pass."""

    cdef Array kept(self, int source) except *:
        """What was kept of input i (source i) or output k (source OWN | k), lent until done(source)."""
        cdef Slot* s = slot_from(self.node, source)
        if s == NULL or not has_elements(s):
            raise RuntimeError(f"{self.node.name()} asks in backward for what it does not keep")
        if was_written(s): check_slot(self.node, s)
        return elements(s)

    cdef void done(self, int source) noexcept:
        """What is kept from `source` is not needed any more: unless the graph is retained, it goes back now."""
        cdef Slot* s = slot_from(self.node, source)
        if not self.retain and s != NULL: empty_slot(s)

    cdef Array make(self, int i, const Layout* like, int dtype) except *:
        """New memory for gradient i, of the shape `like`."""
        cdef Array a
        cdef Buffer* b
        cdef Layout* l = lay.dense_like(like)
        try:
            b = allocate_for(l, dtype, GRADIENTS)
        except:
            lay.decref(l)
            raise
        self.dx[i].buffer = b
        self.dx[i].layout = l
        a.data, a.layout, a.dtype = b.data, l, dtype
        return a

    cdef bint take_saved(self, int source, Gradient* out) noexcept:
        """Let `out` have the memory of what is kept from `source`, if nobody else holds it and it is dense."""
        cdef Slot* s = slot_from(self.node, source)
        cdef Buffer* b
        if self.retain or s == NULL: return False
        b = buffer_in(s)
        if b == NULL or not sole(b, s.layout, s.layout, self.node.dtype): return False
        take_buffer(s, &out.buffer, &out.layout)
        mark_gradient(b)
        return True

    cdef bint borrow_grad(self, int i, Array* out, bint* first) noexcept:
        """The .grad of the variable that input i is, to be written (first) or added to; False: use make()."""
        cdef Leaf leaf
        if i >= N_INLINE or self.into[i] == NULL: return False
        leaf = <Leaf>self.into[i]
        self.into[i] = NULL
        self.locked[i] = lock_grad(leaf, self.number)   # which may have waited: look again
        if (leaf.grad is None or is_tracked(leaf.grad) or not leaf.grad.layout.dense or leaf.grad.buffer.saved
                or leaf.grad.buffer.flags & ZEROS):
            if self.locked[i]: leaf.writer = 0
            return False
        Py_INCREF(leaf.grad)
        self.lent[i] = <void*>leaf.grad
        out.data = leaf.grad.buffer.data + leaf.grad.layout.offset * itemsize(leaf.grad.dtype)
        out.layout, out.dtype = leaf.grad.layout, leaf.grad.dtype
        first[0] = self.first[i]
        return True

    cdef bint sum_so_far(self, int i, Array* out) noexcept:
        """What other nodes have contributed to gradient i of an intermediate; False: nothing that is ours alone."""
        if i >= N_INLINE or self.sums[i] == NULL: return False
        out.layout, out.dtype = self.sums[i].layout, self.node.dtype
        out.data = self.sums[i].buffer.data + out.layout.offset * itemsize(out.dtype)
        return True

    cdef void added(self, int i) noexcept:
        """What sum_so_far() gave has this contribution in it."""
        self.sums[i] = NULL
        self.want[i] = DELIVERED

    cdef void wrote(self, int i) noexcept:
        """The .grad that borrow_grad() lent for input i has its contribution: a new version, which others may write."""
        if self.lent[i] == NULL: return
        (<Tensor>self.lent[i]).buffer.version += 1
        if self.locked[i]: (<Leaf>edge_of(self.node, i).node).writer = 0
        Py_DECREF(<object>self.lent[i])
        self.lent[i] = NULL
        self.want[i] = DELIVERED

    cdef void return_grad(self, bint whole) noexcept:
        """The kernel has ended; where it failed, what is still lent may hold a part of its contribution."""
        cdef int i
        for i in range(N_INLINE):
            if self.lent[i] == NULL: continue
            self.wrote(i)
            if not whole: self.want[i] = IN_PART

    cdef const Layout* input_layout(self, int i) noexcept:
        """The shape that gradient i must have."""
        cdef Edge e = edge_of(self.node, i)
        return output_layout(<Node>e.node, e.output_nr)


cdef int run_stages(Turn b) except -1:
    """Compute the gradients of the inputs by the operator's own backward; 0: it plans none for these attributes."""
    cdef BackwardCall* c = &b.call
    cdef uint64_t found
    cdef int k
    found = open_call(b)
    try:
        b.node.op.plan_backward(c)
        for k in range(c.n_stages):
            if c.stages[k].saved & ~found: refuse_unsaved(b.node)
            run_stage(b, k)
    finally:
        for k in range(MAX_TEMPORARIES):
            if b.temporaries[k].buffer != NULL: drop_gradient(&b.temporaries[k])
        if c.kept != b.inline_arrays:
            PyMem_Free(c.kept)
            c.kept = b.inline_arrays
    return c.n_stages


cdef inline Array seen(const Gradient* g, int dtype) noexcept:
    cdef Array a
    a.data = g.buffer.data + g.layout.offset * itemsize(dtype)
    a.layout, a.dtype = g.layout, dtype
    return a


cdef inline int bit_of(int source) noexcept:
    """The bit of keeps() that stands for a slot's source."""
    return OUTPUT + (source & ~OWN) if source & OWN else source


# ---- the call --------------------------------------------------------------------------------------------------------

cdef int refuse_unsaved(Node node) except -1:
    raise RuntimeError(f"{node.name()} asks in backward for what it does not keep")


cdef inline uint64_t open_call(Turn b) except? <uint64_t>-1:
    """Fill in what the operator may read; returns the bits of what is saved."""
    cdef uint64_t found = 0
    cdef BackwardCall* c = &b.call
    cdef Node node = b.node
    cdef Slot* s = slots_of(node)
    cdef Edge e
    cdef int i, k, capacity = max(<int>node.n_slots, <int>N_INLINE), inputs = max(<int>node.n_in, <int>N_INLINE)
    c.n_in, c.n_out, c.n_stages, c.dtype = node.n_in, node.n_out, 0, node.dtype
    c.want, c.attributes, c.y, c.workspace, c.adds = b.want, <void*>node.attributes, output_layout(node, 0), NULL, 0
    c.kept, c.dx, c.g, c.x = b.inline_arrays, b.inline_arrays + N_INLINE, b.inline_arrays + 2 * N_INLINE, b.inline_layouts
    c.sources, c.as_bits = b.inline_sources, b.inline_as_bits
    for k in range(MAX_TEMPORARIES): b.temporaries[k].buffer = NULL
    if node.n_slots > N_INLINE or node.n_in > N_INLINE:
        c.kept = <Array*>PyMem_Malloc((capacity + inputs) * (sizeof(Array) + sizeof(void*)) + capacity * (1 + sizeof(bint)))
        if c.kept == NULL: raise MemoryError("no memory for a node's backward")
        c.dx = c.kept + capacity
        c.x = <const Layout**>(c.dx + inputs)
        c.as_bits = <bint*>(c.x + inputs)
        c.sources = <uint8_t*>(c.as_bits + capacity)
    c.n_kept, c.work = 0, c.y.size
    for k in range(node.n_slots):
        if was_written(&s[k]): check_slot(node, &s[k])
        if not has_elements(&s[k]): continue
        c.kept[c.n_kept] = elements(&s[k])
        c.sources[c.n_kept] = s[k].source
        c.as_bits[c.n_kept] = sign_bits(&s[k]) != NULL
        found |= <uint64_t>1 << bit_of(s[k].source)
        c.n_kept += 1
    c.recorded = 0
    for i in range(node.n_in):
        e = edge_of(node, i)
        if e.node != NULL and i <= REST: c.recorded |= <uint64_t>1 << i
        if not b.want[i]: c.x[i] = NULL
        else:
            c.x[i] = output_layout(<Node>e.node, e.output_nr)
            if c.x[i].size > c.work: c.work = c.x[i].size
    for k in range(node.n_out):
        if b.g[k].buffer != NULL: c.g[k] = seen(&b.g[k], node.dtype)
        else: c.g[k].data, c.g[k].layout, c.g[k].dtype = NULL, output_layout(node, k), node.dtype
    return found


# ---- a stage ---------------------------------------------------------------------------------------------------------

cdef inline bint computes(const Stage* s, int i) noexcept:
    return s.computes >> (i if i < REST else <int>REST) & 1


cdef inline int run_stage(Turn b, int stage) except -1:
    cdef BackwardCall* c = &b.call
    cdef Stage* s = &c.stages[stage]
    cdef uint64_t dying = s.saved
    cdef uint32_t dying_gradients = s.gradients
    cdef int k
    for k in range(stage + 1, c.n_stages):
        dying &= ~c.stages[k].saved
        dying_gradients &= ~c.stages[k].gradients
    if s.view:
        see(b, s, dying_gradients)
        return 0
    if place(b, s, dying, dying_gradients):
        compute(b, stage)
        arrive(b, s)
    else: compute(b, stage)
    if dying and not b.retain:
        for k in range(c.n_kept):
            if dying >> bit_of(c.sources[k]) & 1: b.done(c.sources[k])
    for k in range(c.n_out):
        if dying_gradients >> k & 1 and b.g[k].buffer != NULL: drop_gradient(&b.g[k])
    if dying_gradients >> MAX_OUTPUTS:
        for k in range(MAX_TEMPORARIES):
            if dying_gradients >> (MAX_OUTPUTS + k) & 1: drop_gradient(&b.temporaries[k])
    return 0


cdef inline int compute(Turn b, int stage) except -1:
    """The kernel, with its workspace."""
    cdef BackwardCall* c = &b.call
    cdef size_t nbytes = c.stages[stage].workspace_bytes
    cdef Buffer* workspace = NULL
    if nbytes:
        workspace = allocate(nbytes, WORKSPACE)
        c.workspace = workspace.data
    try:
        if c.work < LARGE_WORK: b.node.op.run_backward(c, stage)
        else:
            with nogil: b.node.op.run_backward(c, stage)
    finally:
        if workspace != NULL: drop(workspace)
    return 0


cdef bint place(Turn b, const Stage* s, uint64_t dying, uint32_t dying_gradients) except -1:
    """Find memory for all that a stage computes: where the gradient is to arrive, over what the stage is the last to
    read, or new. Whether something is to be done when it is there: see arrive()."""
    cdef BackwardCall* c = &b.call
    cdef const Layout* l
    cdef bint donates = (s.donated_saved & dying) != 0 or (s.donated_gradients & dying_gradients) != 0
    cdef bint arrives = s.writes != TO_NEW_MEMORY
    cdef int i, t
    for i in range(c.n_in):
        if not b.want[i] or not computes(s, i): continue
        l = s.like if s.like != NULL else c.x[i]
        if l != c.x[i]: arrives = True
        if s.writes != TO_NEW_MEMORY and where_it_arrives(b, s, i): continue
        if donates:
            donates = False
            if donate(b, s.donated_saved & dying, s.donated_gradients & dying_gradients, l, &b.dx[i]):
                c.dx[i] = seen(&b.dx[i], c.dtype)
                continue
        c.dx[i] = b.make(i, l, c.dtype)
    if s.computes >> TEMPORARY:
        for t in range(MAX_TEMPORARIES):
            if not s.computes >> (TEMPORARY + t) & 1: continue
            if not donates or not donate(b, s.donated_saved & dying, s.donated_gradients & dying_gradients, s.like,
                                         &b.temporaries[t]):
                make_temporary(b, t, s.like)
            donates = False
            c.temporaries[t] = seen(&b.temporaries[t], c.dtype)
    return arrives


cdef int arrive(Turn b, const Stage* s) except -1:
    """What was written where it arrives counts as delivered; what is larger than its input is summed to the shape of
    that."""
    cdef BackwardCall* c = &b.call
    cdef int i
    for i in range(c.n_in):
        if not b.want[i] or not computes(s, i): continue
        if i < N_INLINE and c.adds >> i & 1 and b.sums[i] != NULL: b.added(i)
        elif i < N_INLINE and b.lent[i] != NULL: b.wrote(i)
        elif not lay.same_shape(b.dx[i].layout, c.x[i]): narrow(b, i)
    return 0


cdef bint where_it_arrives(Turn b, const Stage* s, int i) noexcept:
    """Let a stage write gradient i straight to a variable's .grad, or into the sum of what other nodes gave."""
    cdef BackwardCall* c = &b.call
    cdef bint first
    if s.writes == ADDING and b.sum_so_far(i, &c.dx[i]): first = False
    elif s.writes == OVER_GRAD and not (i < N_INLINE and b.into[i] != NULL and b.first[i]): return False
    elif not b.borrow_grad(i, &c.dx[i], &first): return False
    if not first: c.adds |= <uint64_t>1 << i
    return True


cdef bint donate(Turn b, uint64_t saved, uint32_t gradients, const Layout* l, Gradient* out) noexcept:
    """Give `out` the memory of something that nobody else holds, if it has the shape `l`."""
    cdef BackwardCall* c = &b.call
    cdef Gradient* g
    cdef int k
    if saved and not b.retain:
        for k in range(c.n_kept):
            if saved >> bit_of(c.sources[k]) & 1 and lay.same_shape(c.kept[k].layout, l):
                if b.take_saved(c.sources[k], out): return True
    for k in range(c.n_out):
        if not gradients >> k & 1: continue
        g = &b.g[k]
        if g.buffer == NULL or not sole(g.buffer, g.layout, l, c.dtype) or not lay.same_shape(g.layout, l): continue
        out[0] = g[0]
        g.buffer = NULL
        g.layout = NULL
        return True
    return False


cdef int make_temporary(Turn b, int t, const Layout* like) except -1:
    """New memory that lives until the last stage that reads it."""
    cdef Gradient* g = &b.temporaries[t]
    cdef Layout* l = lay.dense_like(like)
    try:
        g.buffer = allocate_for(l, b.call.dtype, WORKSPACE)
    except:
        lay.decref(l)
        raise
    g.layout = l
    mark_gradient(g.buffer)
    return 0


cdef int see(Turn b, const Stage* s, uint32_t dying) except -1:
    """Each gradient is the one that the stage reads, seen otherwise; the last takes it over if nobody reads it again."""
    cdef BackwardCall* c = &b.call
    cdef int k = 0, i, last = -1
    cdef Gradient* g
    cdef Layout* l
    while not s.gradients >> k & 1: k += 1
    g = &b.temporaries[k - MAX_OUTPUTS] if k >= MAX_OUTPUTS else &b.g[k]
    if g.buffer == NULL: return 0
    if dying:
        last = c.n_in - 1
        while last >= 0 and not (b.want[last] and computes(s, last)): last -= 1
    for i in range(c.n_in):
        if not b.want[i] or not computes(s, i): continue
        l = b.node.op.gradient_view(c, i, g.layout)
        if i == last:
            b.dx[i].buffer = g.buffer
            lay.decref(g.layout)
            g.buffer, g.layout = NULL, NULL
        else:
            share_gradient(g, &b.dx[i])
            lay.decref(b.dx[i].layout)
        b.dx[i].layout = l
        if not lay.same_shape(l, c.x[i]): narrow(b, i)
    return 0


cdef int narrow(Turn b, int i) except -1:
    """Gradient i, of the shape of the output, summed over what broadcasting had repeated."""
    cdef Gradient wide = b.dx[i]
    cdef Array x = seen(&wide, b.call.dtype), y
    b.dx[i].buffer = NULL
    try:
        y = b.make(i, b.call.x[i], b.call.dtype)
        sum_to(&x, &y)
    finally:
        drop_gradient(&wide)
    return 0
