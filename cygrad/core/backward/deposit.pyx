"""Storing a gradient in .grad: it overwrites .grad, is added to it, or its memory becomes that of .grad."""

from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.gradient_slice cimport (
    GradientSlice, add_rows, dense_rows, joined, put_rows, unshared,
)
from cygrad.core.graph.tensor cimport (
    Leaf, Tensor, is_tracked, next_number, put_grad, ready, sole,
)
from cygrad.core.backward.gradients cimport (
    ROWS, Gradient, add_gradient, drop_gradient, elements_of, into_tensor, is_writable, rows_in, set_rows,
)
from cygrad.core.store.buffer cimport EXTERNAL, GRADIENTS, OTHER, VIRTUAL, ZEROS, Buffer
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.core.graph.construct cimport computed, copy_plain, zeros_like
from cygrad.core.graph.steps cimport READS, WRITES, Arrays, call_loop, elements_in, fill_with_zeros, put_array
from cygrad.core.graph.effects cimport grad_for_rows
from cygrad.core.graph.trace cimport declare_write, raise_version, refuse_trace
from cygrad.core.interop.numpy cimport window
from cygrad.kernels cimport driver

cdef driver.Loop* add_loop = driver.find("add")
cdef driver.Loop* copy_loop = driver.find("copy")


cdef bint exchange(Tensor grad, Gradient* g) noexcept:
    """Copy `g` to `grad` by exchanging memory: if nothing else holds either memory, swap() and return True. The
    accumulator and deposit() refer to `grad`. With a third reference, another thread may be computing with the old
    memory without the GIL, or `grad` may be the gradient of two variables."""
    cdef Buffer* old = grad.buffer
    if Py_REFCNT(grad) > 2: return False
    if not is_writable(g, grad.layout) or not sole(old, grad.layout, grad.layout, g.dtype): return False
    if grad.base is not None or old.saved or g.held.buffer.parameters != old.parameters: return False
    swap(grad, g)
    return True


cdef void swap(Tensor grad, Gradient* g) noexcept:
    """Move the memory of `g` to `grad`, and release that of `grad`. The count of gradient roles, one for each variable
    whose .grad it is, moves with it."""
    cdef Buffer* old = grad.buffer
    cdef Buffer* new = g.held.buffer
    new.gradients, old.gradients = old.gradients, new.gradients
    new.version = old.version + 1
    grad.buffer, grad.rewrites = new, new.rewrites
    g.held.buffer = old
    drop_gradient(g)


cdef int deposit(Leaf leaf, Gradient* g, bint overwrite) except -1:
    """Overwrite .grad with `g`, a DENSE or ROWS gradient, or add `g`, which is empty then. The caller holds
    lock_grad(), and has called touch_leaf()."""
    cdef Flags* f = flags()
    cdef Tensor grad                                # a reference, since another thread may assign x.grad meanwhile
    cdef Tensor made = None                         # a new .grad, assigned when it is complete
    cdef Arrays a
    cdef Gradient sum
    if g.kind == ROWS: return deposit_rows(leaf, g, overwrite)
    if leaf.rows is not None and not overwrite:
        set_rows(&sum, <GradientSlice>leaf.rows)
        add_gradient(g, &sum)                       # (`g` stays DENSE)
    grad = leaf.grad
    if grad is not None and grad.buffer.flags & VIRTUAL: ready(grad)     # (it raises if another thread traces)
    if grad is not None and is_tracked(grad):       # it has a graph, so it must not be written to
        grad = made = None if overwrite else copy_plain(grad)
    if grad is not None and grad.buffer.flags & ZEROS:
        if grad.buffer.holders == 1 and is_writable(g, grad.layout):
            swap(grad, g)
            return 0
        ready(grad)
    if grad is None:
        if is_writable(g, leaf.layout): return put_grad(leaf, into_tensor(g))
        grad = made = computed(lay.dense_like(leaf.layout), leaf.dtype, GRADIENTS)
        overwrite = True
    if overwrite and made is None and exchange(grad, g): return 0
    a.n = 0
    if not overwrite: put_array(&a, elements_in(grad), grad.buffer, READS)
    put_array(&a, elements_of(g), g.held.buffer, READS)
    put_array(&a, elements_in(grad), grad.buffer, WRITES)
    declare_write(f, grad.buffer)
    call_loop(f, ".grad", copy_loop if overwrite else add_loop, &a)
    if made is None: raise_version(f, grad.buffer)
    else:
        put_grad(leaf, made)
        if overwrite: made.buffer.gradients -= 1    # fresh() and put_grad() each counted a role
    drop_gradient(g)


cdef int deposit_rows(Leaf leaf, Gradient* g, bint overwrite) except -1:
    """The same for a ROWS gradient. It becomes .grad, or its rows are added to the slice in .grad, which a new slice
    replaces. A tensor in .grad stays one: its rows are written, unless the variable asks for a slice."""
    cdef Tensor grad = grad_for_rows(leaf, overwrite)
    cdef GradientSlice s = rows_in(g)
    if grad is not None and overwrite and leaf.sparse and not leaf.given: grad = None
    if grad is None:
        s = unshared(s) if overwrite or leaf.rows is None else joined(<GradientSlice>leaf.rows, s)
        drop_gradient(g)
        return put_rows(leaf, s)
    if is_tracked(grad):                            # it has a graph, so it must not be written to
        grad = zeros_like(grad, OTHER) if overwrite else copy_plain(grad)
        add_rows(s, grad)
        put_grad(leaf, grad)
    else:
        if overwrite: clear(grad)
        add_rows(s, grad)
        raise_version(flags(), grad.buffer)
    drop_gradient(g)


cdef int clear(Tensor t) except -1:
    """Fill a .grad of any strides with zeros, including elements that are NaN."""
    if t.layout.dense:
        ready(t)
        declare_write(flags(), t.buffer)
        return fill_with_zeros(t)
    refuse_trace("zeroing a gradient that is not contiguous")
    window(t, True)[...] = 0


cdef int deposit_tensor(Leaf leaf, Tensor t, bint overwrite) except -1:
    """The same for a TENSOR gradient: .grad becomes `t`, the sum, or a copy of `t` if its memory has other holders."""
    if not overwrite and leaf.rows is not None: put_grad(leaf, dense_rows(<GradientSlice>leaf.rows))
    if not overwrite and leaf.grad is not None:
        t = apply2(<Operator>late_bound.add, leaf.grad, t, None)
    elif t.buffer.holders > 1 or t.buffer.gradients or t.buffer.flags & EXTERNAL or Py_REFCNT(t) > 2:
        t = apply1(<Operator>late_bound.operators["copy"], t, None)
    return put_grad(leaf, t)


cdef class Collected:
    """What an open GradientCollector or the passes of one update have collected: the accumulators of the variables that
    received gradients. The first gradient overwrites .grad. With `adds` it does so only for grad_req "write"."""

    def __cinit__(self, adds=False):
        self.adds = adds
        self.number = next_number()
        self.leaves = []


def open_collected(Collected c or None):
    """Make `c`, or None, the collector of this thread's passes. Returns the previous one."""
    cdef Flags* f = flags()
    before = None if f.collector == NULL else <object>f.collector
    if c is not None: Py_INCREF(c)                  # the thread's reference: a scope may be freed without being closed
    f.collector = <void*>c if c is not None else NULL
    if before is not None: Py_DECREF(before)
    return before
