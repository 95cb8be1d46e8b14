"""Tensor, Node and Operator: the three that know each other, with Leaf beside them.

Executing an operation is core/run.pyx, the backward pass core/engine.pyx; both stand on what is here."""

import numpy as np

cimport cython
from cpython.float cimport PyFloat_Check
from cpython.long cimport PyLong_Check
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.type cimport PyType_Modified

from cygrad.core cimport layout as lay
from cygrad.core.release cimport empty_list, let_go_later
from cygrad.core.running cimport runs
from cygrad.core.memory cimport (
    EXTERNAL, GRADIENTS, ZEROS, Buffer, allocate_for, drop, mark_gradient, recategorise, unmark_gradient,
)
from cygrad.core.slots cimport (
    Slot, buffer_in, elements, empty_slot, has_elements, sign_bits, take_buffer, was_written,
)
from cygrad.kernels.array cimport Array, Layout, itemsize

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError

cdef extern from "cygrad/platform.h" nogil:
    void cg_rest()

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()
    ctypedef struct PyTypeObject:
        PyObject* tp_dict

cdef object converter = None                        # core.bridge.asarray: arrays and lists become tensors

collected = False
EVERY_INPUT = (<uint64_t>1 << (REST + 1)) - 1

cdef uint64_t recorded = 0                          # nodes made so far: their order

cdef uint64_t next_number() noexcept:
    global recorded
    recorded += 1
    return recorded


# ---- Operator --------------------------------------------------------------------------------------------------------

cdef class Operator:
    """The base of all operators. `infer` and `forward` are the value, `keeps` says what backward needs, `formula` is
    the gradient over tensors and `backward`, where there is one, the same over buffers."""

    cdef int infer(self, Call* c) except -1:
        raise NotImplementedError(f"{self.name} has no infer")

    cdef int forward(self, Call* c) except -1:
        raise NotImplementedError(f"{self.name} has no forward")

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept nogil:
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """Declare the stages of backward by add_stage(); without any, the formula computes the gradients."""
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        """Compute what a stage declares, into b.dx and b.temporaries."""
        raise NotImplementedError("an operator that plans a backward has no run_backward")

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        """The gradient of input i as a view of what a stage reads, whose layout is `g`."""
        raise NotImplementedError(f"{self.name} has no gradient_view")

    cdef object formula(self, c, int i, g):
        """The gradient of input `i` as a tensor, from the output's gradient `g` (of several outputs: a tuple) and what
        the context `c` gives: c.input(i), c.output(k), c.attributes, c.shape(i)."""
        raise RuntimeError(f"{self.name} has no gradient")

    def __repr__(self):
        return f"<operator {self.name}>"


# ---- Node ------------------------------------------------------------------------------------------------------------

cdef void free_slots(Node n) noexcept:
    """Let go of all that `n` keeps."""
    cdef Slot* s = slots_of(n)
    cdef int k
    for k in range(n.n_slots): empty_slot(&s[k])


@cython.no_gc
cdef class Extras:
    pass

all_extras = {}

@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc                                       # as far as Cython is concerned: see core/cycles.pyx
@cython.freelist(1024)
cdef class Node:
    """A recorded operation; a tensor shows the one that made it as `grad_fn`."""

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
                for i in range(self.n_out): lay.forget((<Layout**>self.layout)[i])
                PyMem_Free(self.layout)
            else:
                lay.forget(self.layout)
        if self.flags & EXTRAS: del all_extras[<size_t><void*>self]     # what hooks refer to may run as it dies: no
        if self.n_in == 0: return                                       # ring and no buffer names this node by now
        for i in range(self.n_in):                  # a list takes the edges: a chain of any length is freed by a loop
            child = edge_of(self, i).node
            if child != NULL: let_go_later(child)
        if self.n_in > 2: PyMem_Free(self.edge[0])
        empty_list()

    def name(self):
        """The operator's name; "leaf" for a variable's accumulator."""
        return "leaf" if self.op is None else self.op.name

    @property
    def next_functions(self):
        """A tuple of (node, output number), one for each input; (None, 0) where no gradient is wanted."""
        cdef Edge e
        cdef list out = []
        for i in range(self.n_in):
            e = edge_of(self, i)
            out.append((None, 0) if e.node == NULL else (<Node>e.node, e.output_nr))
        return tuple(out)

    @property
    def saved_bytes(self):
        """Bytes of the distinct buffers that this node keeps for backward, leaves and external memory not counted."""
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
    """Wait until nobody else writes .grad, then be who does: kernels release the GIL, and two sums into one place lose
    one. False if this thread does already, further out; else set leaf.writer to 0 when done."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    while runs(leaf.writer):
        if leaf.thread == thread: return False
        with nogil: cg_rest()
    leaf.writer, leaf.thread = number, thread
    return True


external_gradients = 0


cdef int put_grad(Leaf leaf, Tensor grad) except -1:
    """Let the variable's .grad be `grad` (or None)."""
    global external_gradients
    if leaf.grad is not None:
        unmark_gradient(leaf.grad.buffer)
        external_gradients -= leaf.grad.buffer.flags & EXTERNAL
    if grad is not None:
        mark_gradient(grad.buffer)
        external_gradients += grad.buffer.flags & EXTERNAL
    leaf.grad = grad                                # last: the old one may run Python as it dies
    return 0


