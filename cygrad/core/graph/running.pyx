"""The running backward passes. Passes are numbered, so that a forked child can ignore passes of the parent's other
threads."""

import os

from cygrad.core.thread_state cimport Flags, flags

cdef extern from "cygrad/platform.h":
    size_t cg_stack_left()

cdef enum:
    STACK_NEEDED = 96 << 10     # bytes of C stack for a pass with its hooks and formulas, and for raising an error

cdef uint64_t last = 0, first = 1
cdef int count = 0              # running passes, nested and in other threads
cdef int traced = 0             # those among them that a trace makes: they write to no .grad that other passes see


cdef uint64_t begin(bint in_trace, bint* alone) noexcept:
    """Begin a pass, `in_trace` or not. Returns its number; `alone` becomes whether no other pass runs on variables that
    it sees."""
    global last, count, traced
    cdef Flags* f = flags()
    alone[0] = (traced == 0) if in_trace else (count == traced)
    traced += in_trace
    count += 1
    f.passes += 1
    last += 1
    return last


cdef uint64_t passes_begun() noexcept:
    """How many passes have begun."""
    return last


cdef int check_stack() except -1:
    """Raise RecursionError if there is too little C stack for another call of user code, such as a backward in a
    Function's backward. Python counts only its own frames, not the C stack that cygrad's frames take."""
    if cg_stack_left() < STACK_NEEDED:
        raise RecursionError("the C stack is exhausted: Functions, hooks or backward passes are nested too deeply; "
                             "run this in a thread with a larger stack (threading.stack_size), or nest less")
    return 0


cdef void end(bint in_trace) noexcept:
    """End a pass of this thread."""
    global count, traced
    cdef Flags* f = flags()
    traced -= in_trace
    count -= 1
    f.passes -= 1


cdef bint only_one_runs() noexcept:
    """Whether no other pass runs beside that of the caller, in any thread, traced or not."""
    return count == 1


cdef bint any_runs() noexcept:
    """Whether a pass runs now, in any thread."""
    return count > 0


cdef bint runs(uint64_t number) noexcept:
    """Whether the pass of this number was begun in this process. 0 is the number of no pass."""
    return number >= first


cdef void forget_traced() noexcept:
    """In the child of a fork: this thread traces nothing."""
    global traced
    traced = 0


def _after_fork():
    global first, count
    first = last + 1
    count = flags().passes                          # passes of other threads do not run in the child


if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)
