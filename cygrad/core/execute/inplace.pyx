"""Writing in place: x += y, x[...] = v, copy_, fill_. A write outside of recording, of what the graph does not know,
raises the version and no more. A recorded one makes a node: the tensor stands at it from then on, and if it is part of
a larger one, so does that (core/graph/views.pyx). All that can fail is done before the first byte is written."""

from libc.stdint cimport uint64_t, uintptr_t

from cygrad.core.late_bound cimport apply_inplace_t, late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph cimport checksums
from cygrad.core.graph.provenance cimport remember_write
from cygrad.core.graph.extras cimport keep_for, kept_of
from cygrad.core.graph.operator cimport N_INLINE, MAX_OUTPUTS, Call, Operator
from cygrad.core.graph.tensor cimport (
    NULL_REQ, Leaf, Node, Tensor, array_of, attach, current, is_result, is_variable, ready, slots_of,
)
from cygrad.core.store.buffer cimport EXTERNAL, OTHER, READONLY, WORKSPACE, Buffer, allocate, allocate_for, drop
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.packing cimport pack
from cygrad.core.execute.run cimport (
    Operand, give_plain, give_tensor, record_node, plain_operand, prepare, release_operand, release_operands, wanted_of,
)
from cygrad.core.graph.slots cimport OWN, Slot
from cygrad.core.source cimport refuse_capture
from cygrad.core.graph.construct cimport copy_plain
from cygrad.core.graph.views cimport check_place, put_node, written
from cygrad.kernels.array cimport Array, itemsize

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError


cdef int run_into(Operator op, Operand* x, int n, object attributes, Tensor target) except -1:
    """Execute with the result written over `target`, whose shape and dtype it must have. Recorded like run(); what
    backward keeps of the overwritten input is copied first."""
    cdef Flags* f = flags()
    cdef void* around = f.op
    f.op = <void*>op
    try:
        return write_into(op, x, n, attributes, target, f)
    finally:
        f.op = around
        release_operands(x, n)


cdef int sum_held(const Operand* x, int n, Tensor target) noexcept:
    """How many of the operands hold the memory of `target`."""
    cdef int i, held = 0
    for i in range(n): held += x[i].buffer == target.buffer
    return held


cdef int write_into(Operator op, Operand* x, int n, object attributes, Tensor target, Flags* f) except -1:
    cdef Call c
    cdef Array inline_[N_INLINE]
    cdef Buffer* buffers[MAX_OUTPUTS]               # the target's, then those of hidden outputs, `made` of them
    cdef Buffer* workspace = NULL
    cdef uint64_t wanted = 0
    cdef int made = 0
    cdef list alive = None
    cdef Tensor copied
    cdef Node node = None, put = None
    cdef Slot* s
    cdef int i
    check_writable(target, f)
    if op.promotes: alive = prepare(op, x, n)
    if f.recording: wanted_of(x, n, &wanted)
    if wanted: check_family(target, sum_held(x, n, target))
    if f.capture != NULL: refuse_capture(f"{op.name} in place")
    for i in range(n):                              # an operand that lies across the target is read before: copy it
        if x[i].buffer != target.buffer and overlap(&x[i], target) or \
                x[i].buffer == target.buffer and (x[i].array.layout != target.layout or wanted):
            if (x[i].buffer == target.buffer and x[i].array.layout == target.layout
                    and not must_keep(op, x, n, attributes, wanted, i)):
                continue
            copied = copy_plain(<Tensor>x[i].tensor)
            if (<Tensor>x[i].tensor)._tracked:
                attach(copied, (<Tensor>x[i].tensor)._node, (<Tensor>x[i].tensor)._output_nr)
            if alive is None: alive = []
            alive.append(copied)
            release_operand(&x[i])
            give_tensor(&x[i], copied)
    for i in range(n): inline_[i] = x[i].array
    c.x = inline_
    c.n_in, c.n_out, c.hidden, c.view, c.wanted = n, 1, 0, -1, wanted
    c.workspace_bytes = 0
    c.workspace = NULL
    c.attributes = <void*>attributes
    for i in range(MAX_OUTPUTS): c.y[i].layout = NULL
    try:
        op.infer(&c)
        if c.n_out - c.hidden > 1 or c.view >= 0: raise RuntimeError(f"{op.name} does not write in place")
        if not lay.same_shape(c.y[0].layout, target.layout):
            raise ValueError(f"{op.name} in place: the result has shape {lay.shape_tuple(c.y[0].layout)}, but the "
                             f"tensor written to has shape {target.shape}")
        if c.y[0].dtype != target.dtype:
            raise TypeError(f"{op.name} in place: the result has dtype {DTYPES[c.y[0].dtype]}, but the tensor written "
                            f"to has dtype {DTYPES[target.dtype]}; write x = cygrad.{op.name}(x, y), or cast the "
                            f"operand")
        if c.workspace_bytes:
            workspace = allocate(c.workspace_bytes, WORKSPACE)
            c.workspace = workspace.data
        for i in range(1, c.n_out):
            buffers[i] = allocate_for(c.y[i].layout, c.y[i].dtype, OTHER)
            c.y[i].data = buffers[i].data
            made += 1
        lay.decref(c.y[0].layout)
        c.y[0].layout = lay.incref(target.layout)
        c.y[0].data = target.buffer.data + target.layout.offset * itemsize(target.dtype)
        if wanted:
            buffers[0] = target.buffer
            node = record_node(op, x, n, &c, buffers, attributes, wanted, f)
            put = put_node(target)
            if put is None: follow(target, node, 0)
        op.forward(&c)
        target.buffer.version += 1
        if f.anomaly: remember_write(target.buffer)
        if node is not None:
            s = slots_of(node)
            for i in range(node.n_slots):           # what it keeps of the result is the result
                if s[i].source == OWN: s[i].version = target.buffer.version
            if checksums.checking: checksums.remember(node)
            written(target, node, 0, put)
            if f.pack != NULL: pack(node, f)
    finally:
        for i in range(MAX_OUTPUTS):
            if c.y[i].layout != NULL: lay.decref(c.y[i].layout)
        for i in range(1, made + 1): drop(buffers[i])
        if workspace != NULL: drop(workspace)
    return 0


