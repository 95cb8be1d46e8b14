"""The state of each thread: the recording and training flags, both False in a new thread, and the scopes that are
open."""

cdef extern from *:
    """
    #include "cygrad/platform.h"
    #include "cygrad/flags.h"
    static CG_THREAD_LOCAL struct cg_flags cg_flags;
    """
    Flags cg_flags

cdef object asked = None    # answers is_training() while a program is traced, which then depends on the mode, or None


cdef Flags* flags() noexcept nogil:
    return &cg_flags


def is_recording() -> bool:
    """Whether operations are recorded in this thread."""
    return bool(cg_flags.recording)


def is_training() -> bool:
    """Whether this thread is in train mode. In train mode dropout drops elements and batch norm uses the statistics of
    the batch."""
    return bool(cg_flags.training) if asked is None else asked()


def set_asked(f):
    """Let f() answer is_training() in all threads, or the flag (None)."""
    global asked
    asked = f


def set_recording(bint flag) -> bool:
    """Set this thread's recording flag. Returns the previous value."""
    before, cg_flags.recording = bool(cg_flags.recording), flag
    return before


def set_training(bint flag) -> bool:
    """Set this thread's training flag. Returns the previous value."""
    before, cg_flags.training = bool(cg_flags.training), flag
    return before
