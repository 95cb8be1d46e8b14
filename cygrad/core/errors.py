"""The exceptions and warnings of cygrad, and the description of a value in a message."""


class GraphFreedError(RuntimeError):
    """A backward pass needs a part of the graph that an earlier pass has freed. Pass `retain_graph=True` to the earlier
    pass to keep it."""


class MemoryLimitError(MemoryError):
    """An allocation would exceed an open `memory.limit`; nothing was allocated. `operation` at `line` ("file:line")
    requested `requested` bytes. `limit` is the limit in bytes, and `fits` the size of the largest allocation that would
    succeed now."""

    def __init__(self, message, requested=0, limit=0, fits=0, operation="", line=""):
        super().__init__(message)
        self.requested, self.limit, self.fits = requested, limit, fits
        self.operation, self.line = operation, line


class InplaceError(RuntimeError):
    """An in-place write would lose a gradient or make it wrong."""


class PerformanceWarning(UserWarning):
    """An operation runs in a slower way than others of its kind."""


class PrecisionWarning(UserWarning):
    """A recorded operation promoted a float32 tensor that has a gradient to float64, because another operand is
    float64."""


MAX_LENGTH = 200            # the maximum number of characters of a value in a message


def described(value):
    """The description of `value` in a message. A number, a string or a collection of them is printed in full. For a
    tensor or an array it is dtype and shape, for a NumPy scalar the dtype; elements are never printed. For anything
    else it is the type."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        inner = ", ".join(map(described, value)) if len(value) <= MAX_LENGTH // 2 else f"{len(value)} values"
        left, right = {list: "[]", tuple: "()"}.get(kind, "{}")
        return cut(f"{left}{inner}{',' * (kind is tuple and len(value) == 1)}{right}")
    if kind is slice: return f"slice({described(value.start)}, {described(value.stop)}, {described(value.step)})"
    if module_of(kind) == "numpy" and hasattr(kind, "dtype") and kind.__name__ != "ndarray":
        return f"a NumPy number of dtype {value.dtype}"
    if kind is int and value.bit_length() > 1000: return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, type)): return cut(repr(value))
    if kind.__name__ == "FreedTensor": return "a freed tensor"
    if kind.__name__ == "WaitingTensor": return repr(value).strip("<>")
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        noun = {"Tensor": "tensor", "numpy.ndarray": "array"}.get(type_name(value), type_name(value))
        return f"a {dtype} {noun} of shape {tuple(shape)}"
    module = "" if module_of(kind) in ("builtins", "__main__") else f"{module_of(kind)}."
    return f"a value of type {module}{kind.__name__}"


def as_float(value, what):
    """`value`, a number, as a float. Raises ValueError for an int that is too large; `what` begins the message."""
    try: return float(value)
    except OverflowError: raise ValueError(f"{what} is {described(value)}; it must fit float64") from None


def type_name(value):
    """The class of a value, with its module if that is not of cygrad."""
    kind = type(value)
    own = module_of(kind).partition(".")[0] in ("builtins", "__main__", "cygrad")
    return kind.__name__ if own else f"{module_of(kind)}.{kind.__name__}"


def module_of(kind):
    """The module of a class or a function, or "builtins" for one that code without a __name__ has made."""
    return getattr(kind, "__module__", None) or "builtins"


def cut(text):
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH - 4] + " ..."
