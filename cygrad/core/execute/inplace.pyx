"""In-place writes: x += y, x[...] = v, copy_, fill_. An unrecorded write only raises the version. A recorded write
makes a node, to which the tensor is attached from then on; if the tensor is a view, so are its base and other views
(core/graph/views.pyx). Everything that can fail precedes the first write to memory."""

cimport cython

from libc.stdint cimport uint64_t

from cygrad.core.execute.executor cimport Execution, begin, compute, end, infer, place_over, record, set_operands
from cygrad.core.execute.forward cimport drop_frozen, note_call, note_inputs, read_outside, trace_forward
from cygrad.core.execute.lifting cimport operand_list, reads_lifted
from cygrad.core.execute.nans cimport reads_nan, refuse_nan
from cygrad.core.execute.operands cimport (
    Operand, plain_operand, prepare, read_operand, read_tensor, release_operand, release_operands,
    usable,
)
from cygrad.core.execute.recipes cimport Recipe, begin_recipe, finish_recipe_over
from cygrad.core.execute.run cimport wanted_inputs
from cygrad.core.graph cimport checksums
from cygrad.core.graph.construct cimport copy_plain, new_tensor
from cygrad.core.graph.extras cimport accumulators_of, add_accumulator
from cygrad.core.graph.lifts cimport is_lifted
from cygrad.core.graph.operator cimport Call, Operator, input_bit
from cygrad.core.graph.packed cimport Packed, will_write
from cygrad.core.graph.packing cimport pack
from cygrad.core.graph.provenance cimport remember_write
from cygrad.core.graph.slots cimport OWN, Slot, buffer_in, empty_slot, object_in, save_buffer, slot_saved
from cygrad.core.graph.tensor cimport (
    NULL_REQ, RECORDED, Leaf, Node, Tensor, array_of, attach, current, edge_of, is_result, is_variable, slot_from,
    slots_of,
)
from cygrad.core.graph.calls cimport calls_of
from cygrad.core.graph.trace cimport Trace, is_frozen, raise_version, refuse_trace, seen_leaf, was_rewritten
from cygrad.core.graph.views cimport check_place, put_node, written
from cygrad.core.late_bound cimport apply_inplace_t, late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport EXTERNAL, READONLY, VIRTUAL, WATCHED, hold
from cygrad.core.store.external cimport ranges_meet
from cygrad.core.thread_state cimport ANOMALIES, FORWARDS, RECIPES, Flags, flags
from cygrad.kernels.array cimport Array

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError


cdef int run_into(Operator op, Operand* x, int n, object attributes, Tensor target) except -1:
    """Execute an operation and write the result to `target`, whose shape and dtype it must have. Recorded like run();
    an operand that is overwritten and that backward needs is copied first. Releases the operands, also after an error.
    """
    cdef Execution e
    cdef Flags* f = flags()
    cdef uint64_t wanted = 0
    cdef list _alive = None, _copies                # tensors that the operands borrow
    cdef Node node = None, put = None
    cdef tuple noted = None
    cdef Recipe recipe = None
    cdef bint had_nan = False                       # an operand
    if f.lifting and (reads_lifted(x, n, f.lifting) or is_lifted(target, f.lifting)):
        try: late_bound.run_lifted(op, operand_list(x, n), attributes, target)
        finally: release_operands(x, n)
        return 0
    begin(&e, op, attributes, f)
    try:
        check_writable(target, f)
        if op.promotes: _alive = prepare(op, x, n)
        if f.recording: wanted_inputs(x, n, &wanted)
        if f.trace != NULL and wanted: drop_frozen(x, n, &wanted)
        if f.recording and f.trace != NULL: read_outside(<Trace>f.trace, x, n)
        if wanted: check_family(target, n_on(x, n, target))
        set_operands(&e, x, n, wanted)
        infer(&e, op)
        check_result(&e, op, target)
        if f.trace != NULL and calls_of(f) is not None: noted = note_inputs(&e, x)
        if target.buffer.saved or target.buffer.flags & WATCHED: keep_result(target, f)
        _copies = copy_overwritten(&e, op, x, target)
        place_over(&e, target)
        if f.trace != NULL: check_trace(target, f, wanted)
        if wanted:
            node = record(&e, op, x, attributes, wanted)
            put = put_node(target)
            if put is None: follow(target, node, 0)
        if f.inspecting & FORWARDS and f.trace == NULL: had_nan = reads_nan(&e)
        if f.inspecting >= RECIPES: recipe = begin_recipe(&e, op, x, attributes)
        will_write(f, target.buffer)
        if f.trace == NULL: compute(&e, op)
        else: trace_forward(&e, op, x, attributes, target)
        raise_version(f, target.buffer)
        if f.inspecting & ANOMALIES: remember_write(target.buffer)
        if recipe is not None: finish_recipe_over(recipe, &e, target)
        if node is not None:
            update_saved(node, target)
            if checksums.checking: checksums.remember(node)
            written(target, node, 0, put)
            if f.pack != NULL: pack(node, f)
        if noted is not None: note_call(&e, op, noted, attributes, node, target)
        if f.inspecting & FORWARDS and f.trace == NULL: refuse_nan(&e, op, had_nan)
    finally:
        end(&e)
        release_operands(x, n)
    return 0