cdef int follow(Tensor t, Node node, int nr) except -1:
    """An accumulator that keeps the gradient of `t` goes with it to the node where `t` will stand."""
    cdef Leaf leaf
    if t._node is None or t._node.op is None: return 0
    for _, leaf in kept_of(t._node):
        if leaf.tensor == <void*>t: keep_for(node, nr, leaf)
    return 0


cdef void extent(const Array* a, uintptr_t* first, uintptr_t* last) noexcept:
    """The addresses of the lowest and the highest element."""
    cdef int d
    cdef Py_ssize_t reach
    first[0] = last[0] = <uintptr_t>a.data
    for d in range(a.layout.ndim):
        reach = (a.layout.shape[d] - 1) * a.layout.strides[d] * itemsize(a.dtype)
        if reach < 0: first[0] += reach
        else: last[0] += reach


cdef bint overlap(Operand* x, Tensor target) except -1:
    """Whether an operand lies across the target in another buffer: two tensors may share one NumPy array."""
    cdef Array y = array_of(target)
    cdef uintptr_t first, last, y_first, y_last
    if x.buffer == NULL or not (x.buffer.flags | target.buffer.flags) & EXTERNAL: return False
    if x.array.layout.size == 0 or y.layout.size == 0: return False
    extent(&x.array, &first, &last)
    extent(&y, &y_first, &y_last)
    return first < y_last + itemsize(y.dtype) and y_first < last + itemsize(x.array.dtype)


cdef bint must_keep(Operator op, Operand* x, int n, object attributes, uint64_t wanted, int i) except -1:
    """Whether backward of an operation that overwrites its input `i` needs what was there."""
    cdef Call c
    cdef Array inline_[N_INLINE]
    cdef int k
    if not wanted: return False
    for k in range(n): inline_[k] = x[k].array
    c.x = inline_
    c.n_in, c.n_out, c.hidden, c.wanted, c.attributes = n, 1, 0, wanted, <void*>attributes
    return (op.keeps(&c, wanted) >> i) & 1


cdef int check_family(Tensor t, int held) except -1:
    """That every tensor on the memory of `t`, which `held` operands hold too, can learn of a recorded write to it."""
    if t.detached and t.buffer.holders > 1 + held:
        raise InplaceError(
            f"this tensor of shape {t.shape} is detached, by detach() or as a view taken outside record(), and shares "
            f"its memory with others: they would not know of a recorded write to it; write to a copy()")
    t.detached = False
    if t.view: check_place(t)
    return 0


cdef bint on_leaf(Tensor t) except -1:
    """Whether a variable is on the memory of `t`, or was there when `t` was taken as a view of it."""
    if t.buffer.parameters: return True
    if not t.view or not t._tracked or t.base.node is None or t.base.node.op is not None: return False
    return (<Leaf>t.base.node).req != NULL_REQ


cdef bint given(Tensor t, tuple inputs) noexcept:
    """Whether a Function's forward was given `t`, which it may write to and mark as dirty."""
    for x in inputs:
        if x is t: return True
    return False


cdef int check_writable(Tensor t, Flags* f) except -1:
    cdef int d = lay.repeated(t.layout)
    current(t)
    if t.buffer.flags & READONLY:
        raise ValueError(f"this tensor of shape {t.shape} lies over read-only memory and cannot be written; copy() it "
                         f"first")
    if d >= 0:
        raise ValueError(f"this tensor of shape {t.shape} repeats its elements (broadcast in dimension {d}) and cannot "
                         f"be written; copy() it first")
    if f.recording and on_leaf(t):
        what = "a leaf variable" if is_variable(t) else "a view of a leaf variable"
        raise InplaceError(f"{what} of shape {t.shape} was to be written in place while recording; write inside "
                           f"pause() or no_grad(), or make a new tensor")
    if not f.recording and is_result(t) and not (f.inputs != NULL and given(t, <tuple>f.inputs)):
        raise InplaceError(f"this result of {t._node.name()}, of shape {t.shape}, belongs to a graph and was to be "
                           f"written outside record(): its gradient would not know; write to its detach() instead")
    return 0


cdef object apply_inplace(Operator op, Tensor target, other, attributes):
    """target = op(target, other), written over target; returns target."""
    cdef Operand o[2]
    other = plain_operand(other)
    ready(target)
    give_tensor(&o[0], target)
    give_plain(&o[1], other)
    run_into(op, o, 2, attributes, target)
    return target


late_bound.apply_inplace = <apply_inplace_t>apply_inplace
