"""Scopes of tests: allocations that fail on request, and bytes that must be gone at the end."""

import functools

from cygrad.core.errors import described
from cygrad.core.store.buffer import stats
from cygrad.testing.failing import Failing


class Failure:
    """What a fail_allocation scope has seen: `.allocations`, how many were asked for in it, and `.failed`, whether its
    n-th was among them. Both are known once the scope is closed."""

    def __init__(self, n):
        self._n = n
        self.allocations = None

    @property
    def failed(self):
        return self.allocations is not None and self.allocations >= self._n


def _decorated(scope, f):
    """The function `f`, every call of which runs in `scope`."""
    @functools.wraps(f)
    def function(*args, **kwargs):
        with scope: return f(*args, **kwargs)
    return function


class fail_allocation(Failing):
    """A scope in which the n-th allocation of tensor data (from 1) raises MemoryError, and with `persistent` every one
    after it. It counts the allocations of all threads. `as` gives a Failure, which says afterwards how many there were:
    count up from 1 until `.failed` is False, and each allocation of a piece of code has failed once.

    Raises ValueError unless n is a whole number of at least 1, and RuntimeError inside another such scope.
    """

    def __init__(self, n, persistent=False):
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"fail_allocation: n is a whole number of at least 1, got {described(n)}")
        super().__init__(n, bool(persistent), Failure)

    def __call__(self, f):
        """Decorate: each call of the function is such a scope."""
        return _decorated(self, f)


def _difference(before, now):
    """What has changed between two stats, in words; empty if nothing has."""
    nbytes, buffers = (now[key] - before[key] for key in ("live_bytes", "live_buffers"))
    parts = [
        f"{name} {now['by_category'][name] - count:+d}"
        for name, count in before["by_category"].items()
        if now["by_category"][name] != count
    ]
    if not nbytes and not buffers:
        return ""
    return f"{nbytes:+d} live bytes in {buffers:+d} buffers" + (f" ({', '.join(parts)})" if parts else "")


class assert_no_leak:
    """A scope at whose end as many bytes in as many buffers must be live as at its start, by counts alone: the garbage
    collector is not asked. Names that still refer to tensors made inside count as leaks; delete them first. Works as a
    decorator too. An exception out of the scope goes on as it is, unchecked: its traceback keeps the tensors alive.

    Raises AssertionError that says how many bytes, and of which categories.
    """

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(stats())

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self._before: raise RuntimeError("assert_no_leak: this scope is not open, it cannot be left")
        before = self._before.pop()
        if kind is not None: return
        difference = _difference(before, stats())
        if difference: raise AssertionError(f"assert_no_leak: the scope ends with {difference} against its start")

    def __call__(self, f):
        """Decorate: each call of the function is such a scope."""
        return _decorated(self, f)
