"""Lifts: what a tensor is at the levels of cg.func that are open around it.

jvp() opens a level on which a tensor can have a tangent, vmap() one on which a tensor can have lanes: it stands for one
of them, and all of them are a tensor with one more dimension, the first. Levels nest. A tangent is a tensor of the
levels below its own, and so are the lanes. A tensor that stands for lanes has no memory: its buffer is virtual, so only
operations can read it, and these find the Lift first (core/execute/lifting.pyx)."""

from cygrad.core.graph.tensor cimport Tensor, all_lifts
from cygrad.core.store.buffer cimport Life

cdef enum Kind:
    TANGENTS, LANES

cdef class Level:
    """A level, open in one thread."""
    cdef readonly int depth     # 1 for the outermost one
    cdef readonly int kind
    cdef readonly Py_ssize_t lanes  # how many
    cdef bint open
    cdef dict stand_ins         # address of a Lift of this level -> None, if the level has lanes

cdef class Lift:
    cdef readonly Level level
    cdef readonly Tensor value  # the tangent, or all lanes
    cdef Life life              # that of the buffer of a tensor that stands for lanes


cdef Lift lift_below(Tensor t, int depth)
cdef Tensor detached(Tensor t, int depth)
cdef int attach_lift(Tensor t, Level level, Tensor value) except -1


cdef inline bint is_lifted(Tensor t, int depth) noexcept:
    """Whether `t` has a lift of one of the first `depth` levels."""
    return t.lifted and lift_below(t, depth) is not None
