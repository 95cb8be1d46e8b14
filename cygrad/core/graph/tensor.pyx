"""Tensor, Node and Leaf. core/execute runs operations on them, and core/backward computes their gradients."""

import sys

import numpy as np

cimport cython
from cpython.float cimport PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.release cimport decref_waiting, decref_later
from cygrad.core.graph.running cimport runs
from cygrad.core.store.buffer cimport EXTERNAL, Buffer, mark_gradient, recategorise, unmark_gradient
from cygrad.core.graph.slots cimport Slot, buffer_in, empty_slot
from cygrad.kernels.array cimport Layout, itemsize

from cygrad.core.dtypes import DTYPES
from cygrad.core.late_bound import bind_methods

cdef extern from "cygrad/platform.h" nogil:
    void cg_rest()

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

collected = False

cdef uint64_t recorded = 0                          # the last number given out: nodes are ordered by theirs

cdef uint64_t next_number() noexcept:
    global recorded
    recorded += 1
    return recorded


# ---- Node ------------------------------------------------------------------------------------------------------------

cdef void free_slots(Node n) noexcept:
    """Release everything that `n` saves."""
    cdef Slot* s = slots_of(n)
    cdef int k
    for k in range(n.n_slots): empty_slot(&s[k])


@cython.no_gc
cdef class Extras:
    pass

all_extras = {}
all_lifts = {}

@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc                                       # core/graph/cycles.pyx adds support for the garbage collector
@cython.freelist(1024)
cdef class Node:
    """A recorded operation. `grad_fn` of a tensor is the node that made it."""

    def __dealloc__(self):
        cdef int i
        cdef void* child
        if collected: PyObject_GC_UnTrack(<PyObject*>self)
        if self.after != NULL:
            (<Node>self.before).after = self.after
            (<Node>self.after).before = self.before
        if self.n_slots:
            free_slots(self)
            if self.n_slots > 2: PyMem_Free(self.slot[0].layout)
        if self.layout != NULL:
            if self.n_out > 1:
                for i in range(self.n_out): lay.decref((<Layout**>self.layout)[i])
                PyMem_Free(self.layout)
            else:
                lay.decref(self.layout)
        if self.flags & EXTRAS: del all_extras[<size_t><void*>self]     # may run Python code, so it comes after the
        if self.n_in == 0: return                                       # ring and the buffers refer to the node
        for i in range(self.n_in):                  # a list takes the edges, so a chain is freed without recursion
            child = edge_of(self, i).node
            if child != NULL: decref_later(child)
        if self.n_in > 2: PyMem_Free(self.edge[0])
        decref_waiting()

    def name(self):
        """The operator's name; "leaf" for a variable's accumulator."""
        return "leaf" if self.op is None else self.op.name

    @property
    def next_functions(self):
        """A tuple of (node, output number) for each input; (None, 0) for an input whose gradient is not wanted."""
        cdef Edge e
        cdef list out = []
        for i in range(self.n_in):
            e = edge_of(self, i)
            out.append((None, 0) if e.node == NULL else (<Node>e.node, e.output_nr))
        return tuple(out)

    @property
    def saved_bytes(self):
        """The bytes of the buffers that this node saves for backward. Variables and external memory do not count."""
        cdef Slot* s = slots_of(self)
        cdef Buffer* b
        cdef size_t total = 0
        cdef int j, k
        for k in range(self.n_slots):
            b = buffer_in(&s[k])
            if b == NULL or b.parameters or b.flags & EXTERNAL: continue
            for j in range(k):
                if buffer_in(&s[j]) == b: break
            else:
                total += b.nbytes
        return total

    def __repr__(self):
        return f"<{self.name()} node>"


@cython.no_gc
cdef class Leaf(Node):
    """The accumulator of a variable."""

    def __dealloc__(self):
        PyObject_GC_UnTrack(<PyObject*>self)
        put_grad(self, None)


