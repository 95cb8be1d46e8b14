"""free(): release a tensor's memory while references to the tensor still exist.

A freed tensor becomes, in place, an object of the class FreedTensor, whose every use raises an error. So live tensors
need no check. To C code that still holds it, it is an empty tensor without memory."""

cimport cython
from cpython.object cimport PyObject, PyObject_GenericGetAttr

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport PyObject_GC_UnTrack, Tensor, empty_tensor
from cygrad.core.graph.trace cimport refuse_trace
from cygrad.core.store.buffer cimport EXTERNAL, READONLY, VIRTUAL, Buffer, hold
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Layout

from cygrad.core.late_bound import bind_methods

cdef extern from "Python.h":
    ctypedef struct PyTypeObject
    void Py_SET_TYPE(PyObject*, PyTypeObject*)

cdef Buffer nothing                                 # the buffer of all freed tensors; never released
cdef Py_ssize_t zero = 0
cdef Layout* EMPTY = lay.dense(1, &zero)

nothing.data = <char*>&nothing                      # a valid address; no byte of it is read
nothing.holders = 1
nothing.flags = EXTERNAL | READONLY


cdef int refuse() except -1:
    raise RuntimeError("this tensor was freed, by its free() or at the end of a memory.scope(); make a new one, or "
                       "keep() it in that scope")


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class FreedTensor(Tensor):
    """A freed tensor. Every use raises, except printing, hashing and freeing it again. The class defines each of
    Python's slots, because the interpreter calls a slot without looking up an attribute."""

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

    def __divmod__(x, y):
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
    """Drop the memory and the graph of `t`, and the gradient of a variable. Other holders keep theirs."""
    empty_tensor(t)                                 # as in its __dealloc__
    hold(&nothing)
    t.buffer = &nothing
    t.layout = lay.incref(EMPTY)
    t.rewrites = 0
    t._tracked = t.detached = t.view = False
    if t._node is not None or t.base is not None: PyObject_GC_UnTrack(<PyObject*>t)
    t.base = None
    Py_SET_TYPE(<PyObject*>t, <PyTypeObject*>FreedTensor)       # of the same size, and static as Tensor is
    t._node = None                                  # last: freeing the graph may run Python
    return 0


def free(Tensor self) -> None:
    """Free this tensor's memory now, and the gradient of a variable. Later uses raise RuntimeError. If the memory has
    other holders (views, backward, arrays, or the variable whose .grad it is), raises RuntimeError and changes nothing.
    Do not call it while another thread computes with the tensor."""
    cdef Buffer* b = self.buffer
    cdef int others = b.holders - 1
    if b == &nothing: return
    if b.gradients or b.optimizer:
        what = "the gradient of a variable; assign None to that .grad" if b.gradients else "the state of a solver"
        raise RuntimeError(f"free: this tensor of shape {self.shape} is {what}")
    if flags().trace != NULL and not b.flags & VIRTUAL: refuse_trace("free() of a tensor from outside")
    if others:
        kinds = [(b.saved, "kept for backward"), (b.leases, "lent to arrays or by DLPack"),
                 (others - <int>b.saved - b.leases, "of other tensors (views, detach())")]
        holders = ", ".join([f"{n} {kind}" for n, kind in kinds if n > 0])
        raise RuntimeError(f"free: the memory of this tensor of shape {self.shape} cannot be freed, because it has "
                           f"other holders: {holders}; release those first")
    free_memory(self)


bind_methods(Tensor, free=free)
bind_methods(FreedTensor, __new__=staticmethod(Tensor.__new__))      # which raises
