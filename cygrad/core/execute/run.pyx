"""Eager execution: the results go to new memory. If the thread records and an input is tracked, a node is recorded."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from cygrad.core.execute.executor cimport (
    Execution, begin, compute, end, infer, place_fresh, place_view, record, set_operands,
)
from cygrad.core.execute.forward cimport (
    drop_frozen, note_call, note_inputs, read_outside, refuse_shape, trace_forward,
)
from cygrad.core.execute.lifting cimport operand_list, reads_lifted
from cygrad.core.execute.nans cimport reads_nan, refuse_nan
from cygrad.core.execute.operands cimport (
    Operand, convert, is_plain, plain_operand, prepare, read_operand, read_tensor, release_operands,
    usable, warn_if_widened,
)
from cygrad.core.execute.recipes cimport begin_recipe, finish_recipe
from cygrad.core.graph.operator cimport MAX_INPUTS, N_INLINE, Call, Operator, input_bit
from cygrad.core.graph.packing cimport pack
from cygrad.core.graph.tensor cimport Node, Tensor, attach, ensure_tensor, fill, is_tracked, shell
from cygrad.core.graph.calls cimport calls_of
from cygrad.core.graph.trace cimport Trace
from cygrad.core.graph.views cimport join
from cygrad.core.late_bound cimport apply1_t, apply2_t, late_bound
from cygrad.core.store.buffer cimport GRAPHLESS
from cygrad.core.thread_state cimport FORWARD, FORWARDS, RECIPES, Flags, flags
from cygrad.kernels.array cimport Layout, has_gradients


ctypedef int (*run_into_t)(Operator op, Operand* x, int n, object attributes, Tensor target) except -1


cdef int wanted_inputs(const Operand* x, int n, uint64_t* out) except -1:
    """Set `out` to the mask of the inputs that are tracked."""
    cdef uint64_t wanted = 0
    cdef int i
    for i in range(n):
        if x[i].buffer == NULL: continue
        if is_tracked(<Tensor>x[i].tensor): wanted |= input_bit(i)
    out[0] = wanted
    return 0


cdef bint is_graphless(const Operand* x, int n) noexcept:
    """Whether an input is a gradient without a graph, or was computed from one."""
    cdef int i
    for i in range(n):
        if x[i].buffer != NULL and (x[i].buffer.flags & GRAPHLESS or x[i].buffer.gradients): return True
    return False


cdef int check_count(Operator op, Py_ssize_t n) except -1:
    """Raise ValueError for more inputs than a node can count."""
    if n > MAX_INPUTS:
        raise ValueError(f"{op.name}: {n} inputs; an operation takes at most {MAX_INPUTS}, so join them in groups")
    return 0


cdef object run(Operator op, Operand* x, int n, object attributes):
    """Execute an operation. Returns the output, or a tuple of several. Releases the operands, also when it raises."""
    cdef Flags* f = flags()
    cdef Execution e
    cdef Call* c = &e.call
    cdef uint64_t wanted = 0
    cdef list _alive = None          # tensors that the operands borrow
    cdef list out
    cdef Tensor y
    cdef Node node = None
    cdef int i, n_visible
    cdef bint graphless = False     # an input comes from a gradient without a graph: for the error of a later backward
    if f.lifting and reads_lifted(x, n, f.lifting):
        try: return late_bound.run_lifted(op, operand_list(x, n), attributes, None)
        finally: release_operands(x, n)
    if f.trace != NULL and n and (<Trace>f.trace).into is not None: return run_redirected(op, x, n, attributes)
    begin(&e, op, attributes, f)
    try:
        if op.promotes:
            _alive = prepare(op, x, n)
            if _alive is not None and f.recording: warn_if_widened(op, _alive)
        if f.recording and op.differentiable:
            wanted_inputs(x, n, &wanted)
            if f.trace != NULL and wanted: drop_frozen(x, n, &wanted)
            if not wanted: graphless = is_graphless(x, n)
            if f.trace != NULL: read_outside(<Trace>f.trace, x, n)
        set_operands(&e, x, n, wanted)
        if f.trace != NULL and op.data_dependent_shape: refuse_shape(op)
        infer(&e, op)
        if not has_gradients(c.y[0].dtype): wanted = 0       # bools and integers carry no gradients
        if c.view >= 0: place_view(&e, x)
        else:
            place_fresh(&e, 0)
            if f.trace != NULL: trace_forward(&e, op, x, attributes, None)
            else: compute(&e, op)
            if f.inspecting >= FORWARD: inspect(&e, op, x, attributes)
        n_visible = c.n_out - c.hidden
        y = shell()                                 # everything that can fail precedes take_result()
        if n_visible > 1: out = [y, *[shell() for _ in range(n_visible - 1)]]
        if c.view >= 0: join(<Tensor>x[c.view].tensor, y, f.recording)
        if wanted:
            node = record(&e, op, x, attributes, wanted)
            if f.pack != NULL: pack(node, f)
        if f.trace != NULL and calls_of(f) is not None:
            note_call(&e, op, note_inputs(&e, x), attributes, node, None)
        if graphless: e.buffers[0].flags |= GRAPHLESS
        take_result(&e, 0, y, node)
        if n_visible == 1: return y
        for i in range(1, n_visible): take_result(&e, i, <Tensor>out[i], node)
        return tuple(out)
    finally:
        end(&e)
        release_operands(x, n)


cdef int inspect(Execution* e, Operator op, const Operand* x, object attributes) except -1:
    """What open scopes do with an operation that has run."""
    if e.thread.inspecting & FORWARDS and e.thread.trace == NULL: refuse_nan(e, op, reads_nan(e))
    if e.thread.inspecting >= RECIPES: finish_recipe(begin_recipe(e, op, x, attributes), e)
    return 0


cdef object run_redirected(Operator op, Operand* x, int n, object attributes):
    """Run an operation inside writes_into(), which is a write to its first operand."""
    cdef Trace t = <Trace>flags().trace
    cdef Tensor target = t.into
    t.into = None
    if x[0].tensor == <void*>target:
        (<run_into_t>t.write)(op, x, n, attributes, target)
        return target
    try: return run(op, x, n, attributes)           # (another one: a cast of an operand)
    finally: t.into = target


cdef inline void take_result(Execution* e, int k, Tensor y, Node node) noexcept:
    """Move output `k` of an execution to the empty tensor `y`."""
    fill(y, e.buffers[k], <Layout*>e.call.y[k].layout, e.call.y[k].dtype)
    e.buffers[k] = NULL
    e.call.y[k].layout = NULL
    if node is not None and has_gradients(y.dtype): attach(y, node, k)
    if e.thread.scope != NULL: late_bound.tensor_made(y)


# ---- applying from Python --------------------------------------------------------------------------------------------

cdef object apply1(Operator op, x, attributes):
    cdef Operand o[1]
    cdef Tensor t = ensure_tensor(x)
    usable(t)
    read_tensor(&o[0], t)
    return run(op, o, 1, attributes)


cdef object apply2(Operator op, x, y, attributes):
    """An operation of two operands, of which at least one becomes a tensor."""
    cdef Operand o[2]
    if type(x) is not Tensor and type(y) is not Tensor: x = ensure_tensor(x)
    while not is_plain(x) or not is_plain(y): x, y = plain_operand(x), plain_operand(y)
    read_operand(&o[0], x)
    read_operand(&o[1], y)
    return run(op, o, 2, attributes)


cdef object apply3(Operator op, x, y, z, attributes):
    """An operation of three operands, of which at least one is a tensor."""
    cdef Operand o[3]
    while not is_plain(x) or not is_plain(y) or not is_plain(z):
        x, y, z = plain_operand(x), plain_operand(y), plain_operand(z)
    read_operand(&o[0], x)
    read_operand(&o[1], y)
    read_operand(&o[2], z)
    return run(op, o, 3, attributes)


cdef object apply_list(Operator op, list xs, attributes):
    """An operation of any number of operands. All but Python numbers become tensors; at least one is not a number."""
    cdef int n, i
    cdef Operand inline_x[N_INLINE]
    cdef Operand* o = inline_x
    check_count(op, len(xs))
    xs = xs[:]                                      # the caller's list may change while Python code runs
    while convert(xs): pass
    n = len(xs)
    if n > N_INLINE:
        o = <Operand*>PyMem_Malloc(n * sizeof(Operand))
        if o == NULL: raise MemoryError("no memory for the operands")
    try:
        for i in range(n): read_operand(&o[i], xs[i])
        return run(op, o, n, attributes)
    finally:
        if n > N_INLINE: PyMem_Free(o)


def apply(Operator op, *inputs, attributes=None):
    """Run an operator on tensors, arrays or numbers. `attributes` are in the form that the operator stores."""
    return apply_list(op, list(inputs), attributes)


late_bound.apply_list = lambda op, xs, attributes: apply_list(op, xs, attributes)
late_bound.apply1, late_bound.apply2 = <apply1_t>apply1, <apply2_t>apply2
