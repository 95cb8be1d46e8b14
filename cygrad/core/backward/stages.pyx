"""The backward calls of a program (core/graph/steps.pxd): stages of a node's backward with fixed addresses."""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from cygrad.core.backward.gradients cimport DENSE, Gradient
from cygrad.core.backward.turn cimport Turn
from cygrad.core.execute.executor cimport LARGE_WORK
from cygrad.core.graph.operator cimport (
    MAX_OUTPUTS, MAX_TEMPORARIES, TEMPORARY, BackwardCall, Operator, Stage, adds, bit_of, computes,
)
from cygrad.core.graph.slots cimport Slot, buffer_in, has_elements
from cygrad.core.graph.tensor cimport Tensor, slot_from, slots_of
from cygrad.core.graph.steps cimport READS, UPDATES, WRITES, Step, emit
from cygrad.core.graph.trace cimport Trace, preparing
from cygrad.core.late_bound cimport late_bound, trace_stage_t
from cygrad.core.store.buffer cimport Buffer
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.driver cimport LoopCall


cdef class StageStep(Step):
    """A prepared stage of a node's backward."""
    cdef Operator op
    cdef BackwardCall call      # its arrays are in `room`, its attributes in `held`
    cdef int stage

    cdef int run(self) except -1:
        if self.call.work < LARGE_WORK: return self.op.run_backward(&self.call, self.stage)
        with nogil: self.op.run_backward(&self.call, self.stage)

    cdef bint find_loop(self, LoopCall* l) noexcept:
        return self.op.backward_loop(&self.call, self.stage, l)

    cdef int set_array(self, Trace t, Turn b, Array* a, int access) except -1:
        """Use an array of the turn. (An empty one may lie anywhere.)"""
        self.hold(a.layout)
        return self.point(t, &a.data, owner(b, a.data), access) if a.layout.size else 0


cdef int prepare_stage(Turn b, int stage, Buffer* workspace) except -1:
    """Instead of running a stage, during a trace: prepare the call if steps are made."""
    cdef Trace t = preparing(flags())
    return 0 if t is None else emit(t, prepare(b, stage, workspace, t))


cdef StageStep prepare(Turn b, int stage, Buffer* workspace, Trace t):
    cdef StageStep s = StageStep.__new__(StageStep)
    cdef const BackwardCall* c = &b.call
    cdef BackwardCall* own = &s.call
    cdef int n = c.n_kept, m = max(c.n_in, 1), i, k, kept = max(c.n_kept, 1)
    cdef size_t pointers = (m + kept + c.n_out) * sizeof(Array) + m * sizeof(void*)
    cdef const Stage* plan = &c.stages[stage]
    cdef double* room
    s.take(kept + c.n_out + m + MAX_TEMPORARIES + 1, kept + c.n_out + 2 * m + MAX_TEMPORARIES + 1,
           pointers + kept * (sizeof(double) + sizeof(bint) + 1) + m)
    s.op, s.held, s.stage, s.name = b.node.op, b.node.attributes, stage, b.node.op.name + " (backward)"
    s.pure, s.work = True, c.work
    own[0] = c[0]
    own.attributes = <void*>s.held
    own.kept = <Array*>s.room
    own.dx = own.kept + kept
    own.g = own.dx + m
    own.x = <const Layout**>(own.g + c.n_out)
    room = <double*>(own.x + m)
    own.as_bits = <bint*>(room + kept)
    own.sources = <uint8_t*>(own.as_bits + kept)
    own.want = own.sources + kept
    memcpy(own.sources, c.sources, n)
    memcpy(own.as_bits, c.as_bits, n * sizeof(bint))
    memcpy(own.want, b.want, c.n_in)
    s.hold(c.y)
    for k in range(n):
        own.kept[k] = c.kept[k]
        if plan.saved >> bit_of(c.sources[k]) & 1 and not keep_number(s, b, k, &own.kept[k], room + k):
            s.set_array(t, b, &own.kept[k], READS)
    for k in range(c.n_out):
        own.g[k] = c.g[k]
        if plan.gradients >> k & 1 and c.g[k].data != NULL: s.set_array(t, b, &own.g[k], READS)
        else: s.hold(c.g[k].layout)
    for i in range(c.n_in):
        if not b.want[i]: continue
        own.x[i] = s.hold(c.x[i])
        if not computes(plan, i) and not contains(held_by(&b.dx[i]), c.dx[i].data): continue
        own.dx[i] = c.dx[i]                         # (a stage may fill what an earlier one has placed)
        s.set_array(t, b, &own.dx[i], WRITES if computes(plan, i) and not adds(c, i) else UPDATES)
    for k in range(MAX_TEMPORARIES):
        if not (plan.computes >> (TEMPORARY + k) | plan.gradients >> (MAX_OUTPUTS + k)) & 1: continue
        s.set_array(t, b, &own.temporaries[k], WRITES if plan.computes >> (TEMPORARY + k) & 1 else READS)
    if workspace != NULL: s.point(t, &own.workspace, workspace, WRITES)
    return s


cdef bint keep_number(StageStep s, Turn b, int k, Array* a, double* room):
    """If saved value `k` is a Python number, point to a copy of it and return True."""
    cdef Slot* slot = slot_from(b.node, b.call.sources[k])
    if slot == NULL or not has_elements(slot) or buffer_in(slot) != NULL: return False
    memcpy(room, a.data, sizeof(double))
    a.data = <char*>room
    s.hold(a.layout)
    return True


cdef bint contains(const Buffer* b, const char* p) noexcept:
    return b != NULL and b.data <= p < b.data + b.nbytes


cdef Buffer* held_by(const Gradient* g) noexcept:
    return g.held.buffer if g.kind == DENSE else NULL


cdef Buffer* search(Turn b, const char* p) noexcept:
    cdef Slot* s = slots_of(b.node)
    for k in range(b.node.n_slots):
        if contains(buffer_in(&s[k]), p): return buffer_in(&s[k])
    for k in range(b.call.n_out):
        if contains(held_by(&b.g[k]), p): return held_by(&b.g[k])
    for k in range(b.call.n_in):
        if contains(held_by(&b.dx[k]), p): return held_by(&b.dx[k])
        if b.targets == NULL: continue
        if b.targets[k].lent != NULL and contains((<Tensor>b.targets[k].lent).buffer, p):
            return (<Tensor>b.targets[k].lent).buffer
        if b.targets[k].sum != NULL and contains(held_by(b.targets[k].sum), p): return held_by(b.targets[k].sum)
        if b.targets[k].consumed and contains(b.targets[k].memory, p): return b.targets[k].memory
    for k in range(MAX_TEMPORARIES):
        if contains(held_by(&b.temporaries[k]), p): return held_by(&b.temporaries[k])
    return NULL


cdef Buffer* owner(Turn b, const char* p) except NULL:
    """The buffer with the address `p`, among those that the turn reads and writes. (A donated one has moved from a slot
    or a gradient to a result.)"""
    cdef Buffer* found = search(b, p)
    if found != NULL: return found
    raise RuntimeError(f"{b.node.name()} reads memory in backward that it did not declare, so it cannot be captured")


late_bound.trace_stage = <trace_stage_t>prepare_stage
