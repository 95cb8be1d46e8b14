"""Tensors that give their memory back before they die: free(), and scopes that free what was made in them.

A tensor that was freed becomes, in place, an object of another class whose every use raises; so the check costs nothing
where tensors are alive. What C code still sees of it is an empty tensor over no memory."""

import gc

cimport cython
from cpython.object cimport PyObject, PyObject_GenericGetAttr
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.weakref cimport PyWeakref_NewRef

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport PyObject_GC_UnTrack, Tensor, empty_tensor
from cygrad.core.store.buffer cimport EXTERNAL, READONLY, Buffer, hold
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.source cimport where
from cygrad.kernels.array cimport Layout

from cygrad.core.dtypes import DTYPES
from cygrad.core.late_bound import bind_methods

cdef extern from "Python.h":
    ctypedef struct PyTypeObject
    void Py_SET_TYPE(PyObject*, PyTypeObject*)

cdef Buffer nothing                                 # what all freed tensors lie over; never released
cdef Py_ssize_t zero = 0
cdef Layout* EMPTY = lay.dense(1, &zero)

nothing.data = <char*>&nothing                      # an address, of which no byte is read
nothing.holders = 1
nothing.flags = EXTERNAL | READONLY


# ---- what has been freed ---------------------------------------------------------------------------------------------

cdef int refuse() except -1:
    raise RuntimeError("this tensor was freed, by its free() or at the end of a memory.scope(); make a new one, or "
                       "keep() it in that scope")


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class FreedTensor(Tensor):
    """A tensor that was freed: every use raises, but printing, hashing and freeing it again. (Each of Python's slots
    stands here, since the interpreter asks those without asking for an attribute.)"""

    def __getattribute__(self, name):
        if name != "__class__" and name != "free": refuse()
        return PyObject_GenericGetAttr(self, name)

    def __setattr__(self, name, value):
        refuse()

    def __delattr__(self, name):
        refuse()

    def __repr__(self):
        return "<freed tensor>"

    def __format__(self, spec):
        return "<freed tensor>"

    def __hash__(self):
        return Tensor.__hash__(self)

    def __getbuffer__(self, Py_buffer* view, int wanted):
        refuse()

    def __array_ufunc__(self, *_, **__):
        refuse()

    def __dir__(self):
        refuse()

    def __add__(x, y):
        refuse()

    def __sub__(x, y):
        refuse()

    def __mul__(x, y):
        refuse()

    def __truediv__(x, y):
        refuse()

    def __matmul__(x, y):
        refuse()

    def __mod__(x, y):
        refuse()

    def __floordiv__(x, y):
        refuse()

    def __and__(x, y):
        refuse()

    def __or__(x, y):
        refuse()

    def __xor__(x, y):
        refuse()

    def __lshift__(x, y):
        refuse()

    def __rshift__(x, y):
        refuse()

    def __abs__(self):
        refuse()

    def __invert__(self):
        refuse()

    def __pow__(x, y, modulo):
        refuse()

    def __imatmul__(self, y):
        refuse()

    def __imod__(self, y):
        refuse()

    def __ifloordiv__(self, y):
        refuse()

    def __iand__(self, y):
        refuse()

    def __ior__(self, y):
        refuse()

    def __ixor__(self, y):
        refuse()

    def __ipow__(self, y):
        refuse()

    def __iadd__(self, y):
        refuse()

    def __isub__(self, y):
        refuse()

    def __imul__(self, y):
        refuse()

    def __itruediv__(self, y):
        refuse()

    def __richcmp__(self, y, int op):
        refuse()

    def __neg__(self):
        refuse()

    def __pos__(self):
        refuse()

    def __bool__(self):
        refuse()

    def __float__(self):
        refuse()

    def __int__(self):
        refuse()

    def __index__(self):
        refuse()

    def __len__(self):
        refuse()

    def __iter__(self):
        refuse()

    def __bytes__(self):
        refuse()

    def __copy__(self):
        refuse()

    def __getitem__(self, index):
        refuse()

    def __setitem__(self, index, value):
        refuse()

    def __delitem__(self, index):
        refuse()


cdef int free_memory(Tensor t) except -1:
    """Take the memory, the graph and, of a variable, the gradient from `t`; what else holds those keeps them."""
    empty_tensor(t)                                 # as when it dies
    hold(&nothing)
    t.buffer = &nothing
    t.layout = lay.incref(EMPTY)
    t.rewrites = 0
    t._tracked = t.detached = t.view = False
    if t._node is not None or t.base is not None: PyObject_GC_UnTrack(<PyObject*>t)
    t.base = None
    Py_SET_TYPE(<PyObject*>t, <PyTypeObject*>FreedTensor)       # (of the same size, and static as Tensor is)
    t._node = None                                  # last: the graph that goes with it may run Python
    return 0


def free(Tensor self):
    """Give this tensor's bytes back now; whatever uses it later raises RuntimeError. Of a variable the gradient goes
    too. Raises RuntimeError, and nothing has changed, where others hold the memory: views, backward, arrays, or the
    variable whose .grad it is. (Not to be called while another thread computes with the tensor.)"""
    cdef Buffer* b = self.buffer
    cdef int others = b.holders - 1
    if b == &nothing: return
    if b.gradients or b.optimizer:
        what = "the gradient of a variable; assign None to that .grad" if b.gradients else "the state of a solver"
        raise RuntimeError(f"free: this tensor of shape {self.shape} is {what}")
    if others and flags().capture == NULL:          # (a Replay holds what it captures, and lets go of it afterwards)
        kinds = [(b.saved, "kept for backward"), (b.leases, "lent to arrays or by DLPack"),
                 (others - <int>b.saved - b.leases, "of other tensors (views, detach())")]
        said = ", ".join([f"{n} {kind}" for n, kind in kinds if n > 0])
        raise RuntimeError(f"free: the memory of this tensor of shape {self.shape} would not come back, others hold "
                           f"it: {said}; let go of those first")
    free_memory(self)