cdef bint lock_grad(Leaf leaf, uint64_t number) noexcept:
    """Wait until no other thread writes .grad, then lock it: kernels release the GIL, and of two concurrent additions
    one would be lost. Returns False if this thread holds the lock already. Otherwise the caller unlocks by setting
    leaf.writer to 0."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    while runs(leaf.writer):
        if leaf.thread == thread: return False
        with nogil: cg_rest()
    leaf.writer, leaf.thread = number, thread
    return True


external_gradients = 0


cdef int put_grad(Leaf leaf, Tensor grad) except -1:
    """Set the .grad of a variable to `grad`, which may be None. A GradientSlice is set by put_rows()."""
    global external_gradients
    if leaf.grad is not None:
        unmark_gradient(leaf.grad.buffer)
        external_gradients -= leaf.grad.buffer.flags & EXTERNAL
    if grad is not None:
        mark_gradient(grad.buffer)
        external_gradients += grad.buffer.flags & EXTERNAL
    leaf.rows = None
    leaf.grad = grad                                # last: freeing the old one may run Python code


# ---- Tensor ----------------------------------------------------------------------------------------------------------

def _no_shell(cls, *_, **__):
    raise TypeError("Tensor is not instantiated; call cygrad.tensor(data), asarray, zeros, ones or similar")

bind_methods(Tensor, __new__=staticmethod(_no_shell))   # only for Python; Cython calls shell()


cdef Tensor ensure_tensor(x):
    return <Tensor>x if type(x) is Tensor else late_bound.asarray(x)


cdef inline bint is_operand(v) noexcept:
    return type(v) is Tensor or PyFloat_Check(v) or PyLong_Check(v) or isinstance(v, (np.ndarray, np.generic))


cdef object unsupported(x, y):
    """NotImplemented. Raises TypeError if an operand is a tensor of PyTorch, to say how to convert it."""
    cls = getattr(sys.modules.get("torch"), "Tensor", None)
    if isinstance(cls, type) and (isinstance(x, cls) or isinstance(y, cls)):
        raise TypeError("an operand is a tensor of cygrad and the other one of torch; convert one: "
                        "cygrad.from_dlpack(t.detach()) or torch.from_dlpack(x.detach()), which shares memory and has "
                        "no gradient of the other library")
    return NotImplemented


cdef inline object syntax(Operator op, x, y):
    return late_bound.apply2(op, x, y, None) if is_operand(x) and is_operand(y) else unsupported(x, y)


cdef object named(str name, x, y):
    """Call the public function of that name, whose operator is loaded at its first use."""
    return getattr(late_bound.namespace, name)(x, y) if is_operand(x) and is_operand(y) else unsupported(x, y)


cdef object in_place(str name, Tensor x, y):
    if not is_operand(y): return unsupported(x, y)
    return late_bound.apply_inplace(<Operator>late_bound.operators[name], x, y, None)


@cython.no_gc_clear
@cython.freelist(64)
cdef class Base:

    def __dealloc__(self):
        if self.layout != NULL: lay.decref(self.layout)


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
@cython.freelist(1024)
cdef class Tensor:
    """A differentiable array: a view (shape, strides, offset) of a reference-counted buffer."""

    __array_ufunc__ = None                          # so that NumPy arrays defer to Tensor's operators

    def __init__(self, *_, **__):
        _no_shell(Tensor)

    def __dealloc__(self):
        if self.buffer != NULL: empty_tensor(self)

    @property
    def shape(self):
        """The sizes of the dimensions, a tuple."""
        return lay.shape_tuple(self.layout)

    @property
    def strides(self):
        """The distance between neighbours along each dimension, in elements."""
        return lay.strides_tuple(self.layout)

    @property
    def dtype(self):
        """The dtype, a numpy.dtype."""
        return DTYPES[self.dtype]

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.layout.ndim

    @property
    def size(self):
        """The number of elements."""
        return self.layout.size

    @property
    def itemsize(self):
        """The bytes of one element."""
        return itemsize(self.dtype)

    @property
    def nbytes(self):
        """The bytes of the elements: size times itemsize, for views too."""
        return self.layout.size * itemsize(self.dtype)

    def __getbuffer__(self, Py_buffer* view, int wanted): late_bound.lend_buffer(self, view, wanted)

    def __len__(self):
        if self.layout.ndim == 0: raise TypeError("a 0-d tensor has no length")
        return self.layout.shape[0]

    def __add__(x, y): return syntax(<Operator>late_bound.add, x, y)
    def __sub__(x, y): return syntax(<Operator>late_bound.sub, x, y)
    def __mul__(x, y): return syntax(<Operator>late_bound.mul, x, y)
    def __truediv__(x, y): return syntax(<Operator>late_bound.div, x, y)
    def __floordiv__(x, y): return syntax(<Operator>late_bound.operators["floor_divide"], x, y)
    def __mod__(x, y): return syntax(<Operator>late_bound.operators["remainder"], x, y)

    def __divmod__(x, y):
        return (x // y, x % y) if is_operand(x) and is_operand(y) else unsupported(x, y)

    def __and__(x, y): return syntax(<Operator>late_bound.bitwise_and, x, y)
    def __or__(x, y): return syntax(<Operator>late_bound.bitwise_or, x, y)
    def __xor__(x, y): return syntax(<Operator>late_bound.bitwise_xor, x, y)
    def __lshift__(x, y): return named("bitwise_left_shift", x, y)
    def __rshift__(x, y): return named("bitwise_right_shift", x, y)
    def __richcmp__(self, y, int op): return syntax(<Operator>late_bound.comparisons[op], self, y)
    def __neg__(self): return late_bound.apply1(<Operator>late_bound.neg, self, None)
    def __abs__(self): return late_bound.apply1(<Operator>late_bound.abs, self, None)
    def __invert__(self): return late_bound.apply1(<Operator>late_bound.bitwise_not, self, None)
    def __pos__(self): return self

    def __matmul__(x, y):
        return late_bound.matmul(x, y) if is_operand(x) and is_operand(y) else unsupported(x, y)

    def __pow__(x, y, modulo):
        if modulo is not None: raise TypeError("pow() of a tensor takes no third argument")
        return late_bound.pow(x, y) if is_operand(x) and is_operand(y) else unsupported(x, y)

    def __iadd__(Tensor x, y):
        return late_bound.apply_inplace(<Operator>late_bound.add, x, y, None) if is_operand(y) else unsupported(x, y)

    def __isub__(Tensor x, y):
        return late_bound.apply_inplace(<Operator>late_bound.sub, x, y, None) if is_operand(y) else unsupported(x, y)

    def __imul__(Tensor x, y):
        return late_bound.apply_inplace(<Operator>late_bound.mul, x, y, None) if is_operand(y) else unsupported(x, y)

    def __itruediv__(Tensor x, y):
        return late_bound.apply_inplace(<Operator>late_bound.div, x, y, None) if is_operand(y) else unsupported(x, y)

    def __ifloordiv__(Tensor self, y): return in_place("floor_divide", self, y)
    def __imod__(Tensor self, y): return in_place("remainder", self, y)

    def __hash__(self):
        return <Py_hash_t>(<size_t><void*>self >> 4)    # by identity: == is elementwise

    def __repr__(self):
        return late_bound.repr(self)

    def __float__(self): return float(self.item())
    def __int__(self): return int(self.item())
    def __bool__(self): return late_bound.truth(self)
    def __index__(self): return late_bound.index(self)

    def __getitem__(self, index):
        return late_bound.getitem(self, index)

    def __setitem__(self, index, value):
        late_bound.setitem(self, index, value)

    def __iter__(self):
        if self.layout.ndim == 0: raise TypeError("a 0-d tensor cannot be iterated over")
        getitem = late_bound.getitem       # (not a generator function, which would raise only at the first next)
        return (getitem(self, i) for i in range(self.layout.shape[0]))


cdef void release_accumulator(Tensor t) noexcept:
    """Called before a tensor that may have an accumulator is freed. Disconnect the accumulator, release its gradient,
    and uncount the variable in its buffer."""
    cdef Leaf leaf = None
    if t._node.op is None: leaf = <Leaf>t._node
    else:
        for _, kept in (<Extras>all_extras[<size_t><void*>t._node]).kept or ():     # (tensors can share a position)
            if (<Leaf>kept).tensor == <void*>t: leaf = <Leaf>kept
    if leaf is None or leaf.tensor != <void*>t: return
    leaf.tensor = NULL
    put_grad(leaf, None)                            # after create_graph, its graph refers to the leaf: a cycle
    if t._tracked and t._node.op is None:
        t.buffer.parameters -= 1
        if t.buffer.parameters == 0 and t.buffer.holders > 1: recategorise(t.buffer)
