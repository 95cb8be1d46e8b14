"""run(): the one way every operation goes. Infer the result, allocate it, compute it and, if the thread records and an
input is tracked, make a node. Replays (core/execute/replay.pyx) call infer and forward of the same operators without it."""

import numpy as np

from cpython.bool cimport PyBool_Check
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsDouble, PyLong_Check
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from cygrad.core.late_bound cimport apply1_t, apply2_t, late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.dtypes cimport default_dtype, promote
from cygrad.core.graph.operator cimport (
    MAX_INPUTS, MAX_OUTPUTS, N_INLINE, OUTPUT, SIGNS_ALONE, Call, Operator, input_bit,
)
from cygrad.core.graph.tensor cimport (
    Node, Tensor, attach, ensure_tensor, fill, is_tracked, ready, shell,
)
from cygrad.core.store.buffer cimport GRAPHLESS, OTHER, WORKSPACE, ZEROS, Buffer, allocate, allocate_for, drop, hold
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.recording cimport append_to_tape, new_node, set_edge, take_edges, take_outputs, take_slots
from cygrad.core.graph.packing cimport pack
from cygrad.core.graph.slots cimport OWN, Slot, claim_signs, save_buffer, save_number
from cygrad.core.source cimport warn_here
from cygrad.core.graph.views cimport join
from cygrad.kernels.array cimport BOOL, FLOAT32, FLOAT64, INT64, Array, Layout

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import PrecisionWarning
from cygrad.kernels.blas import blas_info

cdef extern from "cygrad/platform.h":
    int lowest_bit "cg_lowest_bit64"(uint64_t mask)


captures = 0
foreign = []


# ---- operands --------------------------------------------------------------------------------------------------------

cdef inline bint plain(v) noexcept:
    """Whether an operand can be read as it is."""
    if type(v) is Tensor: return not (<Tensor>v).buffer.flags & ZEROS
    return PyFloat_Check(v) or PyLong_Check(v)


cdef object plain_operand(v):
    """What a user gave as a tensor or a Python number. This may run Python code, so it comes before any operand of the
    operation is read."""
    if plain(v): return v
    t = ensure_tensor(v)
    ready(t)
    return t


cdef bint convert(list xs) except -1:
    """Convert what is neither a tensor nor a number, in place; whether there was any: it may have freed the others."""
    cdef Py_ssize_t i
    cdef bint converted = False
    for i in range(len(xs)):
        if plain(xs[i]): continue
        xs[i] = plain_operand(xs[i])
        converted = True
    return converted


cdef int cast_scalar(Operand* o, int dtype) except -1:
    """Write a Python number in the dtype of the operation."""
    v = <object>o.tensor
    o.array.dtype = dtype
    if dtype == FLOAT32:
        (<float*>&o.number)[0] = PyFloat_AS_DOUBLE(v) if PyFloat_Check(v) else PyLong_AsDouble(v)
    elif dtype == FLOAT64:
        o.number = PyFloat_AS_DOUBLE(v) if PyFloat_Check(v) else PyLong_AsDouble(v)
    else:
        try:
            raw = np.array(v, DTYPES[dtype]).tobytes()
        except OverflowError:
            raise OverflowError(f"the number {v} does not fit the dtype {DTYPES[dtype]} of the other operand") from None
        memcpy(&o.number, <const char*>raw, len(raw))
    return 0


