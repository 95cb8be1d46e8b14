"""The errors that cygrad adds to Python's own."""


class GraphFreedError(RuntimeError):
    """A backward pass met a part of the graph that an earlier pass has freed; `retain_graph=True` would have kept
    it."""


class MemoryLimitError(MemoryError):
    """Memory was asked for that an open `memory.limit` does not admit; nothing has been taken. `requested` bytes by
    `operation` at `line` ("file:line"); of the `limit`, `fits` bytes are the most that could be had now."""

    def __init__(self, message, requested=0, limit=0, fits=0, operation="", line=""):
        super().__init__(message)
        self.requested, self.limit, self.fits = requested, limit, fits
        self.operation, self.line = operation, line


class InplaceError(RuntimeError):
    """A tensor was written in place where that would lose or falsify a gradient."""
