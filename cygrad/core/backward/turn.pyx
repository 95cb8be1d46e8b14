"""A node's turn in a backward pass. The operator declares what each stage of its backward computes, reads and may
overwrite. This module places the results, runs the stages, and releases what no later stage reads. So the declaration
determines the memory in use at every moment."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memmove, memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.backward.consumer cimport (
    TAKES_PRODUCT, TAKES_ROWS, TAKES_WHOLE, Consumer, Taking, consumer_of, has_other_hooks,
)
from cygrad.core.execute.executor cimport LARGE_WORK
from cygrad.core.execute.recipes cimport count_stage
from cygrad.core.graph.operator cimport (
    ADDING, DELIVERED, IN_PART, N_INLINE, MAX_OUTPUTS, MAX_TEMPORARIES, OVER_GRAD, REST, TEMPORARY,
    TO_NEW_MEMORY, WANTED_ADDED, WANTED_MULTIPLIED, BackwardCall, Stage, bit_of, computes, input_bit,
)
from cygrad.core.graph.packed cimport give_up
from cygrad.core.graph.provenance cimport check_slot
from cygrad.core.graph.running cimport only_one_runs
from cygrad.core.graph.steps cimport READS, WRITES, Arrays, call, put_array
from cygrad.core.graph.trace cimport declare_write, raise_version, touch_leaf
from cygrad.core.graph.tensor cimport (
    NULL_REQ, Edge, Leaf, Node, Tensor, edge_of, is_tracked, lock_grad, output_layout, slot_from, slots_of, sole,
)
from cygrad.core.backward.walk cimport Target
from cygrad.core.backward.gradients cimport (
    DENSE, NO_GRADIENT, Gradient, drop_gradient, elements_of, is_writable, set_dense, share_gradient, take_gradient,
)
from cygrad.core.late_bound cimport late_bound
from cygrad.core.store.buffer cimport (
    GRADIENTS, VIRTUAL, WORKSPACE, ZEROS, Buffer, allocate, allocate_for, drop, mark_gradient, refuse_virtual,
)
from cygrad.core.graph.slots cimport (
    Slot, buffer_in, elements, empty_slot, has_elements, sign_bits, take_buffer, was_written,
)
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Array, Layout, itemsize
from cygrad.kernels.reductions.reduce cimport sum_to


cdef enum:
    ROWS_BYTES = 1 << 20    # most bytes of a gradient that a consumer takes by rows


@cython.freelist(4)
cdef class Turn:
    """One node's turn in a backward pass."""

    cdef Array kept(self, int source) except *:
        """The saved value of input i (source i) or output k (source OWN | k), valid until done(source)."""
        cdef Slot* s = slot_from(self.node, source)
        if s == NULL or not has_elements(s):
            refuse_unsaved(self.node)
        if was_written(s) or self.traced: check_slot(self.node, s)
        return elements(s)

    cdef void done(self, int source) noexcept:
        """Release the saved value of `source`, unless the graph is retained."""
        cdef Slot* s = slot_from(self.node, source)
        if not self.retain and s != NULL: empty_slot(s)

    cdef Array make(self, int i, const Layout* like, int dtype) except *:
        """Allocate gradient i with the shape of `like`."""
        cdef Array a
        cdef Buffer* b
        cdef Layout* l = lay.dense_like(like)
        try:
            b = allocate_for(l, dtype, GRADIENTS)
        except:
            lay.decref(l)
            raise
        set_dense(&self.dx[i], b, l, dtype)
        a.data, a.layout, a.dtype = b.data, l, dtype
        return a

    cdef bint take_saved(self, int source, Gradient* out) noexcept:
        """Move the saved value of `source` to `out`, if it is dense and its memory has no other holder."""
        cdef Slot* s = slot_from(self.node, source)
        cdef Buffer* b
        cdef Layout* l
        if self.retain or s == NULL: return False
        b = buffer_in(s)
        if b != NULL and b.holders == 1: give_up(b)
        if b == NULL or not sole(b, s.layout, s.layout, self.node.dtype): return False
        take_buffer(s, &b, &l)
        mark_gradient(b)
        set_dense(out, b, l, self.node.dtype)
        return True

    cdef bint borrow_grad(self, int i, Array* out, bint* first) except -1:
        """Lend the .grad of the variable that is input i, to overwrite (first) or to add to. False: use make()."""
        cdef Target* t = &self.targets[i]
        cdef Leaf leaf
        if t.leaf == NULL: return False
        leaf = <Leaf>t.leaf
        if self.traced:
            leaf = touch_leaf(leaf)
            t.leaf = <void*>leaf
        elif leaf.grad is not None and leaf.grad.buffer.flags & VIRTUAL: refuse_virtual()
        t.locked = lock_grad(leaf, self.number)     # this may have waited, so all is checked again
        if (leaf.grad is None or is_tracked(leaf.grad) or not leaf.grad.layout.dense or leaf.grad.buffer.saved
                or leaf.grad.buffer.flags & ZEROS or (t.first and self.walk.half_way(leaf))):
            if t.locked: leaf.writer = 0
            t.leaf = NULL
            return False
        declare_write(flags(), leaf.grad.buffer)
        leaf.busy = self.number                     # until arrived(): the lock ends before that
        Py_INCREF(leaf.grad)
        t.lent = <void*>leaf.grad
        out.data = leaf.grad.buffer.data + leaf.grad.layout.offset * itemsize(leaf.grad.dtype)
        out.layout, out.dtype = leaf.grad.layout, leaf.grad.dtype
        first[0] = t.first
        return True

    cdef bint borrow_sum(self, int i, Array* out) noexcept:
        """Lend the sum of the contributions of other nodes to gradient i. False: there is none, or it cannot be written
        to."""
        cdef Target* t = &self.targets[i]
        if t.leaf != NULL or t.sum == NULL or t.sum.kind != DENSE: return False
        out[0] = elements_of(t.sum)
        return True

    cdef void wrote(self, int i) noexcept:
        """The kernel has written the .grad that borrow_grad() lent for input i: raise its version and unlock it."""
        cdef Target* t = &self.targets[i]
        raise_version(flags(), (<Tensor>t.lent).buffer)
        if t.locked: (<Leaf>t.leaf).writer = 0
        Py_DECREF(<object>t.lent)
        t.lent = NULL
        self.want[i] = DELIVERED

    cdef void return_grad(self) noexcept:
        """Return each .grad that is still lent at the end of a turn because its kernel failed. A part of the
        contribution may have been written."""
        cdef int i
        if self.targets == NULL: return
        for i in range(self.node.n_in):
            if self.targets[i].lent == NULL: continue
            self.wrote(i)
            self.want[i] = IN_PART

    cdef const Layout* input_layout(self, int i) noexcept:
        """The layout of input i, whose shape gradient i must have."""
        cdef Edge e = edge_of(self.node, i)
        return output_layout(<Node>e.node, e.output_nr)


