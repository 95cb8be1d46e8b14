"""The parts of gradients.pxd that are not inline."""

from cpython.mem cimport PyMem_Calloc
from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.gradient_slice cimport add_rows, dense_rows, joined
from cygrad.core.graph.tensor cimport Tensor, external_gradients, ready
from cygrad.core.graph.steps cimport READS, WRITES, Arrays, call_loop, put_array
from cygrad.core.store.buffer cimport (
    EXTERNAL, GRADIENTS, Buffer, allocate_for, drop, hold, mark_gradient, recategorise, unmark_gradient,
)
from cygrad.core.execute.run cimport apply2
from cygrad.core.thread_state cimport flags
from cygrad.core.graph.construct cimport copy_plain, new_tensor
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Layout

cdef driver.Loop* add_loop = driver.find("add")


cdef void release_gradient(Gradient* g) noexcept:
    """drop_gradient() of one that is not empty."""
    cdef int kind = g.kind
    cdef Buffer* b = g.held.buffer
    g.kind = NO_GRADIENT                            # first: releasing can run Python code that reads `g`
    if kind != DENSE:
        Py_DECREF(<object>g.held.pyobject)
        return
    b.gradients -= 1
    if b.gradients == 0 and b.holders > 1: recategorise(b)
    drop(b)
    lay.decref(g.layout)


cdef void share_gradient(const Gradient* g, Gradient* out) noexcept:
    """Copy `g` to `out`, which is empty. Both share the memory."""
    out[0] = g[0]
    if g.kind == DENSE:
        hold(g.held.buffer)
        mark_gradient(g.held.buffer)
        lay.incref(g.layout)
    elif g.kind != NO_GRADIENT: Py_INCREF(<object>g.held.pyobject)


cdef int share_tensor(Tensor t, Gradient* g) except -1:
    """Make `g`, which is empty, a DENSE gradient that shares the memory of `t`."""
    ready(t)
    hold(t.buffer)
    mark_gradient(t.buffer)
    set_dense(g, t.buffer, lay.incref(t.layout), t.dtype)


cdef Gradient* new_gradients(int n) except NULL:
    """An array of `n` empty gradients, to be released with PyMem_Free()."""
    cdef Gradient* g = <Gradient*>PyMem_Calloc(n, sizeof(Gradient))
    if g == NULL: raise MemoryError("no memory for the gradients of a node")
    return g


cdef int make_dense(Gradient* g) except -1:
    """Replace a ROWS gradient by a DENSE one."""
    cdef Gradient dense
    share_tensor(dense_rows(rows_in(g)), &dense)
    drop_gradient(g)
    take_gradient(&dense, g)


# ---- as tensors ------------------------------------------------------------------------------------------------------

cdef object as_tensor(const Gradient* g):
    """The gradient as a tensor that shares its memory, a GradientSlice for ROWS, None for NO_GRADIENT."""
    cdef Gradient shared
    if g.kind == NO_GRADIENT: return None
    if g.kind == TENSOR: return tensor_in(g)
    if g.kind == ROWS: return rows_in(g)
    share_gradient(g, &shared)
    return into_tensor(&shared)


cdef Tensor into_tensor(Gradient* g):
    """Convert a DENSE gradient to a tensor, which takes over its holder. `g` is empty then, also after an error."""
    cdef Buffer* b = g.held.buffer
    unmark_gradient(b)
    g.kind = NO_GRADIENT
    return new_tensor(b, g.layout, g.dtype)


cdef Tensor flowing_in(Tensor t):
    """`t`, a tensor that a user passes into a backward pass, or a copy if the pass may write to its memory: that of a
    .grad, or external memory, which a .grad may share."""
    cdef Buffer* b = t.buffer
    if b.gradients or b.flags & EXTERNAL or (external_gradients and b.leases): return copy_plain(t)
    return t


# ---- sums ------------------------------------------------------------------------------------------------------------

cdef int add_gradient(Gradient* total, Gradient* g) except -1:
    """total += g; `g` is empty afterwards."""
    if total.kind == NO_GRADIENT:
        take_gradient(g, total)
        return 0
    if total.kind == DENSE and g.kind == DENSE: return add_dense(total, g)
    if total.kind == ROWS or g.kind == ROWS: return add_sparse(total, g)
    both = apply2(<Operator>late_bound.add, as_tensor(total), as_tensor(g), None)
    drop_gradient(g)
    drop_gradient(total)
    set_tensor(total, <Tensor>both)


cdef int add_sparse(Gradient* total, Gradient* g) except -1:
    """The sum if one of them is ROWS: of two, the rows of both; else a dense sum, which overwrites the dense operand if
    that has no other holder."""
    cdef Gradient sum
    cdef Gradient* rows = g if g.kind == ROWS else total
    cdef Gradient* other = total if g.kind == ROWS else g
    cdef Tensor t
    if other.kind == ROWS: set_rows(&sum, joined(rows_in(total), rows_in(g)))
    elif other.kind == TENSOR:
        set_tensor(&sum, <Tensor>apply2(<Operator>late_bound.add, tensor_in(other), dense_rows(rows_in(rows)), None))
    elif is_writable(other, other.layout):
        t = as_tensor(other)
        add_rows(rows_in(rows), t)
        take_gradient(other, &sum)
    else:
        t = copy_plain(as_tensor(other))
        add_rows(rows_in(rows), t)
        share_tensor(t, &sum)
    drop_gradient(total)
    drop_gradient(g)
    take_gradient(&sum, total)


cdef int add_dense(Gradient* total, Gradient* g) except -1:
    """The sum overwrites an operand that has no other holder, or goes to new memory."""
    cdef Gradient out
    cdef Buffer* b
    cdef Layout* l
    if is_writable(total, total.layout):
        add_elements(total, g, total)
        drop_gradient(g)
        return 0
    if is_writable(g, total.layout):
        add_elements(total, g, g)
        drop_gradient(total)
        take_gradient(g, total)
        return 0
    l = lay.dense_like(total.layout)
    try:
        b = allocate_for(l, total.dtype, GRADIENTS)
    except:
        lay.decref(l)
        raise
    set_dense(&out, b, l, total.dtype)
    add_elements(total, g, &out)
    drop_gradient(total)
    drop_gradient(g)
    total[0] = out


cdef int add_elements(const Gradient* x, const Gradient* y, const Gradient* out) except -1:
    """out = x + y"""
    cdef Arrays a
    a.n = 0
    put_array(&a, elements_of(x), x.held.buffer, READS)
    put_array(&a, elements_of(y), y.held.buffer, READS)
    put_array(&a, elements_of(out), out.held.buffer, WRITES)
    return call_loop(flags(), "add", add_loop, &a)
