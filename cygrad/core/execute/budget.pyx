"""Budgets: before the pool takes memory that an open budget does not have, values that nothing but the slots of nodes
keeps are evicted. Their recipes make them again (recipes.pxd).

Which value goes first, the plan of the step says (following.pyx). Without one, or when that is not enough, it is the
rule of dynamic tensor rematerialization (Kirisame et al., 2021, arXiv:2006.09616): the one with the least work to make
it again, what was evicted before it and would have to be made included, for each byte and for each operation since it
was last used. With a Spiller, there is no plan, and the work is that of the cheaper way: to make the value again, or to
write it and to read it, in units of the time that recipes have taken for theirs. What will be evicted next is written
before memory is short."""

import os

from libc.stdint cimport uint64_t

from cygrad.core.execute.following cimport Follower
from cygrad.core.execute.recipes cimport (
    Observer, Recipe, RecipeScope, Value, backward_work, candidates, evict, executed_seconds, executed_work,
    is_evictable, n_candidates,
)
from cygrad.core.execute.spills cimport Spiller
from cygrad.core.graph.packed cimport set_packing
from cygrad.core.graph.tensor cimport next_number
from cygrad.core.graph.trace cimport refuse_trace
from cygrad.core.late_bound cimport late_bound, make_room_t
from cygrad.core.source cimport doing, where
from cygrad.core.store.buffer cimport counters
from cygrad.core.thread_state cimport RECIPES, Flags, flags

from cygrad.core.errors import MemoryLimitError
from cygrad.core.store.buffer import set_bounded, stats

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    DEPTH = 64              # recipes that the price of a value counts at most
    SAMPLE = 512            # candidates that are compared for one eviction
    QUEUE = 16 << 20        # bytes that are written before memory is short by them
    SHARED = 8              # followers that are kept for handles to come

cdef double NEVER = 1e300   # the price of what cannot be made again
cdef double TYPICAL = 1e-9  # seconds for a unit of work, and
cdef double ASSUMED = 1e7   # so many units, of which that is the time before any is measured

cdef list budgets = []      # that are open, in any thread
cdef dict followers = {}    # of the last handles: (file, line that made them, bytes) -> Follower


def smallest_budget():
    """The smallest budget that this thread has open, or None."""
    cdef Budget b, found = None
    for b in budgets:
        if b.thread == PyThread_get_thread_ident() and (found is None or b.nbytes <= found.nbytes): found = b
    return found


cdef Follower follower_for(size_t nbytes):
    """The Follower of the last handle that the same line of the program has made, so that a scope for each step follows
    the steps before, or a new one."""
    filename, line, _ = where()
    key = filename, line, nbytes
    found = followers.pop(key, None) or Follower()
    followers[key] = found
    if len(followers) > SHARED: del followers[next(iter(followers))]
    return found


cdef class Budget:
    def __cinit__(self, size_t nbytes=0, Spiller spiller=None):
        self.nbytes, self.spiller = nbytes, spiller
        if spiller is None: self.follower = follower_for(nbytes)

    cdef int open(self) except -1:
        """Bound the live bytes from now on. Raises MemoryLimitError if more are live already."""
        cdef Flags* f = flags()
        refuse_trace("memory.budget()")
        if counters.live > self.nbytes:
            raise MemoryLimitError(f"memory.budget of {self.nbytes:,} bytes: {counters.live:,} bytes are live already "
                                   f"({live_by_category()}); free tensors (memory.why lists the holders), or raise the "
                                   f"budget to more than that", 0, self.nbytes, 0)
        self.region = RecipeScope(strong=True)
        if self.spiller is not None: self.region.spiller, self.spiller.bound = self.spiller, self.nbytes
        else:
            if self.follower.used: self.follower = Follower()       # (by another handle of the same line)
            self.follower.used = True
            self.follower.now.before += executed_work - self.follower.left      # (others have done it since)
            self.follower.begin()
        if self.region.observer is None:
            self.region.observer = self.follower if self.follower is not None else Observer()
        self.before = <Packing>f.pack if f.pack != NULL else None
        self.thread, self.floor = PyThread_get_thread_ident(), counters.live
        self.began, self.ran = backward_work, 0
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
        self.ran = backward_work - self.began
        if self.spiller is None: self.follower.left, self.follower.used = executed_work, False
        else:
            self.spiller.bound = 0
            self.spiller.forget_ahead()
        if not budgets: set_bounded(False)
        return 0

    @property
    def recomputed(self):
        """(recipes of its values that were executed, their share of all other work, forward and backward)"""
        cdef double work
        if self.region is None: return 0, 0.0
        work = self.region.work + (self.ran or backward_work - self.began)
        return int(self.region.repeated), self.region.repeated_work / work if work else 0.0

    @property
    def planned(self):
        """Follower.planned, or None"""
        if self.region is None or not isinstance(self.region.observer, Follower): return None
        return (<Follower>self.region.observer).planned


cdef str live_by_category():
    return ", ".join([f"{name} {n:,}" for name, n in stats()["by_category"].items() if n])


cdef Budget smallest():
    """The smallest budget that is open in any thread, or None."""
    cdef Budget b, found = None
    for b in budgets:
        if found is None or b.nbytes < found.nbytes: found = b
    return found