cdef int run_stages(Turn b) except -1:
    """Compute the gradients of the inputs by the operator's own backward. Returns the number of its stages, which is 0
    if it has none for these attributes."""
    cdef BackwardCall* c = &b.call
    cdef uint64_t found
    cdef int k
    found = open_call(b)
    try:
        b.node.op.plan_backward(c)
        if b.walk.consumes: consumers_last(b)
        for k in range(c.n_stages):
            if c.stages[k].saved & ~found: refuse_unsaved(b.node)
            run_stage(b, k)
    finally:
        for k in range(MAX_TEMPORARIES):
            drop_gradient(&b.temporaries[k])
        if c.kept != b.inline_arrays:
            PyMem_Free(c.kept)
            c.kept = b.inline_arrays
    return c.n_stages


cdef int consumers_last(Turn b) except -1:
    """Let the stages that write to variables run after those that may read them."""
    cdef BackwardCall* c = &b.call
    cdef Stage s
    cdef int k, last = 0, i
    cdef Node leaf
    for k in range(c.n_stages - 1, -1, -1):
        for i in range(min(b.node.n_in, <int>REST)):
            leaf = <Node>edge_of(b.node, i).node if b.want[i] else None
            if leaf is None or not (c.stages[k].multiplies | c.stages[k].by_rows) >> i & 1 or not takes_last(leaf):
                continue
            s = c.stages[k]
            last += 1
            memmove(&c.stages[k], &c.stages[k + 1], (c.n_stages - last - k) * sizeof(Stage))
            c.stages[c.n_stages - last] = s
            break