cdef int n_on(const Operand* x, int n, Tensor target) noexcept:
    """The number of operands that hold the memory of `target`."""
    cdef int i, held = 0
    for i in range(n): held += x[i].buffer == target.buffer
    return held


cdef int check_result(const Execution* e, Operator op, Tensor target) except -1:
    """Raise an error if the result cannot be written to `target`."""
    cdef const Call* c = &e.call
    if c.n_out - c.hidden > 1 or c.view >= 0: raise RuntimeError(f"{op.name} does not write in place")
    if not lay.same_shape(c.y[0].layout, target.layout):
        raise ValueError(f"{op.name} in place: the result has shape {lay.shape_tuple(c.y[0].layout)}, but the tensor "
                         f"written to has shape {target.shape}")
    if c.y[0].dtype != target.dtype:
        raise TypeError(f"{op.name} in place: the result has dtype {DTYPES[c.y[0].dtype]}, but the tensor written to "
                        f"has dtype {DTYPES[target.dtype]}; write x = cygrad.{op.name}(x, y), or cast the operand")
    return 0


cdef int keep_result(Tensor t, Flags* f) except -1:
    """Before a write to the memory of `t`: if the operation that made or wrote it saved its result and may lose it
    (Operator.result_may_change), let its node keep a copy. A later write than the next one finds that copy."""
    cdef Node node = t.base.node if t.base is not None else t._node
    cdef Slot* s
    cdef Packed p = None
    cdef Tensor kept
    if node is not None and node.op is <Operator>late_bound.operators["put_view"]: node = <Node>edge_of(node, 1).node
    if node is None or node.op is None or node.state != RECORDED or not node.op.result_may_change: return 0
    s = slot_from(node, OWN)
    if s == NULL or was_rewritten(node, s, t.buffer): return 0
    if object_in(s) != NULL:                        # of a scope such as a budget
        p = <Packed>object_in(s)
        if p.watch.buffer != t.buffer: return 0
    elif buffer_in(s) != t.buffer: return 0
    hold(t.buffer)
    kept = copy_plain(new_tensor(t.buffer, lay.incref(s.layout), s.dtype))
    empty_slot(s)
    save_buffer(s, OWN, kept.buffer, kept.layout, kept.dtype)
    if slot_saved != NULL: slot_saved(<void*>node, s)
    if p is not None and f.pack != NULL: pack(node, f)
    return 0


cdef list copy_overwritten(Execution* e, Operator op, Operand* x, Tensor target):
    """Copy the operands that share memory with `target`, and read the copies instead. An operand with the layout of
    `target` that backward does not need is read in place. Returns the copies."""
    cdef uint64_t kept = op.keeps(&e.call, e.call.wanted) if e.call.wanted else 0
    cdef list copies = None
    cdef Tensor copied
    cdef bint shared
    cdef int i
    for i in range(e.call.n_in):
        shared = x[i].buffer == target.buffer
        if not shared and not overlap(&x[i], target): continue
        if shared and x[i].array.layout == target.layout and not kept & input_bit(i): continue
        copied = copy_operand(<Tensor>x[i].tensor, e.thread)
        if copies is None: copies = []
        copies.append(copied)
        release_operand(&x[i])
        read_tensor(&x[i], copied)
        e.call.x[i] = x[i].array
    return copies


cdef Tensor copy_operand(Tensor x, Flags* f):
    """A dense copy with the graph of `x`."""
    cdef Tensor y
    y = copy_plain(x)
    if x._tracked: attach(y, x._node, x._output_nr)
    return y


cdef int update_saved(Node node, Tensor target) noexcept:
    """Give the saved result of the node the new version of `target`, whose memory it shares."""
    cdef Slot* s = slots_of(node)
    cdef int k
    for k in range(node.n_slots):
        if s[k].source == OWN: s[k].version = target.buffer.version
    return 0