cdef list prepare(Operator op, Operand* x, int n):
    """Bring the operands to one dtype: Python numbers are weak, mixed tensors are cast (recorded, like any cast).
    Returns what must stay alive until the operation has run."""
    cdef list alive = None
    cdef int dtype = -1, i
    cdef bint mixed = False
    for i in range(op.n_unpromoted, n):
        if x[i].buffer == NULL: continue
        if dtype < 0: dtype = x[i].array.dtype
        elif dtype != x[i].array.dtype:
            dtype = promote(dtype, x[i].array.dtype)
            mixed = True
    for i in range(op.n_unpromoted, n):
        if x[i].buffer != NULL or dtype >= FLOAT32: continue
        if dtype < 0 or PyFloat_Check(<object>x[i].tensor):
            dtype = default_dtype()
            mixed = True
        elif dtype == BOOL and not PyBool_Check(<object>x[i].tensor):
            dtype = INT64
            mixed = True
    if op.promotes_to_float and dtype < FLOAT32:
        dtype = default_dtype()
        mixed = True
    for i in range(op.n_unpromoted, n):
        if x[i].buffer == NULL: cast_scalar(&x[i], dtype)
        elif mixed and x[i].array.dtype != dtype:
            t = apply1(<Operator>late_bound.operators["cast"], <Tensor>x[i].tensor, dtype)
            if alive is None: alive = []
            alive.append(t)
            release_operand(&x[i])
            give_tensor(&x[i], t)
    return alive


cdef int widened(Operator op, list casts, const Flags* f) except -1:
    """Warn, while recording, that float64 data makes a result float64 though its gradients go to float32."""
    if not op.differentiable or f.node != NULL: return 0
    if not any([is_tracked(<Tensor>t) and (<Tensor>t).dtype == FLOAT64 for t in casts]): return 0
    blas_info()                                     # importing SciPy makes `warnings` forget where it has warned
    warn_here(f"{op.name}: a float32 tensor that gradients flow through meets float64 data, and the result is float64, "
              f"as is what is computed from it; cast the data with astype(\"float32\"), or make the variables float64",
              PrecisionWarning)
    return 0


# ---- running an operation --------------------------------------------------------------------------------------------

cdef int wanted_of(Operand* x, int n, uint64_t* out) except -1:
    """Which inputs are tracked, as a mask."""
    cdef uint64_t wanted = 0
    cdef int i
    for i in range(n):
        if x[i].buffer == NULL: continue
        if is_tracked(<Tensor>x[i].tensor): wanted |= input_bit(i)
    out[0] = wanted
    return 0


cdef bint graphless(const Operand* x, int n) noexcept:
    """Whether an input is a gradient without a graph, or was recorded from one."""
    cdef int i
    for i in range(n):
        if x[i].buffer != NULL and (x[i].buffer.flags & GRAPHLESS or x[i].buffer.gradients): return True
    return False


cdef Node record_node(Operator op, Operand* x, int n, Call* c, Buffer** buffers, object attributes, uint64_t wanted, Flags* f):
    """Make the node of an operation that has run: edges to what made its inputs, slots for what backward needs."""
    cdef Node node = new_node()
    cdef Slot* s
    cdef Layout** layouts
    cdef uint64_t rest, mask = op.keeps(c, wanted)
    cdef bint signs = op.signs or mask & SIGNS_ALONE
    cdef int i, k, count = 0
    mask &= ~SIGNS_ALONE
    take_edges(node, n)
    for i in range(n):
        if x[i].buffer == NULL or not (<Tensor>x[i].tensor)._tracked: continue     # (up to date since wanted_of)
        set_edge(node, i, (<Tensor>x[i].tensor)._node, (<Tensor>x[i].tensor)._output_nr)
    if mask:
        rest = mask
        while rest:
            count += 1
            rest &= rest - 1
        s = take_slots(node, count)
        k = 0
        while mask:
            i = lowest_bit(mask)
            mask &= mask - 1
            if i >= OUTPUT:
                i -= OUTPUT
                save_buffer(&s[k], OWN | i, buffers[i], c.y[i].layout, c.y[i].dtype)
                if signs and not buffers[i].signs and c.y[i].layout.dense and c.y[i].layout.offset == 0:
                    claim_signs(&s[k], <void*>node)
            elif x[i].buffer == NULL: save_number(&s[k], i, x[i].number, c.x[i].layout, c.x[i].dtype)
            else: save_buffer(&s[k], i, x[i].buffer, c.x[i].layout, c.x[i].dtype)
            k += 1
    node.op = op
    node.attributes = attributes
    node.dtype = c.y[0].dtype
    layouts = take_outputs(node, c.n_out - c.hidden)
    for i in range(c.n_out - c.hidden): layouts[i] = lay.incref(c.y[i].layout)
    append_to_tape(node, f)
    return node


