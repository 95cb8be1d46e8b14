"""free(): release a tensor's memory while references to the tensor still exist.

A freed tensor becomes, in place, an object of the class FreedTensor, which cannot be read (unreadable.pyx)."""

cimport cython
from cpython.object cimport PyObject

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport PyObject_GC_UnTrack, Tensor, empty_tensor
from cygrad.core.graph.trace cimport refuse_trace
from cygrad.core.graph.unreadable cimport EMPTY, Py_SET_TYPE, Unreadable
from cygrad.core.store.buffer cimport EXTERNAL, READONLY, VIRTUAL, Buffer, hold

from cygrad.core.late_bound import bind_methods

cdef Buffer nothing                                 # the buffer of all freed tensors; never released

nothing.data = <char*>&nothing                      # a valid address; no byte of it is read
nothing.holders = 1
nothing.flags = EXTERNAL | READONLY


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class FreedTensor(Unreadable):
    """A freed tensor. Every use raises, except printing, hashing and freeing it again."""

    allowed = frozenset({"__class__", "free"})

    @staticmethod
    def reason(Tensor x):
        """Why it cannot be read, and what to do."""
        return ("this tensor was freed, by its free() or at the end of a memory.scope(); make a new one, or keep() it "
                "in that scope")

    def __repr__(self):
        return "<freed tensor>"

    def __format__(self, spec):
        return "<freed tensor>"


cdef int free_memory(Tensor t) except -1:
    """Drop the memory and the graph of `t`, and the gradient of a variable. Other holders keep theirs."""
    empty_tensor(t)                                 # as in its __dealloc__
    hold(&nothing)
    t.buffer = &nothing
    t.layout = lay.incref(EMPTY)
    t.rewrites = 0
    t._tracked = t.detached = t.view = t.lifted = False
    if t._node is not None or t.base is not None: PyObject_GC_UnTrack(<PyObject*>t)
    t.base = None
    Py_SET_TYPE(<void*>t, <void*>FreedTensor)       # it has the same size, and is static as Tensor is
    t._node = None                                  # last: freeing the graph may run Python


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
    if not b.flags & VIRTUAL: refuse_trace("free() of a tensor from outside")
    if others:
        kinds = [(b.saved, "kept for backward"), (b.leases, "lent to arrays or by DLPack"),
                 (others - <int>b.saved - b.leases, "of other tensors (views, detach())")]
        holders = ", ".join([f"{n} {kind}" for n, kind in kinds if n > 0])
        raise RuntimeError(f"free: the memory of this tensor of shape {self.shape} cannot be freed, because it has "
                           f"other holders: {holders}; release those first")
    free_memory(self)


bind_methods(Tensor, free=free)
bind_methods(FreedTensor, __new__=staticmethod(Tensor.__new__))      # which raises