# ---- scopes ----------------------------------------------------------------------------------------------------------

cdef str told(Tensor t, place):
    """What an error says of a tensor: its shape and dtype, the operation and the line that made it."""
    made = f", made by {t._node.name()}" if t._node is not None and t._node.op is not None else ""
    return f"{t.shape} {DTYPES[t.dtype]}{made}" + (f" at {place[0]}:{place[1]}" if place[0] else "")


cdef list outliving(list made, set spared):
    """Of what a scope has noted, the pairs (tensor, place) of the tensors that are alive and not spared."""
    cdef list left = []
    for weak, place in made:
        t = weak()
        if type(t) is Tensor and id(t) not in spared: left.append((t, place))
    return left


cdef inline bint owned(Tensor t) noexcept:
    """Whether a variable's gradient or a solver's state is what `t` lies over: it lives as long as those."""
    return t.buffer.gradients or t.buffer.optimizer


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class scope:
    """A scope that frees on exit every tensor made inside it by this thread, whoever refers to it, except what
    `keep(x)` (which returns x) has named, and gradients and solver states, which live as long as their variable or
    solver. A tensor whose memory others hold only loses its own hold. Scopes nest; what an inner one keeps belongs to
    the outer one. In a generator a scope is open while its caller runs too, and frees what that makes.

    With `capped` a tensor that is still referred to on exit and was not kept is an error: the scope frees it as always,
    and raises RuntimeError with the number of such tensors and the shape, the dtype and the line of the first. A name
    of the `with` block refers to its tensor after the block too, so call a function in the block, whose names end with
    it, or `del` them. What a reference cycle alone holds is collected first and does not count. Where the block ends by
    an exception, that one goes on, and nothing is said of tensors."""
    cdef scope outer
    cdef list made              # (weak reference, the line that made it, if that will be asked for)
    cdef list kept
    cdef Py_ssize_t limit       # the length at which dead references are thrown out
    cdef bint capped

    @cython.embedsignature.format("c")
    def __init__(self, capped=False):
        self.capped = capped

    def __enter__(self):
        cdef Flags* f = flags()
        if self.made is not None: raise RuntimeError("this memory.scope() is open already; make one for each with")
        made, kept = [], []
        self.made, self.kept, self.limit = made, kept, 1024
        self.outer = <scope>f.scope if f.scope != NULL else None
        Py_INCREF(self)
        f.scope = <void*>self
        return self

    def keep(self, x):
        """Let the tensor `x` outlive this scope; returns it."""
        if type(x) is not Tensor: raise TypeError(f"keep wants a tensor that is alive, got {type(x).__name__}")
        if self.kept is None: raise RuntimeError("keep: this memory.scope() is not open")
        self.kept.append(x)
        return x

    def __exit__(self, kind=None, value=None, traceback=None):
        cdef Flags* f = flags()
        cdef scope inner = None, outer = self.outer, s = <scope>f.scope if f.scope != NULL else None
        cdef list made = self.made, kept = self.kept, left, still, said = None
        while s is not None and s is not self: inner, s = s, s.outer
        if s is None: raise RuntimeError("a memory.scope() was left that this thread has not entered")
        if inner is not None: inner.outer = outer
        else: f.scope = <void*>outer if outer is not None else NULL     # which was counted when it was entered
        self.made = self.kept = self.outer = None
        Py_DECREF(self)                             # (the scope is left; only what follows asks for memory)
        spared = {id(x) for x in kept}
        left = outliving(made, spared)
        if left and self.capped and kind is None:
            left = None                             # (the collector must not find what this list would hold)
            gc.collect()
            left = outliving(made, spared)
            said = [told(t, place) for t, place in left if not owned(t)]
        left = [t for t, _ in left]
        if outer is not None:
            for x in kept: outer.note(x)
        made = kept = x = t = None
        while left:                                 # variables take their gradients with them: once more for those
            still = []
            for t in left:
                if owned(t): still.append(t)
                else: free_memory(t)
            if len(still) == len(left): break
            left = still
        if not said: return
        first = "; ".join(said[:3]) + ("; ..." if len(said) > 3 else "")
        raise RuntimeError(f"memory.scope(capped=True): tensors made inside outlive it without keep(), {len(said)} in "
                           f"all: {first}; they are freed now; keep() what is to stay, and del the names of the block "
                           f"that refer to the rest")

    cdef int note(self, Tensor t) except -1:
        if len(self.made) >= self.limit:
            self.made = [pair for pair in self.made if pair[0]() is not None]
            self.limit = 2 * len(self.made) + 1024
        self.made.append((PyWeakref_NewRef(t, None), where() if self.capped else None))
        return 0


cdef void note_made(t) noexcept:
    """A tensor was made while its thread has an open scope."""
    try:
        (<scope>flags().scope).note(<Tensor>t)
    except MemoryError:                             # then it lives as long as others refer to it
        pass


late_bound.tensor_made = note_made
bind_methods(Tensor, free=free)
bind_methods(FreedTensor, __new__=staticmethod(Tensor.__new__))      # as of Tensor: nobody makes an empty one