cdef bint takes_last(Node leaf) except -1:
    """Whether the consumer of a leaf may write to the variable before it is complete."""
    cdef Consumer consumer = consumer_of(leaf)
    return consumer is not None and consumer.takes() >= TAKES_PRODUCT


# ---- the call --------------------------------------------------------------------------------------------------------

cdef int refuse_unsaved(Node node) except -1:
    raise RuntimeError(f"{node.name()} reads a value in backward that it did not save")


cdef inline uint64_t open_call(Turn b) except? <uint64_t>-1:
    """Fill in the operator's call. Returns a mask of the saved values."""
    cdef uint64_t found = 0
    cdef BackwardCall* c = &b.call
    cdef Node node = b.node
    cdef Slot* s = slots_of(node)
    cdef Edge e
    cdef int i, k, capacity = max(<int>node.n_slots, <int>N_INLINE), inputs = max(<int>node.n_in, <int>N_INLINE)
    c.n_in, c.n_out, c.n_stages, c.dtype = node.n_in, node.n_out, 0, node.dtype
    c.want, c.attributes, c.y, c.workspace = b.want, <void*>node.attributes, output_layout(node, 0), NULL
    c.saved_for, c.row, c.multiplier = node.op.saved_for, 0, NULL
    c.kept, c.dx, c.g = b.inline_arrays, b.inline_arrays + N_INLINE, b.inline_arrays + 2 * N_INLINE
    c.x, c.sources, c.as_bits = b.inline_layouts, b.inline_sources, b.inline_as_bits
    for k in range(MAX_TEMPORARIES): b.temporaries[k].kind = NO_GRADIENT
    if node.n_slots > N_INLINE or node.n_in > N_INLINE:
        c.kept = <Array*>PyMem_Malloc((capacity + inputs) * (sizeof(Array) + sizeof(void*))
                                      + capacity * (1 + sizeof(bint)))
        if c.kept == NULL: raise MemoryError("no memory for a node's backward")
        c.dx = c.kept + capacity
        c.x = <const Layout**>(c.dx + inputs)
        c.as_bits = <bint*>(c.x + inputs)
        c.sources = <uint8_t*>(c.as_bits + capacity)
    c.n_kept, c.work = 0, c.y.size
    for k in range(node.n_slots):
        if was_written(&s[k]) or b.traced: check_slot(node, &s[k])
        if not has_elements(&s[k]): continue
        c.kept[c.n_kept] = elements(&s[k])
        c.sources[c.n_kept] = s[k].source
        c.as_bits[c.n_kept] = sign_bits(&s[k]) != NULL
        found |= <uint64_t>1 << bit_of(s[k].source)
        c.n_kept += 1
    c.wanted = c.recorded = 0
    for i in range(node.n_in):
        e = edge_of(node, i)
        if e.node != NULL: c.recorded |= input_bit(i)
        if not b.want[i]: c.x[i] = NULL
        else:
            c.wanted |= input_bit(i)
            c.x[i] = output_layout(<Node>e.node, e.output_nr)
            if c.x[i].size > c.work: c.work = c.x[i].size
    for k in range(node.n_out):
        if b.g[k].kind == DENSE: c.g[k] = elements_of(&b.g[k])
        else: c.g[k].data, c.g[k].layout, c.g[k].dtype = NULL, output_layout(node, k), node.dtype
    return found


# ---- a stage ---------------------------------------------------------------------------------------------------------

