"""The errors and warnings that cygrad adds to Python's own, and how they speak of what they were given."""


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


class PrecisionWarning(UserWarning):
    """A recorded operation made float64 of a float32 tensor that gradients flow through, since other data is
    float64."""


MOST = 200                                          # characters of a value in a message


def described(value):
    """`value` for a message: what a program wrote (a number, text, a list of them) as it stands; of a tensor or an
    array its dtype and shape, of a NumPy scalar its dtype, never the elements; of anything else the type."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        inner = ", ".join(map(described, value)) if len(value) <= MOST // 2 else f"{len(value)} values"
        left, right = {list: "[]", tuple: "()"}.get(kind, "{}")
        return cut(f"{left}{inner}{',' * (kind is tuple and len(value) == 1)}{right}")
    if kind is slice: return f"slice({described(value.start)}, {described(value.stop)}, {described(value.step)})"
    if kind.__module__ == "numpy" and hasattr(kind, "dtype") and kind.__name__ != "ndarray":
        return f"a NumPy number of dtype {value.dtype}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type)): return cut(repr(value))
    if kind.__name__ == "FreedTensor": return "a freed tensor"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        what = "tensor" if kind.__name__ == "Tensor" else "array" if kind.__name__ == "ndarray" else kind.__name__
        return f"a {dtype} {what} of shape {shape}"
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return f"a value of type {module}{kind.__name__}"


def cut(text):
    return text if len(text) <= MOST else text[:MOST - 4] + " ..."
