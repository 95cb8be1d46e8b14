"""memory.limit: so much of the system and not a byte more."""

from cygrad.core.memory import set_limit
from cygrad.memory.sizes import read_size

_open = []                  # the sizes of the scopes that are open, in any thread


class limit:
    """A scope in which cygrad takes no more than `bytes` from the system, an int or text such as "256MiB": what is live
    and what is cached together, in all threads. When that is reached the cache goes back first; then the operation that
    asks raises MemoryLimitError, before the byte is taken, and all is as it was before that operation. Scopes nest; the
    tightest holds. What was live when the scope was entered is not touched, though it may be more than the limit.
    Raises TypeError or ValueError for what is no size."""

    def __init__(self, bytes):
        self._bytes = read_size(bytes, "memory.limit")

    def __enter__(self):
        _open.append(self._bytes)
        set_limit(min(_open))
        return self

    def __exit__(self, *_):
        _open.remove(self._bytes)
        set_limit(min(_open, default=None))