cdef inline int run_stage(Turn b, int stage) except -1:
    cdef BackwardCall* c = &b.call
    cdef Stage* s = &c.stages[stage]
    cdef uint64_t dying = s.saved
    cdef uint32_t dying_gradients = s.gradients
    cdef bint arrives
    cdef int k
    for k in range(stage + 1, c.n_stages):
        dying &= ~c.stages[k].saved
        dying_gradients &= ~c.stages[k].gradients
    if s.view:
        make_views(b, s, dying_gradients)
        return 0
    arrives = compute(b, stage, dying, dying_gradients)
    if dying and not b.retain:
        for k in range(c.n_kept):
            if dying >> bit_of(c.sources[k]) & 1: b.done(c.sources[k])
    for k in range(c.n_out):
        if dying_gradients >> k & 1: drop_gradient(&b.g[k])
    if dying_gradients >> MAX_OUTPUTS:
        for k in range(MAX_TEMPORARIES):
            if dying_gradients >> (MAX_OUTPUTS + k) & 1: drop_gradient(&b.temporaries[k])
    if arrives: arrive(b, s)                        # (may allocate, so it follows the releases)
    return 0


cdef inline bint compute(Turn b, int stage, uint64_t dying, uint32_t dying_gradients) except -1:
    """Place the results of a stage and run its kernel. Returns whether arrive() must be called. The workspace is
    allocated first: if that fails, no .grad is lent yet."""
    cdef BackwardCall* c = &b.call
    cdef size_t nbytes = c.stages[stage].workspace_bytes
    cdef Buffer* workspace = NULL
    cdef bint arrives
    if nbytes:
        workspace = allocate(nbytes, WORKSPACE)
        c.workspace = workspace.data
    b.by_rows = -1
    try:
        arrives = place(b, &c.stages[stage], dying, dying_gradients)
        if b.traced: late_bound.trace_stage(b, stage, workspace)
        elif b.by_rows >= 0: compute_rows(b, stage, b.by_rows)
        else:
            count_stage(c.work)
            if c.work < LARGE_WORK: b.node.op.run_backward(c, stage)
            else:
                with nogil: b.node.op.run_backward(c, stage)
    finally:
        if workspace != NULL: drop(workspace)
    return arrives


