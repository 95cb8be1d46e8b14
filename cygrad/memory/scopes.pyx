"""The memory scopes track, limit and events, which apply to the whole process.

They are compiled, so no Python code runs between the first and the last change of the state: Ctrl-C interrupts before
or after, never in between. Leaving a scope allocates nothing. The lists of open scopes do not count references, so an
open scope can be freed, which closes it."""

cimport cython
from libc.stdint cimport int64_t

from cygrad.core.store.buffer cimport counters

from cygrad.core.store import buffer as core
from cygrad.core.errors import described
from cygrad.core.sizes import read_size

cdef object begin_peak = core.begin_peak, restart_peak = core.restart_peak
cdef object set_limit = core.set_limit, set_listener = core.set_listener

cdef void* tracks = NULL            # the open scopes, the last one opened first
cdef void* limits = NULL
cdef void* listeners = NULL


cdef class Open:

    cdef void link(self, void** place) noexcept:
        self.place, self.outer = place, place[0]
        place[0] = <void*>self

    cdef bint unlink(self) noexcept:
        """Remove the scope from its list. Returns whether it was open."""
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
    """Store the peak so far in every open track(), and reset the counters' peak to the live bytes."""
    cdef void* p = tracks
    while p != NULL:
        if counters.peak > (<track>p).highest: (<track>p).highest = counters.peak
        p = (<Open>p).outer
    begin_peak()


def reset_peak() -> int:
    """Reset the peak to the live bytes. Returns the previous peak in bytes. Open `track()` scopes keep their own
    peaks."""
    begin()
    return restart_peak()


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class track(Open):
    """A scope that tracks the live bytes. `.peak_bytes` is their maximum inside the scope, and `.leaked_bytes` the
    difference between its end and its start. Scopes nest, and each has its own peak, which `reset_peak()` does not
    change."""
    cdef size_t highest
    cdef int64_t leaked, started
    cdef bint used

    @cython.embedsignature.format("c")
    def __init__(self):                             # (without it Cython takes any arguments)
        pass

    def __enter__(self):
        if self.place != NULL:
            raise RuntimeError("this memory.track() is already open; make another one for a scope inside it")
        begin()
        self.highest, self.started, self.used = counters.live, counters.live, True
        self.link(&tracks)
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.place == NULL: raise RuntimeError("memory.track: this scope is not open, so it cannot be closed")
        if counters.peak > self.highest: self.highest = counters.peak
        self.leaked = <int64_t>counters.live - self.started
        self.unlink()

    cdef int check(self) except -1:
        if not self.used:
            raise RuntimeError("this memory.track() has recorded nothing yet; use it as a scope: with "
                               "cygrad.memory.track() as t: ...")

    @property
    def peak_bytes(self):
        """The maximum of the live bytes in the scope so far."""
        self.check()
        return max(self.highest, counters.peak) if self.place != NULL else self.highest

    @property
    def leaked_bytes(self):
        """The live bytes now, or at the end of the scope, minus those at its start."""
        self.check()
        return <int64_t>counters.live - self.started if self.place != NULL else self.leaked


# ---- the limit -------------------------------------------------------------------------------------------------------

cdef int tightest() except -1:
    """Apply the lowest of the open limits."""
    cdef void* p = limits
    cdef limit found = None
    while p != NULL:
        if found is None or (<limit>p).max_bytes < found.max_bytes: found = <limit>p
        p = (<Open>p).outer
    set_limit(None if found is None else found.bytes)


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class limit(Open):
    """A scope that limits the memory that cygrad takes from the system to `bytes`, an int or text such as "256MiB".
    Live and cached memory of all threads count together. An allocation that would exceed the limit first returns cached
    memory to the system. If that does not suffice, the operation raises MemoryLimitError and changes nothing. Scopes
    nest, and the lowest limit applies. Memory that was live at the start stays, even if it exceeds the limit. Raises
    TypeError or ValueError if `bytes` is not a size."""
    cdef object bytes
    cdef size_t max_bytes
    cdef Py_ssize_t entries

    @cython.embedsignature.format("c")
    def __init__(self, bytes):
        self.bytes = self.max_bytes = min(read_size(bytes, "memory.limit"), (1 << 63) - 1)

    def __enter__(self):
        self.entries += 1
        if self.entries == 1: self.link(&limits)
        tightest()
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.entries: raise RuntimeError("memory.limit: this scope is not open, so it cannot be closed")
        self.entries -= 1
        if self.entries: return
        self.unlink()
        tightest()

    def __dealloc__(self):
        if self.unlink(): tightest()


# ---- events ----------------------------------------------------------------------------------------------------------

def call_listeners(event):
    """Call every open listener, in the order in which the scopes were opened."""
    cdef list found = []
    cdef void* p = listeners
    while p != NULL:
        found.append((<events>p).listener)
        p = (<Open>p).outer
    if not found: set_listener(None)
    while found: call_listener(found.pop(), event)


cdef void call_listener(listener, event) noexcept:
    listener(event)                                 # (an exception is printed: the allocation goes on)


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc_clear
cdef class events(Open):
    """A scope that logs memory events in a list of (kind, buffer id, bytes, category). The kind is "allocate", "free"
    or "category" (the bytes of the buffer move to another category). If a function is given, it is called with each
    event instead, except for events that it causes itself; an exception that it raises is printed (sys.unraisablehook)
    and does not propagate. Scopes nest, and each receives every event while it is open. Without an open scope, logging
    costs nothing. Raises TypeError if `listener` is not callable."""
    cdef list log
    cdef object listener

    @cython.embedsignature.format("c")
    def __init__(self, listener=None):
        if listener is not None and not callable(listener):
            raise TypeError(f"memory.events takes a function, which it calls with each event; got "
                            f"{described(listener)}")
        self.log = []
        self.listener = self.log.append if listener is None else listener

    def __enter__(self):
        if self.place != NULL:
            raise RuntimeError("this memory.events() is already open; make another one for a scope inside it")
        self.link(&listeners)
        set_listener(call_listeners)
        return self.log

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.unlink(): raise RuntimeError("memory.events: this scope is not open, so it cannot be closed")
        if listeners == NULL: set_listener(None)

    def __dealloc__(self):
        if self.unlink() and listeners == NULL: set_listener(None)