cdef int follow(Tensor t, Node node, int nr) except -1:
    """Attach the accumulator that keeps the gradient of `t`, if there is one, to the node that `t` moves to."""
    cdef Leaf leaf
    if t._node is None or t._node.op is None: return 0
    for _, leaf in accumulators_of(t._node):
        if leaf.tensor == <void*>t: add_accumulator(node, nr, leaf)
    return 0


cdef bint overlap(Operand* x, Tensor target) except -1:
    """Whether an operand overlaps `target` through another buffer: two tensors may share one NumPy array."""
    cdef Array y
    if x.buffer == NULL or not (x.buffer.flags | target.buffer.flags) & EXTERNAL: return False
    if (x.buffer.flags | target.buffer.flags) & VIRTUAL: return False
    y = array_of(target)
    return ranges_meet(&x.array, &y)


cdef int check_family(Tensor t, int held) except -1:
    """Check that a recorded write to `t` reaches every tensor that shares its memory. `held` operands hold it too."""
    if t.detached and t.buffer.holders > 1 + held:
        raise InplaceError(
            f"this tensor of shape {t.shape} is detached, by detach() or as a view taken outside record(), and shares "
            f"its memory with other tensors, whose gradients would ignore a recorded write; write to a copy()")
    t.detached = False
    if t.view: check_place(t)
    return 0


cdef int check_trace(Tensor t, Flags* f, uint64_t wanted) except -1:
    """Before a write during a trace, which cannot give a place in its graph to a tensor that others see."""
    if wanted and not t.buffer.flags & VIRTUAL:
        refuse_trace(f"a recorded write to a tensor of shape {t.shape} from outside")
    return (<Trace>f.trace).before_write(t.buffer)


cdef bint on_leaf(Tensor t) except -1:
    """Whether `t` shares the memory of a variable, or is a view of a tensor that was a variable."""
    if t.buffer.parameters: return not is_frozen(t)
    if not t.view or not t._tracked or t.base.node is None or t.base.node.op is not None: return False
    return seen_leaf(<Leaf>t.base.node).req != NULL_REQ


cdef bint given(Tensor t, tuple inputs) noexcept:
    """Whether `t` is an input of the running Function.forward, which may write to it and mark it as dirty."""
    for x in inputs:
        if x is t: return True
    return False


cdef int check_writable(Tensor t, Flags* f) except -1:
    cdef int d = lay.repeated(t.layout)
    current(t)
    if t.buffer.flags & READONLY:
        raise ValueError(f"this tensor of shape {t.shape} has read-only memory and cannot be written; copy() it first")
    if d >= 0:
        raise ValueError(f"this tensor of shape {t.shape} repeats its elements (broadcast in dimension {d}) and cannot "
                         f"be written; copy() it first")
    if f.recording and on_leaf(t):
        what = "a leaf variable" if is_variable(t) else "a view of a leaf variable"
        raise InplaceError(f"{what} of shape {t.shape} cannot be written in place while recording; write inside "
                           f"pause() or no_grad(), or make a new tensor")
    if not f.recording and is_result(t) and not (f.inputs != NULL and given(t, <tuple>f.inputs)):
        raise InplaceError(f"this result of {t._node.name()}, of shape {t.shape}, belongs to a graph and cannot be "
                           f"written outside record(): its gradient would ignore the write; write to its detach() "
                           f"instead")
    return 0


cdef object apply_inplace(Operator op, Tensor target, other, attributes):
    """Write op(target, other) to `target` and return it."""
    cdef Operand o[2]
    other = plain_operand(other)
    usable(target)
    read_tensor(&o[0], target)
    read_operand(&o[1], other)
    run_into(op, o, 2, attributes, target)
    return target


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class writes_into:
    """`with writes_into(x):`, during a trace, the operation in the body that has x as its first operand writes to x,
    as x += y does. Nothing changes outside of a trace."""
    cdef Tensor target

    @cython.embedsignature.format("c")
    def __init__(self, Tensor x not None):
        self.target = x

    def __enter__(self):
        cdef Trace t = <Trace>flags().trace if flags().trace != NULL else None
        if t is not None: t.into, t.write = self.target, <void*>run_into

    def __exit__(self, *_):
        if flags().trace != NULL: (<Trace>flags().trace).into = None


late_bound.apply_inplace = <apply_inplace_t>apply_inplace
