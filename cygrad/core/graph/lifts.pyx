"""Lifts (lifts.pxd): levels, tangents and tensors that stand for lanes."""

cimport cython

from cygrad.core.graph.construct cimport view_of
from cygrad.core.graph.tensor cimport fill, shell
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER, Buffer, forget_virtual, new_virtual
from cygrad.core.thread_state cimport Flags, flags

cdef char* NOWHERE = <char*>(<size_t>1 << 54)       # the address of what stands for lanes. No system maps memory there.


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class Level:
    """A level of cg.func, open from its creation until close(). `lanes`: None for one of tangents."""

    @cython.embedsignature.format("c")
    def __init__(self, lanes=None):
        cdef Flags* f = flags()
        self.kind = TANGENTS
        if lanes is not None: self.kind, self.lanes, self.stand_ins = LANES, lanes, {}
        f.lifting += 1
        self.depth, self.open = f.lifting, True

    def close(self):
        """Close the level. What stands for its lanes cannot be read any more."""
        cdef Lift lift
        flags().lifting = self.depth - 1
        self.open = False
        if self.stand_ins is None: return
        for address in list(self.stand_ins):
            lift = <Lift><void*><size_t>address
            if lift.life.buffer != NULL: forget_virtual(lift.life.buffer)
            lift.value = None
        self.stand_ins = None

    def has(self, Tensor t not None):
        """Whether `t` has a lift of this level."""
        return self.value(t) is not None

    def value(self, Tensor t not None):
        """The tangent or the lanes of `t` at this level, or None."""
        cdef Lift lift
        if not t.lifted: return None
        for lift in <list>all_lifts[<size_t><void*>t]:
            if lift.level is self: return lift.value
        return None

    def give(self, Tensor t not None, Tensor value not None):
        """Give `t` a tangent."""
        attach_lift(t, self, value)

    def stand_in(self, Tensor full not None):
        """A tensor that stands for one of the lanes `full`."""
        cdef Lift lift = Lift.__new__(Lift)
        cdef Tensor t = shell()
        cdef Buffer* b
        if self.stand_ins is None or full.layout.ndim == 0:
            raise ValueError(f"stand_in: the level must be open and have lanes, and all of them one dimension more; "
                             f"got a tensor of shape {full.shape}")
        lift.life.data, lift.life.trace, lift.life.storage = NOWHERE, NOWHERE, -1
        lift.life.first_use = lift.life.last_use = -1
        b = new_virtual(&lift.life, OTHER)
        fill(t, b, lay.dense(full.layout.ndim - 1, full.layout.shape + 1), full.dtype)
        lift.level, lift.value = self, full
        self.stand_ins[<size_t><void*>lift] = None
        all_lifts[<size_t><void*>t] = [lift]
        t.lifted = True
        return t


@cython.no_gc
cdef class Lift:
    """What a tensor is at one level."""

    def __dealloc__(self):
        if self.life.buffer != NULL: forget_virtual(self.life.buffer)
        if self.level is not None and self.level.stand_ins is not None:
            self.level.stand_ins.pop(<size_t><void*>self, None)


cdef Lift lift_below(Tensor t, int depth):
    """The lift of `t` of the highest level among the first `depth`, or None."""
    cdef Lift lift, found = None
    for lift in <list>all_lifts[<size_t><void*>t]:      # (in the order of their levels)
        if lift.level.open and lift.level.depth <= depth: found = lift
    return found


cdef int attach_lift(Tensor t, Level level, Tensor value) except -1:
    """Give `t` a tangent, in place of one that it has."""
    cdef Lift lift = Lift.__new__(Lift), old
    cdef list lifts = [old for old in all_lifts.get(<size_t><void*>t, ()) if old.level.open and old.level is not level]
    lift.level, lift.value = level, value
    lifts.append(lift)
    all_lifts[<size_t><void*>t] = lifts
    t.lifted = True
    return 0


cdef Tensor detached(Tensor t, int depth):
    """`t` without its graph, and without tangents at the first `depth` levels."""
    cdef Lift lift = lift_below(t, depth) if t.lifted else None
    cdef Tensor y
    if lift is None:
        y = view_of(t, lay.incref(t.layout))
        y.detached = True
        return y
    y = detached(t if lift.level.kind == TANGENTS else lift.value, lift.level.depth - 1)
    return y if lift.level.kind == TANGENTS else lift.level.stand_in(y)


def depth():
    """The number of levels that operations of this thread see."""
    return flags().lifting


def set_depth(int n):
    """Let operations see the first `n` levels. Returns the number before."""
    before, flags().lifting = flags().lifting, n
    return before
