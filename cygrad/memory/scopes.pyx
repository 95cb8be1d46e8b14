"""Scopes of memory that hold for the whole process: track, limit, events.

They are compiled so that nothing of Python runs between the first change of a state and the last: Ctrl-C finds a scope
open or closed, never half. Leaving one asks for no memory. What is open stands in lists that do not count it; so a
scope that dies open is closed."""

cimport cython
from libc.stdint cimport int64_t

from cygrad.core.store.buffer cimport counters

from cygrad.core.store import buffer as core
from cygrad.core.errors import described
from cygrad.memory.sizes import read_size

cdef object begin_peak = core.begin_peak, restart_peak = core.restart_peak
cdef object set_limit = core.set_limit, set_listener = core.set_listener

cdef void* tracks = NULL            # the scopes that are open, the one opened last in front
cdef void* limits = NULL
cdef void* listeners = NULL


cdef class Open:

    cdef void link(self, void** place) noexcept:
        self.place, self.outer = place, place[0]
        place[0] = <void*>self

    cdef bint unlink(self) noexcept:
        """Whether it was open."""
        cdef void** p = self.place
        if p == NULL: return False
        while p[0] != <void*>self: p = &(<Open>p[0]).outer
        p[0] = self.outer
        self.place = self.outer = NULL
        return True

    def __dealloc__(self):
        self.unlink()


# ---- the peak --------------------------------------------------------------------------------------------------------

cdef int begin() except -1:
    """Let every open track() have the highest so far, and the counters' peak begin again from what is live."""
    cdef void* p = tracks
    while p != NULL:
        if counters.peak > (<track>p).highest: (<track>p).highest = counters.peak
        p = (<Open>p).outer
    begin_peak()
    return 0


def reset_peak() -> int:
    """Let the peak start again from what is live now; returns what it was, in bytes. Open `track()` scopes keep
    theirs."""
    begin()
    return restart_peak()


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class track(Open):
    """A scope that watches the live bytes: `.peak_bytes`, the most that were live inside it, and `.leaked_bytes`, what
    is live at its end beyond what was at its start. Scopes nest; each sees its own peak, whatever `reset_peak()` does.
    """
    cdef size_t highest
    cdef int64_t leaked, started
    cdef bint used

    @cython.embedsignature.format("c")
    def __init__(self):                             # (without it Cython takes any arguments)
        pass

    def __enter__(self):
        if self.place != NULL:
            raise RuntimeError("this memory.track() is open already; make another one for a scope inside it")
        begin()
        self.highest, self.started, self.used = counters.live, counters.live, True
        self.link(&tracks)
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.place == NULL: raise RuntimeError("memory.track: this scope is not open, it cannot be left")
        if counters.peak > self.highest: self.highest = counters.peak
        self.leaked = <int64_t>counters.live - self.started
        self.unlink()

    cdef int check(self) except -1:
        if not self.used:
            raise RuntimeError("this memory.track() has seen nothing yet; use it as a scope: with "
                               "cygrad.memory.track() as t: ...")
        return 0

    @property
    def peak_bytes(self):
        """The most bytes that were live at once since the scope was entered (while it was open)."""
        self.check()
        return max(self.highest, counters.peak) if self.place != NULL else self.highest

    @property
    def leaked_bytes(self):
        """Live bytes now (at the end of the scope) less those at its start."""
        self.check()
        return <int64_t>counters.live - self.started if self.place != NULL else self.leaked


# ---- the limit -------------------------------------------------------------------------------------------------------

cdef int tightest() except -1:
    """Let the tightest of the open limits hold."""
    cdef void* p = limits
    cdef limit found = None
    while p != NULL:
        if found is None or (<limit>p).most < found.most: found = <limit>p
        p = (<Open>p).outer
    set_limit(None if found is None else found.bytes)
    return 0


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class limit(Open):
    """A scope in which cygrad takes no more than `bytes` from the system, an int or text such as "256MiB": what is live
    and what is cached together, in all threads. When that is reached the cache goes back first; then the operation that
    asks raises MemoryLimitError, before the byte is taken, and all is as it was before that operation. Scopes nest; the
    tightest holds. What was live when the scope was entered is not touched, though it may be more than the limit.
    Raises TypeError or ValueError for what is no size."""
    cdef object bytes
    cdef size_t most
    cdef Py_ssize_t entries

    @cython.embedsignature.format("c")
    def __init__(self, bytes):
        self.bytes = self.most = min(read_size(bytes, "memory.limit"), (1 << 63) - 1)

    def __enter__(self):
        self.entries += 1
        if self.entries == 1: self.link(&limits)
        tightest()
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.entries: raise RuntimeError("memory.limit: this scope is not open, it cannot be left")
        self.entries -= 1
        if self.entries: return
        self.unlink()
        tightest()

    def __dealloc__(self):
        if self.unlink(): tightest()


# ---- events ----------------------------------------------------------------------------------------------------------

def tell(event):
    """Call every open listener, that of the scope opened first before the others."""
    cdef list found = []
    cdef void* p = listeners
    while p != NULL:
        found.append((<events>p).listener)
        p = (<Open>p).outer
    if not found: set_listener(None)
    while found: told(found.pop(), event)


cdef void told(listener, event) noexcept:
    listener(event)                                 # (what it raises is printed: it must not break what it watches)


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc_clear
cdef class events(Open):
    """A scope that logs what happens to memory: a list of (kind, buffer id, bytes, category), kind being "allocate",
    "free" or "category" (the buffer's bytes count under another category from now on). Without one, logging costs
    nothing. Given a function, it is called with each event instead, except those of what it does itself; what it
    raises is printed (sys.unraisablehook) and goes no further. Scopes nest; each sees every event while it is open."""
    cdef list log
    cdef object listener

    @cython.embedsignature.format("c")
    def __init__(self, listener=None):
        if listener is not None and not callable(listener):
            raise TypeError(f"memory.events takes a function, which is called with each event; got "
                            f"{described(listener)}")
        self.log = []
        self.listener = self.log.append if listener is None else listener

    def __enter__(self):
        if self.place != NULL:
            raise RuntimeError("this memory.events() is open already; make another one for a scope inside it")
        self.link(&listeners)
        set_listener(tell)
        return self.log

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.unlink(): raise RuntimeError("memory.events: this scope is not open, it cannot be left")
        if listeners == NULL: set_listener(None)

    def __dealloc__(self):
        if self.unlink() and listeners == NULL: set_listener(None)
