"""Reading ahead: a thread that runs an iterator and holds a bounded number of its results."""

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

PATIENCE = 5.0              # seconds that close() waits for a result that is being made


class Ahead:
    """An iterator over the results of `source`, of which a thread makes up to `depth` before they are asked for. An
    exception of `source` is raised in its place among the results, as itself. close() ends the thread; so does the end
    of the results, the end of the last reference and the end of the interpreter."""

    def __init__(self, source: Iterator[Any], depth: int):
        self._state = state = SharedState(source, depth)
        thread = threading.Thread(target=state.run, name="cygrad.data", daemon=True)
        self._close = weakref.finalize(self, state.close, thread)
        thread.start()

    def __iter__(self) -> "Ahead": return self

    def __next__(self) -> Any: return self._state.get()

    def close(self) -> None: self._close()


class SharedState:
    """What the thread and the iterator share. The thread holds no reference to the iterator."""

    def __init__(self, source: Iterator[Any], depth: int):
        self.source, self.depth = source, depth
        self.made: deque[Any] = deque()             # results
        self.changed = threading.Condition()
        self.closed = self.ended = False
        self.error: BaseException | None = None
        self.process = os.getpid()

    def run(self) -> None:
        try:
            while self.wait():
                result = next(self.source)
                with self.changed:
                    self.made.append(result)
                    self.changed.notify_all()
                del result
        except StopIteration: pass
        except BaseException as e: self.error = e
        finally:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def wait(self) -> bool:
        """Wait until there is room for a result. False: close() was called."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or len(self.made) < self.depth)
            return not self.closed

    def get(self) -> Any:
        with self.changed:
            self.changed.wait_for(lambda: self.made or self.ended)
            if self.made:
                self.changed.notify_all()
                return self.made.popleft()
            error, self.error = self.error, None
        try:
            if error is not None: raise error
        finally: del error                          # (the traceback refers to this frame)
        raise StopIteration

    def close(self, thread: threading.Thread) -> None:
        if os.getpid() != self.process: return      # (a forked child has no such thread)
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        if thread is not threading.current_thread(): thread.join(PATIENCE)
        if not thread.is_alive(): getattr(self.source, "close", lambda: None)()
        self.made.clear()
        self.error = None                           # (its traceback refers to a frame that refers to this)