cdef int compute_rows(Turn b, int stage, int i) except -1:
    """Compute gradient i by ranges of rows, in memory of at most ROWS_BYTES, and give each to the consumer."""
    cdef BackwardCall* c = &b.call
    cdef const Layout* whole = c.x[i]
    cdef Consumer consumer = consumer_of(<Node>edge_of(b.node, i).node)
    cdef Py_ssize_t row_bytes = whole.size // whole.shape[0] * itemsize(c.dtype)
    cdef Py_ssize_t most = max(<Py_ssize_t>1, ROWS_BYTES // row_bytes)
    cdef LocalLayout l
    cdef Layout* rows = lay.local(&l)
    cdef Buffer* memory
    rows.ndim = whole.ndim
    for d in range(whole.ndim): rows.shape[d], rows.strides[d] = whole.shape[d], whole.strides[d]
    memory = allocate(most * row_bytes, WORKSPACE)      # (first: if it fails, nothing has changed)
    try:
        consumer.lock(b.number)
        b.walk.note_consumed(consumer)
        consumer.begin(True)
        count_stage(c.work)
        while c.row < whole.shape[0]:
            rows.shape[0] = min(most, whole.shape[0] - c.row)
            c.dx[i].data, c.dx[i].layout, c.dx[i].dtype = memory.data, lay.finish(rows), c.dtype
            with nogil: b.node.op.run_backward(c, stage)
            consumer.update_rows(&c.dx[i], c.row)
            c.row += rows.shape[0]
    finally:
        c.row = 0
        drop(memory)
    return 0


cdef bint place(Turn b, const Stage* s, uint64_t dying, uint32_t dying_gradients) except -1:
    """Find memory for each result of a stage: a .grad or a sum, the memory of an operand that no later stage reads, or
    new memory. Returns whether arrive() must be called after the kernel."""
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
                c.dx[i] = elements_of(&b.dx[i])
                continue
        c.dx[i] = b.make(i, l, c.dtype)
    if s.computes >> TEMPORARY:
        for t in range(MAX_TEMPORARIES):
            if not s.computes >> (TEMPORARY + t) & 1: continue
            if not donates or not donate(b, s.donated_saved & dying, s.donated_gradients & dying_gradients, s.like,
                                         &b.temporaries[t]):
                make_temporary(b, t, s.like, s.temporary_dtype)
            donates = False
            c.temporaries[t] = elements_of(&b.temporaries[t])
    return arrives


cdef int arrive(Turn b, const Stage* s) except -1:
    """Mark gradients that were written to a .grad or a sum as delivered. Sum the others to their inputs' shapes."""
    cdef BackwardCall* c = &b.call
    cdef int i
    for i in range(c.n_in):
        if not b.want[i] or not computes(s, i): continue
        if b.targets != NULL and b.targets[i].lent != NULL: b.wrote(i)
        elif b.targets != NULL and b.targets[i].consumed: b.want[i] = DELIVERED
        elif b.want[i] == WANTED_ADDED: b.want[i] = DELIVERED
        elif not lay.same_shape(b.dx[i].layout, c.x[i]): unbroadcast(b, i)
    return 0


cdef bint take_targets(Turn b) noexcept:
    """Create empty targets for all inputs. False: there is no memory for them, and gradients go to new memory."""
    cdef Py_ssize_t n = b.node.n_in
    if n <= N_INLINE: b.targets = b.inline_targets
    else: b.targets = <Target*>PyMem_Malloc(n * sizeof(Target))
    if b.targets != NULL: memset(b.targets, 0, n * sizeof(Target))
    return b.targets != NULL


cdef bint where_it_arrives(Turn b, const Stage* s, int i) except -1:
    """Let a stage write gradient i to a variable's .grad, or add it to the sum of other nodes' contributions."""
    cdef BackwardCall* c = &b.call
    cdef bint first
    if not b.direct or (b.targets == NULL and not take_targets(b)): return False
    if b.walk.consumes and goes_to_consumer(b, s, i): return True
    b.walk.aim(b.node, i, &b.targets[i])
    if s.writes == ADDING and b.borrow_sum(i, &c.dx[i]): first = False
    elif s.writes == OVER_GRAD and not b.targets[i].first: return False
    elif not b.borrow_grad(i, &c.dx[i], &first): return False
    if not first: b.want[i] = WANTED_ADDED
    return True


cdef bint goes_to_consumer(Turn b, const Stage* s, int i) except -1:
    """Let a stage give gradient i to the consumer of a variable without memory for it."""
    cdef BackwardCall* c = &b.call
    cdef Node leaf = <Node>edge_of(b.node, i).node
    cdef Consumer consumer
    cdef Taking takes
    cdef Array target
    cdef Buffer* memory
    cdef int left
    if i >= REST or leaf.op is not None or not (s.multiplies | s.by_rows) >> i & 1 or not only_one_runs(): return False
    consumer = consumer_of(leaf)
    if consumer is None or has_other_hooks(leaf) or (<Leaf>leaf).req == NULL_REQ: return False
    takes, left = consumer.takes(), b.walk.contributions_left(leaf)
    if takes == TAKES_WHOLE or left == 0: return False
    memory = consumer.target(&target)
    if reads(b, s, memory): return False
    if takes >= TAKES_PRODUCT and (consumer.begun or left > 1 or is_read_later(b, s, leaf)): return False
    if takes == TAKES_ROWS:
        if b.traced or not s.by_rows >> i & 1 or c.x[i].size * itemsize(c.dtype) <= ROWS_BYTES: return False
        b.by_rows = i
    else:
        if not s.multiplies >> i & 1 or c.multiplier != NULL: return False
        consumer.lock(b.number)
        b.walk.note_consumed(consumer)
        consumer.begin(False)
        c.dx[i], c.multiplier, b.targets[i].memory = target, &consumer.multiplier, memory
        b.want[i] = WANTED_MULTIPLIED
    b.targets[i].consumed = True
    return True


cdef bint is_read_later(Turn b, const Stage* s, Node leaf) noexcept:
    """Whether this stage, a later one of the node, or another node reads memory of the variable `leaf`."""
    cdef Buffer* w = (<Tensor>(<Leaf>leaf).tensor).buffer
    cdef const Stage* end = b.call.stages + b.call.n_stages
    cdef uint32_t saved = w.saved
    cdef Slot* slots = slots_of(b.node)
    cdef int k
    while s < end:
        if reads(b, s, w): return True
        s += 1
    for k in range(b.node.n_slots): saved -= buffer_in(&slots[k]) == w
    return saved > 0


cdef bint reads(Turn b, const Stage* s, const Buffer* memory) noexcept:
    """Whether a stage reads this memory."""
    cdef BackwardCall* c = &b.call
    cdef int k
    for k in range(c.n_kept):
        if s.saved >> bit_of(c.sources[k]) & 1 and overlaps(memory, &c.kept[k]): return True
    for k in range(c.n_out):
        if s.gradients >> k & 1 and c.g[k].data != NULL and overlaps(memory, &c.g[k]): return True
    return False


cdef bint overlaps(const Buffer* b, const Array* a) noexcept:
    """Whether elements of an array may lie in a buffer."""
    cdef const Layout* l = a.layout
    cdef Py_ssize_t low = 0, high = 1
    for d in range(l.ndim):
        if l.strides[d] < 0: low += (l.shape[d] - 1) * l.strides[d]
        else: high += (l.shape[d] - 1) * l.strides[d]
    return (l.size and a.data + low * itemsize(a.dtype) < b.data + b.nbytes
            and b.data < a.data + high * itemsize(a.dtype))


cdef bint donate(Turn b, uint64_t saved, uint32_t gradients, const Layout* l, Gradient* out) noexcept:
    """Move to `out` a saved value or a gradient of the shape `l` whose memory has no other holder."""
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
        if not is_writable(g, l) or not lay.same_shape(g.layout, l): continue
        take_gradient(g, out)
        return True
    return False


cdef int make_temporary(Turn b, int t, const Layout* like, int dtype) except -1:
    """Allocate temporary `t`, which run_stage() releases after the last stage that reads it."""
    cdef Layout* l = lay.dense_like(like)
    cdef Buffer* buffer
    try:
        buffer = allocate_for(l, dtype, WORKSPACE)
    except:
        lay.decref(l)
        raise
    mark_gradient(buffer)
    set_dense(&b.temporaries[t], buffer, l, dtype)
    return 0


cdef int make_views(Turn b, const Stage* s, uint32_t dying) except -1:
    """Make each gradient a view of the one that the stage reads, which moves to the last if no later stage reads it."""
    cdef BackwardCall* c = &b.call
    cdef int k = 0, i, last = -1
    cdef Gradient* g
    cdef Layout* l
    while not s.gradients >> k & 1: k += 1
    g = &b.temporaries[k - MAX_OUTPUTS] if k >= MAX_OUTPUTS else &b.g[k]
    if g.kind == NO_GRADIENT: return 0
    if dying:
        last = c.n_in - 1
        while last >= 0 and not (b.want[last] and computes(s, last)): last -= 1
    for i in range(c.n_in):
        if not b.want[i] or not computes(s, i): continue
        l = b.node.op.gradient_view(c, i, g.layout)
        if i == last: take_gradient(g, &b.dx[i])
        else: share_gradient(g, &b.dx[i])
        lay.decref(b.dx[i].layout)
        b.dx[i].layout = l
        if not lay.same_shape(l, c.x[i]): unbroadcast(b, i)
    return 0


cdef int unbroadcast(Turn b, int i) except -1:
    """Sum gradient i, which has the shape of the output, over the dimensions that were broadcast."""
    cdef Gradient wide
    cdef Arrays a
    cdef Array y
    a.n = 0
    take_gradient(&b.dx[i], &wide)
    put_array(&a, elements_of(&wide), wide.held.buffer, READS)
    try:
        y = b.make(i, b.call.x[i], b.call.dtype)
        put_array(&a, y, b.dx[i].held.buffer, WRITES)
        call(flags(), "sum_to", sum_kernel, &a, 0, NULL, 0, None)
    finally:
        drop_gradient(&wide)
    return 0


cdef int sum_kernel(Array* a, const void* parameters, object held) except -1:
    """A kernel: a[1] = the sums of a[0] over the dimensions that were broadcast."""
    sum_to(&a[0], &a[1])
    return 0