# ---- gradients and slots ---------------------------------------------------------------------------------------------

cdef void drop_gradient(Gradient* g) noexcept:
    if g.buffer == NULL: return
    g.buffer.gradients -= 1
    if g.buffer.gradients == 0 and g.buffer.holders > 1: recategorise(g.buffer)
    drop(g.buffer)
    lay.forget(g.layout)
    g.buffer = NULL
    g.layout = NULL


cdef int check_slot(Node node, const Slot* s) except -1:
    """That what a slot saves is as it was."""
    return raise_rewritten_at(node, s.layout, s.version, buffer_in(s)) if was_written(s) else 0


cdef int raise_rewritten_at(Node node, const Layout* l, uint32_t kept, const Buffer* b) except -1:
    recorded, written = sockets["lines_of"](node, <size_t>b, b.version)     # "" unless detect_anomaly was on
    gradient = " (a variable's .grad is written by backward itself: keep a copy() of it)" if b.gradients else ""
    raise InplaceError(
        f"{node.name()}{recorded} kept a tensor of shape {lay.shape_tuple(l)} for backward at version {kept}, but it "
        f"has been written in place since{written} and is at version {b.version}; write to a copy(), or compute what "
        f"needs it before the write{gradient}")


# ---- Tensor ----------------------------------------------------------------------------------------------------------
# Arithmetic, and whatever else an operator computes, is plugged in by the floor above (install_operators, install).

cdef Operator plug_add, plug_sub, plug_mul, plug_div, plug_neg, plug_abs, plug_and, plug_or, plug_xor, plug_not
cdef tuple plug_compare                             # in the order of Python's numbers for comparisons
cdef apply1_t apply1
cdef apply2_t apply2
cdef apply_inplace_t apply_inplace
cdef dict sockets = {}


cdef void plug_run(apply1_t one, apply2_t two) noexcept:
    """core/run.pyx plugs itself in: how an operator is applied."""
    global apply1, apply2
    apply1, apply2 = one, two


cdef void plug_inplace(apply_inplace_t inplace) noexcept:
    """... and core/inplace.pyx."""
    global apply_inplace
    apply_inplace = inplace


cdef Operator plugged(str name):
    return sockets[name]


cdef object socket(str name):
    return sockets[name]


def install_operators(**operators):
    """Plug the operators and functions in that Tensor's own syntax needs."""
    global plug_add, plug_sub, plug_mul, plug_div, plug_neg, plug_abs, plug_and, plug_or, plug_xor, plug_not
    global plug_compare
    sockets.update(operators)
    plug_add, plug_sub, plug_mul, plug_div, plug_neg, plug_abs, plug_not, plug_and, plug_or, plug_xor, plug_compare = [
        sockets[name] for name in ("add", "sub", "mul", "div", "neg", "abs", "bitwise_not", "bitwise_and", "bitwise_or",
                                   "bitwise_xor", "comparisons")]


def install(type kind=Tensor, **attributes):
    """Add methods and properties to Tensor, to Node or to another compiled class."""
    for name, value in attributes.items():
        (<dict>(<object>(<PyTypeObject*>kind).tp_dict))[name] = value
    PyType_Modified(kind)


def _no_shell(cls, *_, **__):
    raise TypeError("a Tensor is made by cygrad.tensor(data), asarray, zeros, ones and their like")

install(__new__=staticmethod(_no_shell))            # Python's alone: an empty Tensor is for who fills it at once


def install_bridge(asarray, **functions):
    """Plug in what makes a tensor of an array, a list or a number, and how a tensor is shown and read."""
    global converter
    converter = asarray
    sockets.update(functions)


cdef int plug(str name, f) except -1: sockets[name] = f


cdef Tensor ensure_tensor(x):
    return <Tensor>x if type(x) is Tensor else converter(x)


cdef inline bint is_operand(v) noexcept:
    return type(v) is Tensor or PyFloat_Check(v) or PyLong_Check(v) or isinstance(v, (np.ndarray, np.generic))


cdef inline object syntax(Operator op, x, y):
    return apply2(op, x, y, None) if is_operand(x) and is_operand(y) else NotImplemented


