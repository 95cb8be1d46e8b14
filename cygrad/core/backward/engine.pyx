"""The backward pass.

A walk from the heads (core/backward/walk.pyx) counts the contributions that each node will receive, and makes every
check that can be made before a node runs. Then the nodes run. A node is ready when its gradient is complete; of the
ready nodes the one that was recorded last runs first. Leaves, nodes with a kept gradient and some views
(BackwardPass.runs_early) run before the others.

Contributions to a gradient are added in the order in which their nodes ran: sum = ((first + second) + third) ... A
contribution to a variable goes to its `.grad` at once, unless the sum is needed first: by autograd.grad, hooks or
create_graph, or because another pass runs."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.core.graph cimport checksums
from cygrad.core.backward.anomaly cimport any_nan, raise_nan
from cygrad.core.graph.extras cimport accumulators_of
from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.backward.consumer cimport Consumer, consumer_of, n_consumers
from cygrad.core.backward.formula cimport by_formula, zeros_for
from cygrad.core.graph.operator cimport DELIVERED, IN_PART, MAX_OUTPUTS, N_INLINE, WANTED
from cygrad.core.graph.tensor cimport (
    EXTRAS, FREED, NULL_REQ, PACKS, RECORDED, RUNNING, Edge, Leaf, Node, Tensor, edge_of, free_slots,
    lock_grad, output_layout,
)
from cygrad.core.backward.deposit cimport Collected, deposit, deposit_tensor
from cygrad.core.backward.gradients cimport (
    NO_GRADIENT, ROWS, TENSOR, Gradient, add_gradient, as_tensor, drop_gradient, flowing_in, make_dense,
    new_gradients, rows_in, set_rows, set_tensor, share_gradient, share_tensor, take_gradient, tensor_in,
)
from cygrad.core.backward.heap cimport pop, push
from cygrad.core.store cimport layout as lay
from cygrad.core.backward.hooks cimport (
    after_leaf, after_node, before_node, forget_pass, has_hooks, on_outputs, outputs_of, remove_hooks,
)
from cygrad.core.thread_state cimport ANOMALIES, Flags, flags
from cygrad.core.graph.packing cimport repack, unpack
from cygrad.core.graph.running cimport begin, check_stack, end
from cygrad.core.graph.around cimport is_hooked
from cygrad.core.graph.effects cimport ADDED, OVERWRITTEN, leaf_step
from cygrad.core.graph.trace cimport Trace, refuse_trace
from cygrad.core.backward.turn cimport Turn, run_stages
from cygrad.core.backward.walk cimport Entry, Target, Walk, gradients_of, has_come, seen_by

import cygrad.core.backward.stages  # no-cython-lint: binds itself to the turn
import cygrad.core.graph.signs  # no-cython-lint: binds itself to the buffers

cdef enum:
    EARLY_SHARE = 64        # small parts run early once they cover 1 / EARLY_SHARE of a tensor: runs_early()


cdef bint any_come(Node node, const Gradient* g) noexcept:
    """Whether the gradient of any output of a node has come."""
    cdef int k
    for k in range(node.n_out):
        if g[k].kind != NO_GRADIENT: return True
    return False


cdef class BackwardPass(Walk):
    """A backward pass. Its fields are declared in walk.pxd."""

    # ---- contributions

    cdef int contribute(self, Node node, int output_nr, Gradient* g) except -1:
        """Add `g` to the gradient of output `output_nr` of `node`. An empty one is counted, but adds nothing."""
        cdef Entry* e = &self.entries[self.find(node)]
        cdef Gradient* sum = &e.gradient
        if g.kind != NO_GRADIENT:
            if g.kind == ROWS and node.op is not None: make_dense(g)    # only a variable can have a row-sparse one
            if node.n_out > 1:
                if e.several == NULL: e.several = new_gradients(node.n_out)
                sum = &e.several[output_nr]
            if self.apart and e.captured: self.keep_apart(node, output_nr, g)
            elif node.op is None and g.kind != TENSOR and not e.captured and self.alone and not node.flags & EXTRAS:
                try: self.to_leaf(<Leaf>node, e, g)
                finally: drop_gradient(g)
            elif sum.kind == NO_GRADIENT: take_gradient(g, sum)
            else: add_gradient(sum, g)
        self.count_down(e)
        return 0

    cdef void count_down(self, Entry* e) noexcept:
        """Count a contribution; the last one makes the node ready. A leaf or a node with a kept gradient then runs
        next, so hooks can use its gradient, and free it, before other gradients are computed."""
        cdef Node node = <Node>e.node
        cdef bint first
        e.pending -= 1
        if e.pending: return
        first = e.early = node.op is None or (node.flags & EXTRAS and len(accumulators_of(node)) > 0)
        if not first and node.op.shows_part: first = self.runs_early(node)
        push(self.ready, &self.n_ready, e - self.entries, node.seq | <uint64_t>first << 63)

    cdef bint runs_early(self, Node node) noexcept:
        """Whether the node of a part of a tensor runs next instead of in recording order. If all parts were taken
        before any was used, as by split(), recording order would first compute the gradients of all parts, as large as
        the tensor together, and then allocate the tensor's gradient beside them. So a part runs next if the tensor has
        a gradient already, or if the part is small and the complete parts cover 1 / EARLY_SHARE of the tensor.
        Other parts wait: each would allocate an array of the tensor's size that might live through most of the pass."""
        cdef Edge edge = edge_of(node, 0)
        cdef Py_ssize_t at = self.find(<Node>edge.node), part = output_layout(node, 0).size, share
        cdef Entry* e
        if at < 0 or not self.entries[at].needed or node.flags & EXTRAS: return False
        e = &self.entries[at]
        share = output_layout(<Node>edge.node, edge.output_nr).size // EARLY_SHARE
        e.n_waiting += part
        return has_come(e) or e.reached or (part <= share and e.n_waiting >= share)

    # ---- variables

    cdef int to_leaf(self, Leaf leaf, Entry* e, Gradient* g) except -1:
        """Write a contribution to the .grad of a variable, unless another pass has written a part: "write" does not mix
        the two. The lock comes first, since it waits for other threads, and lasts until the contribution is
        registered."""
        cdef bint locked, overwrite
        if self.trace != NULL:
            leaf = seen_by(self, leaf)
            if leaf.tensor != NULL and leaf.req != NULL_REQ: leaf = (<Trace>self.trace).state_of(leaf)
        locked = lock_grad(leaf, self.number)
        overwrite = self.overwrites(leaf, e)
        try:
            if leaf.tensor == NULL or leaf.req == NULL_REQ or (overwrite and self.half_way(leaf)): return 0
            if g.kind == TENSOR: deposit_tensor(leaf, tensor_in(g), overwrite)
            else: deposit(leaf, g, overwrite)
            return self.arrived(leaf, e, overwrite)
        finally:
            if locked: leaf.writer = 0

    cdef void clear_busy(self, Leaf leaf) noexcept:
        """No further contribution of this pass follows, so other passes may overwrite the .grad of `leaf`."""
        if leaf.busy == self.number: leaf.busy = 0

    cdef int arrived(self, Leaf leaf, Entry* e, bint overwrite) noexcept:
        """Register a contribution that has overwritten .grad or was added to it."""
        if not e.reached: self.written += 1
        e.reached = True
        if overwrite:
            leaf.incomplete = False
            e.replaced = True
        leaf.fresh = not leaf.incomplete and e.pending <= 1     # (1 is this contribution)
        if self.collected is not None and leaf.collected != self.collected.number:
            leaf.collected = self.collected.number
            self.collected.leaves.append(leaf if self.trace == NULL else (<Trace>self.trace).outside(leaf))
        if e.pending > 1: leaf.busy = self.number
        else: self.clear_busy(leaf)
        return 0

    cdef void arrived_directly(self, Turn b) noexcept:
        """Register the contributions that the kernel itself wrote to a .grad or added to a sum."""
        cdef int i
        cdef Target* t
        cdef Entry* e
        if b.targets == NULL: return
        for i in range(b.node.n_in):
            t = &b.targets[i]
            if t.sum == NULL and not t.consumed: continue
            if t.sum != NULL: t.sum.lent = False
            t.sum, t.consumed = NULL, False
            if b.want[i] < DELIVERED: continue
            e = &self.entries[self.find(<Node>edge_of(b.node, i).node)]
            if t.leaf != NULL: self.arrived(<Leaf>t.leaf, e, t.first)
            if b.want[i] == IN_PART: e.in_part = True
            else: self.count_down(e)
            b.want[i] = 0

    cdef void mark_incomplete(self) noexcept:
        """After a failure, mark the variables whose .grad has received only some of its contributions."""
        cdef Py_ssize_t at
        cdef Entry* e
        cdef Leaf leaf
        for at in range(self.n):
            e = &self.entries[at]
            if (<Node>e.node).op is not None or not e.reached or not (e.pending or e.in_part): continue
            leaf = seen_by(self, <Leaf>e.node)
            leaf.incomplete = True
            leaf.fresh = False
            self.incomplete += 1

    cdef int keep_at(self, Leaf leaf, Entry* e, Gradient* g) except -1:
        """Store a complete gradient in the .grad of a variable, or of an intermediate that keeps it."""
        cdef Gradient shared
        if g.kind == TENSOR: return self.to_leaf(leaf, e, g)
        share_gradient(g, &shared)
        if e.node != NULL: drop_gradient(g)         # a variable's: without this hold, its memory can become .grad's
        try:
            return self.to_leaf(leaf, e, &shared)
        finally:
            drop_gradient(&shared)

    cdef int leaf_turn(self, Entry* e) except -1:
        """The gradient of a variable is complete: return it or store it, then call the hooks."""
        cdef Leaf leaf = <Leaf>e.node
        cdef tuple given = None
        self.clear_busy(seen_by(self, leaf))
        if leaf.flags & EXTRAS and has_come(e) and not e.captured: before_node(leaf, &e.gradient, self.graph)
        if self.consumes and not e.captured and self.consume(leaf, e):
            self.drop_entry(e)
            return 0
        if not has_come(e):
            if e.reached and leaf.flags & EXTRAS: after_leaf(leaf, None, self.graph)
            return 0
        if e.captured:
            self.capture(e)
        else:
            if has_hooks(leaf, "after"): given = outputs_of(leaf, &e.gradient)
            self.keep_at(leaf, e, &e.gradient)
            if leaf.flags & EXTRAS and e.reached: after_leaf(leaf, given, self.graph)
        self.drop_entry(e)
        return 0

    cdef bint consume(self, Leaf leaf, Entry* e) except -1:
        """Give a complete gradient, or what is left of it, to the consumer of a variable: now, or after the pass if
        something has saved the variable's memory. False: it goes to .grad."""
        cdef Consumer consumer = consumer_of(leaf)
        if consumer is None or not (has_come(e) or consumer.begun) or leaf.tensor == NULL: return False
        if leaf.req == NULL_REQ and not consumer.begun: return False
        gradient = None
        if has_come(e): gradient = rows_in(&e.gradient) if e.gradient.kind == ROWS else as_tensor(&e.gradient)
        if (<Tensor>leaf.tensor).buffer.saved == 0: return self.give(consumer, gradient)
        if self.late is None: self.late = []
        self.late.append((leaf, consumer, gradient))
        return True

    cdef bint give(self, Consumer consumer, gradient) except -1:
        """Give a gradient to a consumer. False: it goes to .grad."""
        consumer.lock(self.number)
        try: taken = consumer.take(gradient)
        finally: consumer.owner = 0
        if taken: self.note_consumed(consumer)
        return taken

    cdef int end_consumers(self, bint done) except -1:
        """At the end of a pass: give the consumers what has waited, and let them know."""
        cdef Consumer consumer
        cdef Gradient g
        late, self.late = self.late, None
        for leaf, item, gradient in late or () if done else ():
            if self.give(item, gradient) or gradient is None: continue
            if type(gradient) is GradientSlice: set_rows(&g, gradient)
            else: share_tensor(gradient, &g)
            gradient = None
            self.keep_at(leaf, &self.entries[self.find(leaf)], &g)
        for consumer in self.consumed or ():
            if consumer.owner == self.number: consumer.owner = 0
            if not done: consumer.fail()
            elif self.trace == NULL: consumer.passed()
        return 0

    cdef int check_consumers(self) except -1:
        """Raise RuntimeError if a pass must not reach a variable whose updates are fused: because it can be run again,
        or because of what the consumer says."""
        cdef Py_ssize_t at
        cdef Node node
        cdef Consumer consumer
        if self.parts: return 0
        for at in range(self.n):
            node = <Node>self.entries[at].node
            if node.op is not None or not self.entries[at].needed or self.entries[at].captured: continue
            consumer = consumer_of(node)
            if consumer is None: continue
            if consumer.obstacle() is not None: raise RuntimeError(consumer.obstacle())
            if not self.retain and not self.graph: continue
            raise RuntimeError(f"fuse_into_backward: {'create_graph' if self.graph else 'retain_graph'}=True keeps the "
                               f"graph, but this pass would change the parameters that it has saved; close() what "
                               f"fuse_into_backward() returned first")
        return 0

    cdef int store_kept(self, Node node, Gradient* g) except -1:
        """Store the kept gradients of a node's outputs, if this pass writes them."""
        cdef Entry e
        cdef Leaf leaf
        cdef int k
        for nr, kept in list(accumulators_of(node)):
            k, leaf = nr, kept
            if g[k].kind == NO_GRADIENT or not self.writes_kept(node, k): continue
            memset(&e, 0, sizeof(Entry))
            self.keep_at(leaf, &e, &g[k])           # copied, since backward still reads g[k]
        return 0

    cdef int capture(self, Entry* e) except -1:
        """Store the complete gradient of a wanted input as a result of the pass."""
        cdef Node node = <Node>e.node
        cdef Gradient* g = gradients_of(e)
        cdef int k
        for n, nr, position in self.captures:
            if n is not node or position < 0: continue
            k = nr
            if g[k].kind != NO_GRADIENT: self.results[position] = as_tensor(&g[k])
        return 0

    cdef int keep_apart(self, Node node, int output_nr, Gradient* g) except -1:
        """Store a contribution to the gradient of a wanted input as a result of its own: the next that is free."""
        cdef int k
        for n, nr, position in self.captures:
            k = nr
            if n is node and k == output_nr and self.results[position] is None:
                self.results[position] = as_tensor(g)
                break
        drop_gradient(g)
        return 0

    cdef int turn(self, Turn b, Py_ssize_t at) except -1:
        """Run a node whose gradient is complete: compute the gradients of its inputs and contribute them."""
        cdef Entry* e = &self.entries[at]
        cdef Node node = <Node>e.node
        cdef Gradient* g = gradients_of(e)
        cdef bint zero = e.zero and not has_come(e) and not e.reached
        cdef bint at_end = self.parts and e.captured and node.op is not None        # (of a part: its hooks come later)
        if zero and (node.op is None or e.captured or node.flags & EXTRAS):
            zeros_for(node, 0, self.graph, self.captures, &e.gradient)
        if node.flags & EXTRAS and not e.stored and not at_end and not (e.reached and not has_come(e)):
            on_outputs(node, g if has_come(e) else NULL, self)
            if node.op is not None and has_come(e): self.store_kept(node, g)
        if node.op is None: return self.leaf_turn(e)
        if e.early and not e.stored:                # the node's backward itself runs in recording order
            e.stored = True
            push(self.ready, &self.n_ready, at, node.seq)
            return 0
        if e.captured and has_come(e): self.capture(e)
        if not e.runs:                              # its gradient is a result; those of its inputs are not wanted
            self.drop_entry(e)
            node.state = e.state
            e.turned = True
            return 0
        self.open(b, node)
        try:
            if not self.wants(b, node) or not has_come(e):
                self.drop_entry(e)
                if not self.retain: self.free(node)
            else:
                if node.n_out == 1: take_gradient(g, b.g)
                else:
                    if node.n_out > MAX_OUTPUTS: b.g = g        # the turn now owns the array
                    else:
                        memcpy(b.g, g, node.n_out * sizeof(Gradient))
                        PyMem_Free(g)
                    e.several = NULL
                self.compute(b, node)
                zero = node.op.zero_derivative
            node.state = FREED if not self.retain else RECORDED
            e.turned = True
            self.contribute_all(b, node, zero)
        finally:
            self.close(b, node)
        return 0

    cdef int open(self, Turn b, Node node) except -1:
        """Begin a turn: no gradient of an input exists or is wanted yet."""
        cdef int i
        b.g, b.dx, b.want, b.targets = b.inline_g, b.inline_dx, b.inline_want, NULL
        for i in range(min(node.n_out, <int>MAX_OUTPUTS)): b.inline_g[i].kind = NO_GRADIENT
        if node.n_in > N_INLINE:
            b.dx = <Gradient*>PyMem_Malloc(node.n_in * (sizeof(Gradient) + 1))
            if b.dx == NULL:
                b.dx = b.inline_dx
                raise MemoryError("no memory for the gradients of a node")
            b.want = <uint8_t*>(b.dx + node.n_in)
        b.node = node
        for i in range(node.n_in):
            b.dx[i].kind = NO_GRADIENT
            b.want[i] = 0
        return 0

    cdef bint wants(self, Turn b, Node node) except -1:
        """Mark the inputs whose gradients are needed. Returns whether there are any."""
        cdef Edge edge
        cdef Py_ssize_t k
        cdef int i
        cdef bint any_wanted = False
        b.direct = not self.watched and not has_hooks(node, "after")
        for i in range(node.n_in):
            edge = edge_of(node, i)
            if edge.node == NULL: continue
            k = self.find(<Node>edge.node)          # (-1: another pass has marked it, so this one does not need it)
            if k < 0 or not self.entries[k].needed: continue
            b.want[i] = WANTED
            any_wanted = True
        return any_wanted

    cdef int compute(self, Turn b, Node node) except -1:
        """Compute the gradients of the inputs by the fused kernel or by the formula, and call the node's hooks."""
        cdef list packed = None
        cdef tuple outputs = None
        cdef int k
        if node.flags & EXTRAS:
            before_node(node, b.g, self.graph)
            if has_hooks(node, "after"): outputs = outputs_of(node, b.g)
            if not any_come(node, b.g):             # (pre-hooks have removed them)
                if outputs is not None: after_node(node, b, outputs)
                if not self.retain: self.free(node)
                return 0
        if node.flags & PACKS: packed = unpack(node, flags(), self.retain)
        if checksums.checking: checksums.compare(node)
        nan = any_nan(b.g, node.n_out) if self.watched else False
        if not node.op.fused or self.graph: by_formula(node, b)
        elif not run_stages(b): by_formula(node, b)
        for k in range(node.n_out): drop_gradient(&b.g[k])
        if outputs is not None: after_node(node, b, outputs)
        if self.watched and not nan and any_nan(b.dx, node.n_in): raise_nan(node)
        if not self.retain: self.free(node)
        elif packed is not None: repack(node, packed)
        return 0

    cdef void free(self, Node node) noexcept:
        free_slots(node)
        if node.op.joint_formula: node.attributes = None    # a Function's ctx, which may refer back to the node
        if node.flags & EXTRAS: remove_hooks(node)

    cdef int contribute_all(self, Turn b, Node node, bint zero) except -1:
        """Contribute the gradient of each input. With `zero`, a missing one is zeros."""
        cdef Edge edge
        cdef int i
        self.arrived_directly(b)
        for i in range(node.n_in):
            edge = edge_of(node, i)
            if not b.want[i]: continue
            if zero and b.dx[i].kind == NO_GRADIENT:        # (Entry.zero stands for the only output of a node)
                if (<Node>edge.node).n_out > 1 or self.apart:
                    zeros_for(<Node>edge.node, edge.output_nr, self.graph, self.captures, &b.dx[i])
                else: self.entries[self.find(<Node>edge.node)].zero = True
            self.contribute(<Node>edge.node, edge.output_nr, &b.dx[i])
        return 0

    cdef void close(self, Turn b, Node node) noexcept:
        """End a turn, also after an error: return what was lent and release the gradients that are left."""
        cdef int k
        b.return_grad()
        self.arrived_directly(b)
        for k in range(node.n_out): drop_gradient(&b.g[k])
        for k in range(node.n_in): drop_gradient(&b.dx[k])
        if b.g != b.inline_g: PyMem_Free(b.g)
        if b.dx != b.inline_dx: PyMem_Free(b.dx)
        if b.targets != NULL and b.targets != b.inline_targets: PyMem_Free(b.targets)
        b.node = None

    cdef int trace_leaves(self) except -1:
        """During a trace: when the program runs, the variables that this pass has reached are fresh from here on."""
        cdef Py_ssize_t at
        cdef Trace t
        if self.trace == NULL: return 0
        t = <Trace>self.trace
        for at in range(self.n):
            node = <Node>self.entries[at].node
            if node.op is not None or not self.entries[at].reached: continue
            leaf_step(<Leaf>node, OVERWRITTEN if self.entries[at].replaced else ADDED)
            if t.around is not None: t.around.gradients = True
        return 0

    cdef int trace_nodes(self, Trace t) except -1:
        """During a trace that makes steps: register what the program must compare at each run. Raise RuntimeError for
        what it would not repeat: hooks from outside, and freeing a graph from outside."""
        cdef Py_ssize_t at
        cdef Node node
        for at in range(self.known, self.n):
            node = <Node>self.entries[at].node
            if not self.entries[at].needed: continue
            if node.op is None:
                if not t.has_outside(<Leaf>node): continue
                if is_hooked(node): refuse_trace(f"a hook on a variable of shape {lay.shape_tuple(node.layout)}")
                t.around.reach(<Leaf>node)
            elif t.around.is_older(node):
                if is_hooked(node): refuse_trace(f"a hook on {node.name()}, recorded outside,")
                if self.entries[at].runs and not self.retain:
                    refuse_trace(f"a backward pass without retain_graph=True through {node.name()}, recorded outside,")
                t.around.nodes.append(node)
        return 0

    cdef int begin_part(self) except -1:
        """Called before the first node runs; core/backward/listed.pyx overrides it."""
        return 0

    cdef int open_pass(self) except -1:
        """Take the state of the thread, and register the pass with those that run."""
        cdef Flags* f = flags()
        cdef bint alone
        self.watched = f.inspecting & ANOMALIES and f.trace == NULL
        if f.collector != NULL: self.collected = <Collected>f.collector
        self.trace = f.trace
        self.number = begin(self.trace != NULL, &alone)
        self.alone = alone
        return 0

    cdef void end_pass(self) noexcept:
        """What must follow open_pass()."""
        end(self.trace != NULL)

    cdef int note_failure(self, object error) except -1:
        """Add to an error where it was raised, and what had been done before."""
        if self.current is None: return 0
        partly = (f", {self.incomplete} more are incomplete (only some of their contributions had been added: zero or "
                  f"assign them)" if self.incomplete else "")
        names = ", ".join([consumer.name for consumer in self.consumed or () if not (<Consumer>consumer).begun])
        moved = f"the fused updates have moved {names}; " if names else ""
        error.add_note(f"cygrad: in backward, at {self.current.name()}; {self.written - self.incomplete} gradients had "
                       f"been written before{partly}; {moved}"
                       + ("the graph is kept" if self.retain else "the graph has been freed: record it again"))
        return 0

    cdef int go(self, list roots, list numbers, list gradients) except -1:
        """Run the pass: the walk, then the turns of the nodes."""
        cdef Turn b = Turn.__new__(Turn)
        cdef Flags* f = flags()
        cdef int recording = f.recording, training = f.training
        cdef void* around = f.node
        cdef Gradient g
        cdef Py_ssize_t at, i
        cdef Node node
        cdef bint done = False
        self.walk(roots)
        self.consumes = n_consumers > 0
        if self.consumes: self.check_consumers()
        if f.trace != NULL and (<Trace>f.trace).around is not None: self.trace_nodes(<Trace>f.trace)
        for at in range(self.known, self.n):
            node = <Node>self.entries[at].node
            if not self.entries[at].needed or node.op is None: continue
            self.entries[at].state = node.state
            node.state = RUNNING                    # (also if it will not run: the pass uses its `mark`)
        b.walk = self
        b.retain, b.graph, b.number, b.traced = self.retain, self.graph, self.number, self.trace != NULL
        f.recording = self.graph
        try:
            self.begin_part()
            for i in range(len(roots)):
                root, nr, gradient = roots[i], numbers[i], gradients[i]
                gradients[i] = None                 # without this reference an unshared gradient can be overwritten
                at = self.find(<Node>root)
                if at < 0 or not self.entries[at].needed: continue
                if self.graph: set_tensor(&g, <Tensor>gradient)
                else: share_tensor(flowing_in(<Tensor>gradient), &g)
                gradient = None
                self.contribute(<Node>root, nr, &g)
            while self.n_ready:
                at = pop(self.ready, &self.n_ready)
                self.current = <Node>self.entries[at].node
                f.node = <void*>self.current
                self.turn(b, at)
            if not self.parts: self.end_consumers(True)
            if not self.parts: self.trace_leaves()
            done = True
        finally:
            f.recording, f.training = recording, training
            f.node = around
            if not done:
                self.mark_incomplete()
                self.end_consumers(False)
                for at in range(self.n):
                    node = <Node>self.entries[at].node
                    if node.flags & EXTRAS: forget_pass(node, self)
                    if node.op is None:
                        self.clear_busy(seen_by(self, <Leaf>node))
                    elif node.state == RUNNING and not self.entries[at].turned:     # (else another pass may run it)
                        if not self.entries[at].runs: node.state = self.entries[at].state
                        elif self.retain: node.state = RECORDED
                        else:
                            node.state = FREED
                            self.free(node)
        return 0