cdef object run(Operator op, Operand* x, int n, object attributes):
    """Execute: infer, allocate, compute, and note if the thread records and an input is tracked. Returns the output, or
    a tuple of several. Releases the operands, also when it raises."""
    try:
        return execute(op, x, n, attributes)
    finally:
        release_operands(x, n)


cdef int check_count(Operator op, Py_ssize_t n) except -1:
    """That a node can count its inputs."""
    if n > MAX_INPUTS:
        raise ValueError(f"{op.name}: {n} inputs; an operation takes at most {MAX_INPUTS}, so join them in groups")
    return 0


cdef inline object execute(Operator op, Operand* x, int n, object attributes):
    cdef Flags* f = flags()
    cdef Call c
    cdef Array inline_[N_INLINE]
    cdef Buffer* buffers[MAX_OUTPUTS]
    cdef Buffer* workspace = NULL
    cdef uint64_t wanted = 0
    cdef list _alive = None          # what the operands borrow from
    cdef Tensor y
    cdef list out
    cdef Node node = None
    cdef void* around = f.op
    cdef int i, made = 0
    cdef bint lost = False           # a graph that the inputs could have had, for the message of a backward to come
    if op.promotes:
        _alive = prepare(op, x, n)
        if _alive is not None and f.recording: widened(op, _alive, f)
    if f.recording and op.differentiable:
        wanted_of(x, n, &wanted)
        if not wanted: lost = graphless(x, n)
    c.x = inline_
    if n > N_INLINE:
        c.x = <Array*>PyMem_Malloc(n * sizeof(Array))
        if c.x == NULL: raise MemoryError("no memory for the operands")
    for i in range(n): c.x[i] = x[i].array
    c.n_in, c.n_out, c.hidden, c.view, c.wanted = n, 1, 0, -1, wanted
    c.workspace_bytes = 0
    c.workspace = NULL
    c.attributes = <void*>attributes
    for i in range(MAX_OUTPUTS): c.y[i].layout = NULL
    f.op = <void*>op
    try:
        op.infer(&c)
        if c.y[0].dtype < FLOAT32: wanted = 0       # bools and integers carry no gradients
        if c.view >= 0:
            buffers[0] = x[c.view].buffer
            hold(buffers[0])
            made = 1
        else:
            for i in range(c.n_out):
                buffers[i] = allocate_for(c.y[i].layout, c.y[i].dtype, OTHER)
                c.y[i].data = buffers[i].data
                made += 1
            if c.workspace_bytes:
                workspace = allocate(c.workspace_bytes, WORKSPACE)
                c.workspace = workspace.data
            op.forward(&c)
        if captures: capture(f, op, x, n, &c, buffers, attributes)
        y = shell()                                 # here: what fails now still gives the memory back
        if c.n_out - c.hidden > 1: out = [y, *[shell() for _ in range(c.n_out - c.hidden - 1)]]
        if c.view >= 0: join(<Tensor>x[c.view].tensor, y, f.recording)
        if wanted:
            node = record_node(op, x, n, &c, buffers, attributes, wanted, f)
            if f.pack != NULL: pack(node, f)
    except:
        f.op = around
        for i in range(made): drop(buffers[i])
        for i in range(MAX_OUTPUTS):
            if c.y[i].layout != NULL: lay.decref(c.y[i].layout)
        if workspace != NULL: drop(workspace)
        if n > N_INLINE: PyMem_Free(c.x)
        raise
    f.op = around
    if lost: buffers[0].flags |= GRAPHLESS
    if workspace != NULL: drop(workspace)
    if n > N_INLINE: PyMem_Free(c.x)
    for i in range(c.n_out - c.hidden, c.n_out):
        drop(buffers[i])
        lay.decref(c.y[i].layout)
    fill(y, buffers[0], <Layout*>c.y[0].layout, c.y[0].dtype)
    if node is not None: attach(y, node, 0)
    if f.scope != NULL: late_bound.tensor_made(y)
    if c.n_out - c.hidden == 1: return y
    for i in range(1, c.n_out - c.hidden):
        y = <Tensor>out[i]
        fill(y, buffers[i], <Layout*>c.y[i].layout, c.y[i].dtype)
        if node is not None and y.dtype >= FLOAT32: attach(y, node, i)
        if f.scope != NULL: late_bound.tensor_made(y)
    return tuple(out)


