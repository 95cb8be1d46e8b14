"""A backward pass that a net runs part by part: each gradient operator of its list is a part (cygrad/nets/lowering.py).

A part runs the nodes that one operator has recorded, from its outputs to the places of its inputs, where the walk ends.
The gradients that arrive there are its results. A sum of earlier contributions can be given for each: the part adds to
it as the engine does, so the bits are those of one pass over the whole graph. The entries of variables last as long as
the pass: each contribution goes to .grad at once, and the hooks of a variable are called after its last one."""

cimport cython

from cygrad.core.backward.engine cimport BackwardPass
from cygrad.core.backward.gradients cimport (
    Gradient, new_gradients, set_rows, set_tensor, share_tensor,
)
from cygrad.core.backward.heap cimport push
from cygrad.core.backward.walk cimport Entry, gradients_of, seen_by
from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.graph.recording cimport append_to_tape, new_node, set_edge, take_edges, take_outputs, take_slots
from cygrad.core.graph.running cimport check_stack
from cygrad.core.graph.slots cimport OWN, Slot, share_slot, save_buffer
from cygrad.core.graph.tensor cimport (
    REACHED, TRAINING, Edge, Leaf, Node, Tensor, current, edge_of, output_layout, ready, slots_of,
)
from cygrad.core.store cimport layout as lay
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Layout

from cygrad.core.dtypes import DTYPES


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class ListedPass(BackwardPass):
    """A backward pass in parts. `variables` are the nodes of variables whose gradients it delivers: to .grad, or to
    gradient() where `captured` is true. `counts` says how many operators contribute to each; run() is told to which
    its operator does. graph: create_graph."""
    cdef Py_ssize_t n_variables
    cdef list fixed             # the captures that last as long as the pass
    cdef list sums              # of the part that runs
    cdef list ends
    cdef tuple given            # the positions of the variables to which it contributes
    cdef bint is_open

    def __init__(self, list variables, list counts, list captured, bint graph=False):
        cdef Py_ssize_t i, at
        cdef Leaf leaf
        if flags().passes: check_stack()
        self.selective = self.capturing = self.parts = True
        self.graph, self.mode = graph, -1
        self.shared_leaves = {}                     # (a pass between two parts may change the marks of leaves)
        self.fixed, self.wanted, self.results, self.captures = [], set(), [None] * len(variables), []
        for i in range(len(variables)):
            leaf = variables[i]
            at = self.enter(leaf)
            self.entries[at].needed, self.entries[at].pending = True, counts[i]
            self.entries[at].captured = bool(captured[i])
            if captured[i]: self.fixed.append((leaf, 0, i))
            else: self.check_leaf(leaf, &self.entries[at])
        self.n_variables = self.n
        self.open_pass()
        self.is_open = True

    def __dealloc__(self):
        if self.is_open: self.end_pass()

    def run(self, list roots, list gradients, list ends, list sums, tuple variables=(), bint retain=False,
            bint apart=False, list stops=None):
        """Run the nodes of one operator, from `roots` to `ends`: lists of places, which are pairs (node, output
        number). `gradients` are those of the roots; the list is emptied, so a gradient without another reference can be
        overwritten. Returns the gradients at the ends, tensors or GradientSlices, None where none arrived. `sums` are
        earlier contributions to these, or None; `apart` makes each contribution a result of its own, for ends that
        repeat a place. `variables` are the positions of the variables to which this operator contributes. The walk ends
        at the places `stops`, too; None is no place."""
        cdef Py_ssize_t at, n = self.n_variables
        cdef list nodes = [node for node, _ in roots], numbers = [nr for _, nr in roots]
        cdef Py_ssize_t n_results = len(ends)
        cdef bint done = False
        for end in stops or ():
            if end is None or (<Node>end[0]).op is None or end in ends: continue
            ends, sums = ends + [end], sums + [None]
        self.retain, self.apart, self.sums, self.ends, self.given = retain, apart, sums, ends, variables
        self.results += [None] * len(ends)
        self.captures = self.fixed + [(node, nr, n + k) for k, (node, nr) in enumerate(ends)]
        self.wanted = {<size_t><void*>node for node, _ in ends}
        for at in variables: self.entries[at].pending -= 1      # (the walk counts what the operator really contributes)
        try:
            self.go(nodes, numbers, gradients)
            found = [self.result(k) for k in range(n_results)]
            done = True
        except Exception as e:
            self.note_failure(e)
            raise
        finally:
            self.end_part()
            if not done: self.close_pass()
        return found

    cdef int begin_part(self) except -1:
        """Before a part: give its sums to their entries, and run variables that have all contributions."""
        cdef Py_ssize_t at, k
        cdef Entry* e
        cdef Gradient* g
        cdef int nr
        for k in range(len(self.ends)):
            if self.sums[k] is None: continue
            node, number = self.ends[k]
            nr = number
            at = self.find(<Node>node)
            if at < 0 or not self.entries[at].pending: continue
            e = &self.entries[at]
            if (<Node>node).n_out > 1 and e.several == NULL: e.several = new_gradients((<Node>node).n_out)
            g = gradients_of(e)
            if (<Node>node).n_out > 1: g = &g[nr]
            total, self.sums[k] = self.sums[k], None        # (without this reference it can be overwritten)
            if type(total) is GradientSlice: set_rows(g, <GradientSlice>total)
            elif self.graph: set_tensor(g, <Tensor>total)
            else: share_tensor(<Tensor>total, g)
            total = None
        for at in self.given if self.known else range(self.n_variables):
            e = &self.entries[at]
            if e.pending or e.turned: continue
            e.turned = True
            push(self.ready, &self.n_ready, at, 1 << 63)
        return 0

    cdef object result(self, Py_ssize_t k):
        """The gradient at an end: the sum alone, if nothing was added to it."""
        found = self.results[self.n_variables + k]
        return self.sums[k] if found is None else found

    cdef int end_part(self) except -1:
        """Leave the entries of the variables alone in the table."""
        cdef Py_ssize_t at
        for at in range(self.n_variables, self.n):
            self.shared_leaves.pop(<size_t>self.entries[at].node, None)
            self.drop_entry(&self.entries[at])
        self.n, self.n_ready, self.known = self.n_variables, 0, self.n_variables
        self.sums = self.ends = self.given = None
        del self.results[self.n_variables:]
        return 0

    def contribute_to(self, Py_ssize_t variable, list gradient):
        """Contribute a gradient that no part has computed, the only one in a list, which is emptied."""
        self.run([(<Node>self.entries[variable].node, 0)], gradient, [], [], (variable,), True)

    def gradient(self, Py_ssize_t variable):
        """The gradient of a variable that is a result, after its last contribution; None if there is none."""
        return self.results[variable]

    def finish(self):
        """End the pass."""
        if not self.is_open: return
        try:
            self.end_consumers(True)
            self.trace_leaves()
        finally:
            self.close_pass()

    def fail(self):
        """End the pass after an error outside of its parts: a variable that lacks contributions is incomplete."""
        cdef Py_ssize_t at
        if not self.is_open: return
        self.mark_incomplete()
        self.end_consumers(False)
        for at in range(self.n): self.clear_busy(seen_by(self, <Leaf>self.entries[at].node))
        self.close_pass()

    cdef int close_pass(self) except -1:
        if self.is_open:
            self.is_open = False
            self.end_pass()
        return 0