cdef list run_pass(list roots, list numbers, list gradients, bint retain, bint graph, list captures, str strict,
                   int mode):
    """Run a backward pass from outputs `numbers` of the nodes `roots`, with one gradient tensor each. `captures` lists
    the wanted gradients as (node, output number, position), where position -1 means the node's own .grad; None means
    every .grad. Returns the gradients by position; None where none arrived. If `strict`, the caller's name, is given,
    an unreachable input raises RuntimeError. `mode` is the train mode that the caller named, or -1."""
    cdef BackwardPass p = BackwardPass.__new__(BackwardPass)
    cdef Flags* f = flags()
    cdef int count = 0
    if f.passes: check_stack()
    p.retain, p.graph = retain, graph
    p.selective = captures is not None
    p.captures = captures
    if p.selective:
        p.wanted = set()
        for node, _, position in captures:
            p.wanted.add(<size_t><void*>node)
            count = max(count, position + 1)
        p.results = [None] * count
        p.capturing = count > 0
    p.strict = strict
    p.mode = mode
    p.open_pass()
    try:
        if not p.alone or p.trace != NULL: p.shared_leaves = {}
        p.go(roots, numbers, gradients)
    except Exception as e:
        p.note_failure(e)
        raise
    finally:
        p.end_pass()
    return p.results