@cython.no_gc_clear
@cython.freelist(64)
cdef class Base:

    def __dealloc__(self):
        if self.layout != NULL: lay.forget(self.layout)


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
@cython.freelist(1024)
cdef class Tensor:
    """An array that gradients flow through: a view (shape, strides, offset) of a counted buffer."""

    __array_ufunc__ = None                          # NumPy arrays leave the arithmetic to us

    def __init__(self, *_, **__):
        _no_shell(Tensor)

    def __dealloc__(self):
        if self.buffer != NULL: empty_tensor(self)

    @property
    def shape(self):
        """The sizes, a tuple."""
        return lay.shape_tuple(self.layout)

    @property
    def strides(self):
        """The steps between neighbours along each dimension, in elements."""
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
        """Bytes of one element."""
        return itemsize(self.dtype)

    @property
    def nbytes(self):
        """Bytes of the elements: size times itemsize (a view owns none of them)."""
        return self.layout.size * itemsize(self.dtype)

    @property
    def version(self):
        """How many times this tensor's memory was written in place (views share the count)."""
        return self.buffer.version

    def __getbuffer__(self, Py_buffer* view, int wanted): lend_buffer(self, view, wanted)

    def __len__(self):
        if self.layout.ndim == 0: raise TypeError("a 0-d tensor has no length")
        return self.layout.shape[0]

    def __add__(x, y): return syntax(plug_add, x, y)
    def __sub__(x, y): return syntax(plug_sub, x, y)
    def __mul__(x, y): return syntax(plug_mul, x, y)
    def __truediv__(x, y): return syntax(plug_div, x, y)
    def __and__(x, y): return syntax(plug_and, x, y)
    def __or__(x, y): return syntax(plug_or, x, y)
    def __xor__(x, y): return syntax(plug_xor, x, y)
    def __richcmp__(self, y, int op): return syntax(<Operator>plug_compare[op], self, y)
    def __neg__(self): return apply1(plug_neg, self, None)
    def __abs__(self): return apply1(plug_abs, self, None)
    def __invert__(self): return apply1(plug_not, self, None)
    def __pos__(self): return self

    def __matmul__(x, y):
        return sockets["matmul_function"](x, y) if is_operand(x) and is_operand(y) else NotImplemented

    def __pow__(x, y, modulo):
        if modulo is not None: raise TypeError("pow() of a tensor takes no third argument")
        return sockets["pow_function"](x, y) if is_operand(x) and is_operand(y) else NotImplemented

    def __iadd__(Tensor self, y):
        return apply_inplace(plug_add, self, y, None) if is_operand(y) else NotImplemented

    def __isub__(Tensor self, y):
        return apply_inplace(plug_sub, self, y, None) if is_operand(y) else NotImplemented

    def __imul__(Tensor self, y):
        return apply_inplace(plug_mul, self, y, None) if is_operand(y) else NotImplemented

    def __itruediv__(Tensor self, y):
        return apply_inplace(plug_div, self, y, None) if is_operand(y) else NotImplemented

    def __hash__(self):
        return <Py_hash_t>(<size_t><void*>self >> 4)    # by identity: == is elementwise

    def __repr__(self):
        return sockets["repr"](self)

    def __float__(self): return float(self.item())
    def __int__(self): return int(self.item())
    def __bool__(self): return sockets["truth"](self)
    def __index__(self): return sockets["index"](self)

    def __getitem__(self, index):
        return sockets["getitem_function"](self, index)

    def __setitem__(self, index, value):
        sockets["setitem_function"](self, index, value)

    def __iter__(self):
        if self.layout.ndim == 0: raise TypeError("a 0-d tensor cannot be iterated over")
        getitem = sockets["getitem_function"]       # (this method is no generator: that would say so at the first next)
        return (getitem(self, i) for i in range(self.layout.shape[0]))


cdef void forget_variable(Tensor t) noexcept:
    """A tensor with a leaf, or with a node that may keep its gradient, dies: if it is the one that the accumulator
    serves, that and the buffer learn of it."""
    cdef Leaf leaf = None
    if t._node.op is None: leaf = <Leaf>t._node
    else:
        for _, kept in (<Extras>all_extras[<size_t><void*>t._node]).kept or ():     # (several may stand at one place)
            if (<Leaf>kept).tensor == <void*>t: leaf = <Leaf>kept
    if leaf is None or leaf.tensor != <void*>t: return
    leaf.tensor = NULL
    put_grad(leaf, None)                            # under create_graph its graph leads back to the leaf: a cycle else
    if t._tracked and t._node.op is None:
        t.buffer.parameters -= 1
        if t.buffer.parameters == 0 and t.buffer.holders > 1: recategorise(t.buffer)