def reach(list places):
    """Mark the nodes from which gradients of these places are computed: a pass will run them, so nothing that they keep
    is packed any more."""
    cdef list waiting = [node for node, _ in places]
    cdef Node node
    cdef Edge e
    cdef int i
    while waiting:
        node = waiting.pop()
        if node.flags & REACHED or node.op is None: continue
        node.flags |= REACHED
        for i in range(node.n_in):
            e = edge_of(node, i)
            if e.node != NULL: waiting.append(<Node>e.node)


def variables_of(list places):
    """The nodes of the variables on which these places depend."""
    cdef list waiting = [node for node, _ in places]
    cdef set seen = set()
    cdef list found = []
    cdef Edge e
    cdef Node node
    cdef int i
    while waiting:
        node = waiting.pop()
        if node in seen: continue
        seen.add(node)
        if node.op is None: found.append(node)
        for i in range(node.n_in):
            e = edge_of(node, i)
            if e.node != NULL: waiting.append(<Node>e.node)
    return found


def described_place(Node node not None, int nr):
    """(shape, dtype) of an output of a node."""
    return lay.shape_tuple(output_layout(node, nr)), DTYPES[node.dtype]


def is_gradient_at(Node node not None, int nr, g):
    """Whether a value is a tensor of the shape and the dtype of an output of a node."""
    if not isinstance(g, Tensor) or (<Tensor>g).dtype != node.dtype: return False
    return lay.same_shape((<Tensor>g).layout, output_layout(node, nr))


def written_place(Tensor t not None):
    """The place of what a recorded operation has just written to `t`, also if `t` is a view."""
    cdef Edge e
    current(t)
    if not t.view: return t._node, t._output_nr
    e = edge_of(t.base.node, 1)
    return <Node>e.node, e.output_nr


def node_on(Node node not None, dict values):
    """A node like `node` that keeps other values: `values` are tensors by input i, or by ~k for output k. Those that
    the node does not keep are not used. Raises ValueError for a value of another shape or dtype."""
    cdef Node new = new_node()
    cdef Slot* old = slots_of(node)
    cdef Slot* s
    cdef Layout** layouts
    cdef Edge e
    cdef Tensor t
    cdef int k, source
    new.op, new.attributes, new.dtype = node.op, node.attributes, node.dtype
    take_edges(new, node.n_in)
    for k in range(node.n_in):
        e = edge_of(node, k)
        if e.node != NULL: set_edge(new, k, <Node>e.node, e.output_nr)
    layouts = take_outputs(new, node.n_out)
    for k in range(node.n_out): layouts[k] = lay.incref(<Layout*>output_layout(node, k))
    s = take_slots(new, node.n_slots)
    for k in range(node.n_slots):
        source = old[k].source
        t = values.get(~(source & ~OWN) if source & OWN else source)
        if t is None:
            share_slot(&old[k], &s[k])
            continue
        ready(t)
        if t.dtype != old[k].dtype or not lay.same_shape(t.layout, old[k].layout):
            raise ValueError(f"{node.name()} keeps {DTYPES[old[k].dtype]} of shape {lay.shape_tuple(old[k].layout)} "
                             f"there, got {DTYPES[t.dtype]} of shape {t.shape}")
        save_buffer(&s[k], source, t.buffer, t.layout, t.dtype)
    append_to_tape(new, flags())
    new.flags = new.flags & ~TRAINING | node.flags & TRAINING
    return new
