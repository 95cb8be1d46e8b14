"""Which backward passes run. Passes have numbers, so that what a parent's other threads had begun when it forked counts
for nothing in the child."""

import os

from cygrad.core.modes cimport flags

cdef uint64_t last = 0, first = 1
cdef int count = 0              # running passes, nested and in other threads


cdef uint64_t begin(bint* alone) noexcept:
    """A pass begins: its number, and whether it runs alone."""
    global last, count
    alone[0] = count == 0
    count += 1
    flags().passes += 1
    last += 1
    return last


cdef void end() noexcept:
    """A pass of this thread has ended."""
    global count
    count -= 1
    flags().passes -= 1


cdef bint runs(uint64_t number) noexcept:
    """Whether a pass of this number was begun in this process (0: none)."""
    return number >= first


def _after_fork():
    global first, count
    first = last + 1
    count = flags().passes                          # those of other threads do not run here


if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