cdef int capture(Flags* f, Operator op, Operand* x, int n, Call* c, Buffer** buffers, object attributes) except -1:
    """Let the thread's list take note of an operation, with tensors of its own on operands and results, hidden ones
    too: what a user frees stays, and no other result has its memory while the list lives. A view is noted with None:
    its memory is that of an input. The results of a thread that captures nothing are foreign to those that do. (Hidden
    outputs are made for wanted gradients, so a replay must know which were wanted.)"""
    cdef list outputs = None if c.view >= 0 else []
    cdef list inputs
    cdef int i, k
    if outputs is not None:
        for k in range(c.n_out): outputs.append(on_buffer(buffers[k], c.y[k].layout, c.y[k].dtype))
    if f.capture == NULL:
        if outputs: foreign.extend(outputs)
        return 0
    inputs = [<object>x[i].tensor if x[i].buffer == NULL
              else on_buffer(x[i].buffer, x[i].array.layout, x[i].array.dtype) for i in range(n)]
    (<list>f.capture).append((op, inputs, attributes, outputs, c.wanted if c.hidden else 0))
    return 0


cdef Tensor on_buffer(Buffer* b, const Layout* layout, int dtype):
    """A tensor of which no scope takes note."""
    cdef Tensor t = shell()
    hold(b)
    fill(t, b, lay.incref(layout), dtype)
    return t


# ---- applying from Python --------------------------------------------------------------------------------------------

cdef object apply1(Operator op, x, attributes):
    cdef Operand o[1]
    cdef Tensor t = ensure_tensor(x)
    ready(t)
    give_tensor(&o[0], t)
    return run(op, o, 1, attributes)


cdef object apply2(Operator op, x, y, attributes):
    """An operation of two; at least one is made a tensor."""
    cdef Operand o[2]
    if type(x) is not Tensor and type(y) is not Tensor: x = ensure_tensor(x)
    while not plain(x) or not plain(y): x, y = plain_operand(x), plain_operand(y)
    give_plain(&o[0], x)
    give_plain(&o[1], y)
    return run(op, o, 2, attributes)


cdef object apply3(Operator op, x, y, z, attributes):
    """An operation of three, of which at least one is a tensor."""
    cdef Operand o[3]
    while not plain(x) or not plain(y) or not plain(z):
        x, y, z = plain_operand(x), plain_operand(y), plain_operand(z)
    give_plain(&o[0], x)
    give_plain(&o[1], y)
    give_plain(&o[2], z)
    return run(op, o, 3, attributes)


cdef object apply_list(Operator op, list xs, attributes):
    """An operation of any number; every entry is made a tensor but Python numbers, of which one at least is none."""
    cdef int n, i
    cdef Operand inline_[N_INLINE]
    cdef Operand* o = inline_
    check_count(op, len(xs))
    xs = xs[:]                                      # the caller's may change while Python code runs
    while convert(xs): pass
    n = len(xs)
    if n > N_INLINE:
        o = <Operand*>PyMem_Malloc(n * sizeof(Operand))
        if o == NULL: raise MemoryError("no memory for the operands")
    try:
        for i in range(n): give_plain(&o[i], xs[i])
        return run(op, o, n, attributes)
    finally:
        if n > N_INLINE: PyMem_Free(o)


def apply(Operator op, *inputs, attributes=None):
    """Run an operator on tensors, arrays or numbers with its attributes as it stores them."""
    return apply_list(op, list(inputs), attributes)


late_bound.apply1, late_bound.apply2 = <apply1_t>apply1, <apply2_t>apply2
