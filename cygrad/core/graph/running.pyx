"""Which backward passes run. Passes have numbers, so that what a parent's other threads had begun when it forked counts
for nothing in the child."""

import os

from cygrad.core.thread_state cimport flags

cdef extern from "cygrad/platform.h":
    size_t cg_stack_left()

cdef enum:
    STACK_NEEDED = 96 << 10     # bytes of C stack that a pass with its hooks and formulas may take, with room to raise

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


cdef int check_stack() except -1:
    """That there is stack for one more call that runs a user's code inside ours, such as a backward in a Function's
    backward. Python counts its own frames, but does not know how much of the C stack ours take."""
    if cg_stack_left() < STACK_NEEDED:
        raise RecursionError("the C stack is used up: Functions, hooks or backward passes call each other too deeply; "
                             "run this in a thread with a larger stack (threading.stack_size), or nest less")
    return 0


cdef void end() noexcept:
    """A pass of this thread has ended."""
    global count
    count -= 1
    flags().passes -= 1


cdef bint any_runs() noexcept:
    """Whether a pass runs now, in any thread."""
    return count > 0


cdef bint runs(uint64_t number) noexcept:
    """Whether a pass of this number was begun in this process (0: none)."""
    return number >= first


def _after_fork():
    global first, count
    first = last + 1
    count = flags().passes                          # those of other threads do not run here


if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
