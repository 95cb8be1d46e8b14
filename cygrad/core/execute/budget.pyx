"""Budgets: before the pool takes memory that an open budget does not have, values that nothing but the slots of nodes
keeps are evicted. Their recipes make them again (recipes.pxd).

Which value goes first is the rule of dynamic tensor rematerialization (Kirisame et al., 2021, arXiv:2006.09616): the
one with the least work to make it again, what was evicted before it and would have to be made included, for each byte
and for each operation since it was last used."""

import os

from libc.stdint cimport uint64_t

from cygrad.core.execute.recipes cimport (
    Recipe, Value, backward_work, candidates, executed, executed_work, n_candidates, secure,
)
from cygrad.core.graph.packed cimport set_packing
from cygrad.core.graph.tensor cimport next_number
from cygrad.core.graph.trace cimport refuse_trace
from cygrad.core.late_bound cimport late_bound, make_room_t
from cygrad.core.source cimport doing, where
from cygrad.core.store.buffer cimport EXTERNAL, VIRTUAL, Buffer, counters
from cygrad.core.thread_state cimport RECIPES, Flags, flags

from cygrad.core.errors import MemoryLimitError
from cygrad.core.store.buffer import set_bounded, stats

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    DEPTH = 64              # recipes that the price of a value counts at most
    SAMPLE = 512            # candidates that are compared for one eviction

cdef list budgets = []      # that are open, in any thread


cdef class Budget:
    def __cinit__(self, size_t nbytes=0):
        self.nbytes = nbytes

    cdef int open(self) except -1:
        """Bound the live bytes from now on. Raises MemoryLimitError if more are live already."""
        cdef Flags* f = flags()
        refuse_trace("memory.budget()")
        if counters.live > self.nbytes:
            raise MemoryLimitError(f"memory.budget of {self.nbytes:,} bytes: {counters.live:,} bytes are live already "
                                   f"({live_by_category()}); free tensors (memory.why lists the holders), or raise the "
                                   f"budget to more than that", 0, self.nbytes, 0)
        self.region = RecipeScope(strong=True)
        self.before = <Packing>f.pack if f.pack != NULL else None
        self.thread, self.floor = PyThread_get_thread_ident(), counters.live
        self.first, self.first_work, self.first_backward = executed, executed_work, backward_work
        budgets.append(self)
        set_packing(f, self.region)
        f.inspecting |= RECIPES
        set_bounded(True)
        return 0

    cdef int close(self) except -1:
        """End it. What was evicted can still be made again."""
        cdef Flags* f = flags()
        cdef Budget b
        if self.thread != PyThread_get_thread_ident():
            raise RuntimeError("memory.budget: it was opened in another thread, and only that thread can close it")
        self.abandon()
        if f.pack == <void*>self.region: set_packing(f, self.before)
        for b in budgets:                           # (one that was opened inside and is closed later)
            if b.before is self.region: b.before = self.before
        if f.pack == NULL: f.inspecting &= ~RECIPES
        self.region.close()
        return 0

    cdef int leave(self) except -1:
        """Nothing can close it any more: close it, or what is possible in another thread."""
        return self.close() if self.thread == PyThread_get_thread_ident() else self.abandon()

    cdef int abandon(self) except -1:
        """It bounds nothing any more."""
        budgets.remove(self)
        if not budgets: set_bounded(False)
        return 0

    @property
    def recomputed(self):
        """(recipes that were executed since it was opened, their share of all other work, forward and backward)"""
        cdef double work = self.region.work + backward_work - self.first_backward if self.region is not None else 0
        return int(executed - self.first), (executed_work - self.first_work) / work if work else 0.0


cdef str live_by_category():
    return ", ".join([f"{name} {n:,}" for name, n in stats()["by_category"].items() if n])


cdef int make_room(size_t nbytes) except -1:
    """Evict values until `nbytes` more are within all open budgets. Raises MemoryLimitError if that cannot be."""
    cdef Budget b, least = None
    cdef Value v
    cdef size_t pinned = 0
    cdef bint known = False
    for b in budgets:
        if least is None or b.nbytes < least.nbytes: least = b
        if counters.live + nbytes > b.floor:
            if not known: pinned, known = counters.live - evictable_bytes(), True
            b.floor = max(b.floor, pinned + nbytes)
    if least is None: return 0
    while counters.live + nbytes > least.nbytes:
        v = cheapest()
        if v is None: raise_over(least, nbytes)
        if secure(v): v.drop()
        else: v.stuck = True
    return 0


cdef bint is_evictable(Value v) noexcept:
    """Whether only slots keep the memory of a Value. (Slots that need the signs alone shrink it.)"""
    cdef Buffer* b = v.held
    return v.pins == 0 and not v.stuck and b.holders == 1 + b.signs and not b.flags & (EXTERNAL | VIRTUAL)


cdef size_t evictable_bytes() noexcept:
    cdef size_t total = 0
    cdef int k
    for k in range(n_candidates):
        if is_evictable(<Value>candidates[k]): total += (<Value>candidates[k]).held.nbytes
    return total


cdef Value cheapest():
    """The next Value to evict, or None."""
    cdef Value v, best = None
    cdef double score, least = 0
    cdef uint64_t now = next_number()
    cdef int k, step = n_candidates // SAMPLE + 1
    while True:
        for k in range(now % step, n_candidates, step):
            v = <Value>candidates[k]
            if not is_evictable(v) or not v.held.nbytes: continue
            score = price(v) / (<double>v.held.nbytes * (now - v.used + 1))
            if best is None or score < least: best, least = v, score
        if best is not None or step == 1: return best
        step = 1                                    # (none in the sample)


cdef double price(Value v) noexcept:
    """The work to make a Value again. (It makes no Python object, because the garbage collector could then free
    candidates.)"""
    cdef double total = 0
    cdef void* waiting[DEPTH]   # borrowed: Recipes
    cdef int n = 1, count = 0
    cdef Recipe r
    waiting[0] = <void*>v.recipe
    while n and count < DEPTH:
        n -= 1
        r = <Recipe>waiting[n]
        total += r.work
        count += 1
        for x in r.values:
            if x is None or n == DEPTH: continue
            v = <Value>x
            if v.recipe is None or v.memory() != NULL: continue
            waiting[n] = <void*>v.recipe
            n += 1
    return total


cdef int raise_over(Budget b, size_t nbytes) except -1:
    cdef size_t pinned = counters.live
    b.floor = max(b.floor, pinned + nbytes)
    what = f" ({live_by_category()})" if pinned else ""
    operation, (filename, line, _) = doing(flags()) or "tensor", where()
    place = f"{filename}:{line}" if filename else ""
    raise MemoryLimitError(
        f"memory.budget of {b.nbytes:,} bytes: {operation}{place and ' at ' + place} requested {nbytes:,} bytes, but "
        f"{pinned:,} are live that cannot be evicted{what}: parameters, gradients, what Python names refer to, and "
        f"what the running operation reads; the budget must be at least {pinned + nbytes:,} bytes here",
        nbytes, b.nbytes, b.nbytes - min(pinned, b.nbytes), operation, place)


def _after_fork():
    """The child of a fork has none of the budgets of other threads."""
    global budgets
    budgets = [b for b in budgets if (<Budget>b).thread == PyThread_get_thread_ident()]
    if not budgets: set_bounded(False)


late_bound.make_room = <make_room_t>make_room
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
