"""Gradients: as tensors, their sums, and how they arrive in .grad."""

from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT
from libc.stdint cimport uint64_t

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport (
    Gradient, Leaf, Tensor, array_of, drop_gradient, external_gradients, is_tracked, next_number, put_grad,
    ready, lock_grad, share_gradient, sole,
)
from cygrad.core.store.buffer cimport (
    EXTERNAL, GRADIENTS, ZEROS, Buffer, allocate_for, hold, mark_gradient, unmark_gradient,
)
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.core.source cimport refuse_capture
from cygrad.core.graph.construct cimport copy_plain, fresh, new_tensor
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Array, itemsize

cdef driver.Loop* add_loop = driver.find("add")
cdef driver.Loop* copy_loop = driver.find("copy")


cdef Tensor from_gradient(Gradient* g, int dtype):
    """The gradient as a tensor; it takes the hold over, also when it raises."""
    cdef Buffer* b = g.buffer
    unmark_gradient(b)
    g.buffer = NULL
    return new_tensor(b, g.layout, dtype)


cdef int gradient_of(Tensor t, Gradient* g) except -1:
    """A share in the memory of `t`, as a gradient."""
    ready(t)
    hold(t.buffer)
    mark_gradient(t.buffer)
    g.buffer = t.buffer
    g.layout = lay.incref(t.layout)
    return 0


cdef Tensor flowing_in(Tensor t):
    """What a user lets flow into a pass: `t`, or a copy of it where the pass might write to its memory. That is so for
    the memory of a .grad, and for memory of others, over which a .grad may lie too."""
    cdef Buffer* b = t.buffer
    if b.gradients or b.flags & EXTERNAL or (external_gradients and b.leases): return copy_plain(t)
    return t


cdef object as_tensor(const Gradient* g, int dtype, bint graph):
    """A gradient as a tensor that shares its memory; None where none came."""
    cdef Gradient shared
    if g.buffer == NULL: return None
    if graph: return <Tensor><void*>g.buffer
    share_gradient(g, &shared)
    return from_gradient(&shared, dtype)


cdef inline Array lent(const Gradient* g, int dtype) noexcept:
    cdef Array a
    a.data = g.buffer.data + g.layout.offset * itemsize(dtype)
    a.layout, a.dtype = g.layout, dtype
    return a


cdef int add_gradients(Gradient* total, Gradient* g, int dtype) except -1:
    """total += g, written over whichever of the two nobody else holds; takes `g` over."""
    cdef Array a[3]
    cdef Gradient out
    a[0], a[1] = lent(total, dtype), lent(g, dtype)
    if sole(total.buffer, total.layout, total.layout, dtype):
        a[2] = a[0]
        driver.each(add_loop, a)
        drop_gradient(g)
        return 0
    if sole(g.buffer, g.layout, total.layout, dtype):
        a[2] = a[1]
        driver.each(add_loop, a)
        drop_gradient(total)
        total[0] = g[0]
        g.buffer = NULL
        return 0
    out.layout = lay.dense_like(total.layout)
    try:
        out.buffer = allocate_for(out.layout, dtype, GRADIENTS)
    except:
        lay.decref(out.layout)
        raise
    a[2] = lent(&out, dtype)
    driver.each(add_loop, a)
    drop_gradient(total)
    drop_gradient(g)
    total[0] = out
    return 0


cdef int add_tensors(Gradient* total, Gradient* g) except -1:
    """The same under create_graph, where a gradient is a counted Tensor in the place of a buffer."""
    if total.buffer == NULL:
        total[0] = g[0]
        g.buffer = NULL
        return 0
    both = apply2(<Operator>late_bound.add, <object><void*>total.buffer, <object><void*>g.buffer, None)
    Py_DECREF(<object><void*>g.buffer)
    g.buffer = NULL
    Py_DECREF(<object><void*>total.buffer)
    Py_INCREF(both)
    total.buffer = <Buffer*><void*>both
    return 0


