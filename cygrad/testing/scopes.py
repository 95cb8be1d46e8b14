"""Scopes of tests: allocations that fail on request, and bytes that must be gone at the end."""

from contextlib import contextmanager

from cygrad.core.errors import described
from cygrad.core.memory import set_failure, stats

_open = False


class Failure:
    """What a fail_allocation scope has seen: `.allocations`, how many were asked for in it, and `.failed`, whether its
    n-th was among them. Both are known once the scope is closed."""

    def __init__(self, n):
        self._n = n
        self.allocations = None

    @property
    def failed(self):
        return self.allocations is not None and self.allocations >= self._n


@contextmanager
def fail_allocation(n, persistent=False):
    """A scope in which the n-th allocation of tensor data (from 1) raises MemoryError, and with `persistent` every one
    after it. It counts the allocations of all threads. `as` gives a Failure, which says afterwards how many there were:
    count up from 1 until `.failed` is False, and each allocation of a piece of code has failed once.

    Raises ValueError unless n is a whole number of at least 1, and RuntimeError inside another such scope.
    """
    global _open
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"fail_allocation: n is a whole number of at least 1, got {described(n)}")
    if _open:
        raise RuntimeError("fail_allocation: another scope of it is open; they do not nest")
    failure = Failure(n)
    _open = True
    set_failure(n, bool(persistent))
    try:
        yield failure
    finally:
        failure.allocations = set_failure(0, False)
        _open = False


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


@contextmanager
def assert_no_leak():
    """A scope at whose end as many bytes in as many buffers must be live as at its start, by counts alone: the garbage
    collector is not asked. Names that still refer to tensors made inside count as leaks; delete them first. Works as a
    decorator too. An exception out of the scope goes on as it is, unchecked: its traceback keeps the tensors alive.

    Raises AssertionError that says how many bytes, and of which categories.
    """
    before = stats()
    yield
    difference = _difference(before, stats())
    if difference:
        raise AssertionError(f"assert_no_leak: the scope ends with {difference} against its start")
