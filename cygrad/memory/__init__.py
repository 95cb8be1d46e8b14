"""Every byte of tensor data, accounted for: what is live and what for, how high it went, what the cache holds."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core import memory as _core
from cygrad.core.freed import scope
from cygrad.core.memory import empty_cache, stats
from cygrad.memory.limits import limit
from cygrad.memory.profiling import profile
from cygrad.memory.reasons import why

__all__ = ["empty_cache", "events", "limit", "profile", "reset_peak", "scope", "stats", "track", "why"]


def reset_peak():
    """Let the peak start again from what is live now; returns what it was, in bytes."""
    return _core.set_peak(0)


class track:
    """A scope that watches the live bytes: `.peak_bytes`, the most that were live inside it, and `.leaked_bytes`, what
    is live at its end beyond what was at its start. Scopes nest; each sees its own peak."""

    def __enter__(self):
        self._start = _core.live_bytes()
        self._outer_peak = _core.set_peak(0)
        self._peak = self._leaked = None
        return self

    def __exit__(self, *_):
        self._peak, self._leaked = self.peak_bytes, self.leaked_bytes
        _core.set_peak(max(self._outer_peak, self._peak))

    @property
    def peak_bytes(self):
        """The most bytes that were live at once since the scope was entered (while it was open)."""
        return _core.peak_bytes() if self._peak is None else self._peak

    @property
    def leaked_bytes(self):
        """Live bytes now (at the end of the scope) less those at its start."""
        return _core.live_bytes() - self._start if self._leaked is None else self._leaked


class events:
    """A scope that logs what happens to memory: a list of (kind, buffer id, bytes, category), kind being "allocate",
    "free" or "category" (the buffer's bytes count under another category from now on). Without one, logging costs
    nothing. Given a function, it is called with each event instead, except those of what it does itself; what it
    raises is printed (sys.unraisablehook) and goes no further."""

    def __init__(self, listener=None):
        self._log = []
        self._listener = self._log.append if listener is None else listener

    def __enter__(self):
        self._before = _core.set_listener(self._listener)
        return self._log

    def __exit__(self, *_):
        _core.set_listener(self._before)