cdef int make_room(size_t nbytes) except -1:
    """Evict values until `nbytes` more are within all open budgets. Raises MemoryLimitError if that cannot be."""
    cdef Budget b, least = smallest()
    cdef Value v
    cdef size_t pinned = 0
    cdef bint known = False, spills = False
    for b in budgets:
        if counters.live + nbytes - b.region.observer.sample(nbytes) > b.floor:
            if not known: pinned, known = counters.live - evictable_bytes(), True
            b.floor = max(b.floor, pinned + nbytes)
    if least is None: return 0
    least.region.observer.evict_planned(nbytes, least.nbytes)
    while counters.live + nbytes > least.nbytes:
        v = cheapest(False, &spills)
        if v is not None: evict(v, spills)
        elif not forget_ahead(): raise_over(least, nbytes)
        least = smallest()                          # (a listener to events may let other threads run)
        if least is None: return 0
    return write_behind(least, nbytes) if least.region.spiller is not None else 0


cdef int write_behind(Budget b, size_t nbytes) except -1:
    """Begin to spill what will be evicted next, if `nbytes` more leave little room."""
    cdef Spiller s = b.region.spiller
    cdef Value v
    cdef bint spills = False
    s.largest = max(s.largest - (s.largest >> 6), nbytes)
    while counters.live + nbytes + QUEUE > b.nbytes and s.queued < QUEUE:
        v = cheapest(True, &spills)
        if v is None or not spills: return 0
        v.begin_to_spill()
    return 0


cdef size_t evictable_bytes() noexcept:
    cdef Budget b
    cdef size_t total = 0
    cdef int k
    for k in range(n_candidates):
        if is_evictable(<Value>candidates[k]): total += (<Value>candidates[k]).held.nbytes
    for b in budgets:
        if b.spiller is not None: total += b.spiller.ahead
    return total


cdef bint forget_ahead() noexcept:
    """Release what was read before it is needed. Returns whether that was anything."""
    cdef Budget b
    cdef bint any_released = False
    for b in budgets:
        if b.spiller is not None and b.spiller.forget_ahead(): any_released = True
    return any_released


cdef Value cheapest(bint unspilled, bint* spills):
    """The next Value to evict, or None, and whether to spill it. With `unspilled`, one that has no copy yet."""
    cdef Value v, best = None
    cdef double score, least = 0
    cdef uint64_t now = next_number()
    cdef int k, step = n_candidates // SAMPLE + 1
    cdef bint by_copy = False
    while True:
        for k in range(now % step, n_candidates, step):
            v = <Value>candidates[k]
            if not is_evictable(v) or not v.held.nbytes or unspilled and v.spilled is not None: continue
            score = price(v, &by_copy) / (<double>v.held.nbytes * (now - v.used + 1))
            if best is None or score < least: best, least, spills[0] = v, score, by_copy
        if best is not None or step == 1: return best
        step = 1                                    # (none in the sample)


cdef double price(Value v, bint* by_copy) noexcept:
    """The work to have a Value again, and whether a copy of it is the cheaper way."""
    cdef double work = work_to_make(v) if v.recipe is not None else NEVER, copied = NEVER
    if v.spilled is not None and v.spilled.is_written(): copied = v.spilled.cost() / seconds_of_work()
    elif v.can_spill(): copied = v.region.spiller.cost(v.held.nbytes) / seconds_of_work()
    by_copy[0] = copied <= work
    return min(copied, work)


cdef double seconds_of_work() noexcept:
    """The time of recipes, for a unit of their work."""
    return (TYPICAL * ASSUMED + executed_seconds) / (ASSUMED + executed_work)


cdef double work_to_make(Value v) noexcept:
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
            if v.memory() != NULL: continue
            if v.spilled is not None: total += v.spilled.cost() / seconds_of_work()
            elif v.recipe is not None:
                waiting[n] = <void*>v.recipe
                n += 1
    return total


cdef int raise_over(Budget b, size_t nbytes) except -1:
    cdef size_t pinned = counters.live
    b.floor = max(b.floor, pinned + nbytes)
    what = f" ({live_by_category()})" if pinned else ""
    operation, (filename, line, _) = doing(flags()) or "tensor", where()
    place = f"{filename}:{line}" if filename else ""
    trouble = b.region.spiller.trouble() if b.region.spiller is not None else ""
    raise MemoryLimitError(
        f"memory.budget of {b.nbytes:,} bytes: {operation}{place and ' at ' + place} requested {nbytes:,} bytes, but "
        f"{pinned:,} are live that cannot be evicted{what}: parameters, gradients, what Python names refer to, and "
        f"what the running operation reads; the budget must be at least {pinned + nbytes:,} bytes here{trouble}",
        nbytes, b.nbytes, b.nbytes - min(pinned, b.nbytes), operation, place)


def _after_fork():
    """The child of a fork has none of the budgets of other threads."""
    global budgets
    budgets = [b for b in budgets if (<Budget>b).thread == PyThread_get_thread_ident()]
    if not budgets: set_bounded(False)


late_bound.make_room = <make_room_t>make_room
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