cdef bint exchange(Tensor grad, Gradient* g, int dtype) noexcept:
    """Let `grad` take the memory of `g`, which takes its in turn and is dropped, if nobody else sees either; False:
    nothing has changed. It is as if `g` had been copied into `grad`, without the copy. The accumulator and deposit()
    refer to `grad`; with any further reference the old memory may be in use, without the GIL, by another thread's
    operation, or the place of two variables' gradients."""
    cdef Buffer* old = grad.buffer
    if Py_REFCNT(grad) > 2: return False
    if not sole(g.buffer, g.layout, grad.layout, dtype) or not sole(old, grad.layout, grad.layout, dtype): return False
    if grad.base is not None or old.saved or g.buffer.parameters != old.parameters: return False
    swap(grad, g)
    return True


cdef void swap(Tensor grad, Gradient* g) noexcept:
    """Let `grad` have the memory of `g`, and drop its own. Several variables may have `grad`: each is a role."""
    cdef Buffer* old = grad.buffer
    g.buffer.gradients, old.gradients = old.gradients, g.buffer.gradients
    g.buffer.version = old.version + 1
    grad.buffer, grad.rewrites = g.buffer, g.buffer.rewrites
    g.buffer = old
    drop_gradient(g)


cdef int deposit(Leaf leaf, Gradient* g, bint over, uint64_t number) except -1:
    """Overwrite .grad with `g`, or add it; takes `g` over. `number` is the pass that does it."""
    cdef bint locked = lock_grad(leaf, number)
    cdef Tensor grad                                # ours while the kernel runs: another thread may assign x.grad
    cdef Tensor made = None                         # what takes its place once it is whole
    cdef Array a[3]
    try:
        grad = leaf.grad
        if grad is not None and is_tracked(grad):   # it has a graph: not ours to write to
            grad = made = None if over else copy_plain(grad)
        if grad is not None and grad.buffer.flags & ZEROS:
            if grad.buffer.holders == 1 and sole(g.buffer, g.layout, grad.layout, leaf.dtype):
                swap(grad, g)
                return 0
            ready(grad)
        if grad is None:
            if sole(g.buffer, g.layout, leaf.layout, leaf.dtype): return put_grad(leaf, from_gradient(g, leaf.dtype))
            grad = made = fresh(lay.dense_like(leaf.layout), leaf.dtype, GRADIENTS)
            over = True
        a[0] = lent(g, leaf.dtype)
        a[1] = array_of(grad)
        if over and made is None and exchange(grad, g, leaf.dtype): return 0
        if over:
            driver.each(copy_loop, a)
        else:
            a[2] = a[1]
            a[1] = a[0]
            a[0] = a[2]
            driver.each(add_loop, a)
        if made is None: grad.buffer.version += 1
        else:
            put_grad(leaf, made)
            if over: made.buffer.gradients -= 1     # the role that fresh gave; put_grad gave the lasting one
        drop_gradient(g)
        return 0
    finally:
        if locked: leaf.writer = 0


cdef int deposit_tensor(Leaf leaf, Tensor t, bint over, uint64_t number) except -1:
    """The same with a gradient that has a graph: .grad becomes it, or the sum, or a copy of what others have too."""
    cdef bint locked = lock_grad(leaf, number)
    try:
        if not over and leaf.grad is not None:
            if flags().capture != NULL: refuse_capture("adding to the .grad of a variable")
            t = apply2(<Operator>late_bound.add, leaf.grad, t, None)
        elif t.buffer.holders > 1 or t.buffer.gradients or t.buffer.flags & EXTERNAL or Py_REFCNT(t) > 2:
            t = apply1(<Operator>late_bound.operators["copy"], t, None)
        return put_grad(leaf, t)
    finally:
        if locked: leaf.writer = 0


cdef class Collected:
    """What an open GradientCollector has collected: the accumulators that gradients have reached in it."""

    def __cinit__(self):
        self.number = next_number()
        self.leaves = []


def open_collected(Collected c or None):
    """Let `c` (or None) collect what this thread's passes write; returns what did before."""
    cdef Flags* f = flags()
    before = None if f.collector == NULL else <object>f.collector
    if c is not None: Py_INCREF(c)                  # the thread counts it: a scope may die without having been closed
    f.collector = <void*>c if c is not None else NULL
    if before is not None: Py_DECREF(before)
    return before
