"""The errors that cygrad adds to Python's own."""


class GraphFreedError(RuntimeError):
    """A backward pass met a part of the graph that an earlier pass has freed; `retain_graph=True` would have kept
    it."""


class InplaceError(RuntimeError):
    """A tensor was written in place where that would lose or falsify a gradient."""
