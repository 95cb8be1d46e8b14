"""Scopes for tests: injected allocation failures and leak checks."""

import functools

from cygrad.core.errors import described
from cygrad.core.store.buffer import stats
from cygrad.testing.failing import Failing


class Failure:
    """The result of a fail_allocation scope: `.allocations` is the number of allocations in it, and `.failed` is True
    if the n-th one was reached. Before the scope is closed they are None and False."""

    def __init__(self, n):
        self._n = n
        self.allocations = None

    @property
    def failed(self):
        return self.allocations is not None and self.allocations >= self._n


def _decorated(scope, f):
    """Wrap `f` so that every call runs in `scope`."""
    @functools.wraps(f)
    def function(*args, **kwargs):
        with scope: return f(*args, **kwargs)
    return function


class fail_allocation(Failing):
    """A scope in which the n-th allocation of tensor data (counted from 1) raises MemoryError; with `persistent`, all
    later ones do too. It counts the allocations of all threads. `as` binds a Failure, which has the number of
    allocations once the scope is closed. To make every allocation of some code fail once, increase n from 1 until
    `.failed` is False.

    Raises ValueError unless n is an int of at least 1, and RuntimeError inside another such scope.
    """

    def __init__(self, n, persistent=False):
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"fail_allocation: n must be an int of at least 1, got {described(n)}")
        super().__init__(n, bool(persistent), Failure)

    def __call__(self, f):
        """Decorate a function: each call runs in such a scope."""
        return _decorated(self, f)


def _difference(before, now):
    """The difference of two stats in words, or an empty string."""
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
    """A scope that checks that the same number of bytes and buffers is live at its end as at its start. It does not run
    the garbage collector. Names that still refer to tensors made inside count as leaks, so delete them first. It is
    also a decorator. If an exception leaves the scope, nothing is checked, because its traceback keeps tensors alive.

    Raises AssertionError with the number of bytes and their categories.
    """

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(stats())

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self._before: raise RuntimeError("assert_no_leak: this scope is not open, so it cannot be closed")
        before = self._before.pop()
        if kind is not None: return
        difference = _difference(before, stats())
        if difference: raise AssertionError(f"assert_no_leak: the scope ends with {difference} compared to its start")

    def __call__(self, f):
        """Decorate a function: each call runs in such a scope."""
        return _decorated(self, f)
