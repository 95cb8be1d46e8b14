"""The arrays of a collective call: their checks, and streams of their elements."""

import itertools
from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from cygrad.core.errors import described
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import empty
from cygrad.optim.settings import refuse_used


def listed(call: str, label: str, arrays: Any) -> list[Any]:
    """`arrays` as a list: an iterable of tensors, the values of a dict, or one tensor."""
    if isinstance(arrays, Tensor | GradientSlice): return [arrays]
    if hasattr(arrays, "items") and not hasattr(arrays, "named_parameters"): arrays = arrays.values()
    if isinstance(arrays, str) or not hasattr(arrays, "__iter__") or hasattr(arrays, "named_parameters"):
        raise TypeError(f"{call}: {label} must be a list of tensors, got {described(arrays)}")
    given = [*arrays]
    if not given: refuse_used(call, label, arrays)
    return given


def check(call: str, name: str, x: Any, written: bool, slices: bool = False) -> Any:
    """Raise TypeError or ValueError unless `x` can be sent, and written if that is asked."""
    if isinstance(x, GradientSlice):
        if slices: return x
        raise TypeError(f"{call}: {name} is a GradientSlice, whose number of rows differs between ranks; pass its "
                        f"to_dense(), or use all_reduce")
    if not isinstance(x, Tensor): raise TypeError(f"{call}: {name} must be a tensor, got {described(x)}")
    if x.dtype.kind == "b":
        raise TypeError(f"{call}: {name} is a bool tensor of shape {x.shape}; pass its astype(\"int32\")")
    if not written: return x
    if x.grad_fn is not None:
        raise ValueError(f"{call}: {name}, of shape {x.shape}, is the result of a recorded operation, which a write "
                         f"would change; pass its detach() or a copy()")
    if not x.detach().numpy().flags.writeable:
        raise ValueError(f"{call}: {name}, of shape {x.shape}, has read-only memory; pass a copy()")
    return x


def check_distinct(call: str, named: list[tuple[str, Any]]) -> None:
    """Raise ValueError if two of the pairs (name, tensor) share memory: one would be written over the other."""
    spans = sorted(((*byte_bounds(a), k, a) for k, (_, x) in enumerate(named)
                    if (a := elements(x)).size), key=lambda span: span[:2])
    before: list[Any] = []                          # those whose range of addresses may meet the next
    for start, end, k, a in spans:
        before = [span for span in before if span[1] > start]
        for _, _, j, b in before:
            if np.shares_memory(a, b):
                raise ValueError(f"{call}: {named[max(j, k)][0]} shares memory with {named[min(j, k)][0]}; each is "
                                 f"written once, so list one of them, or use a copy()")
        before.append((start, end, k, a))


def elements(x: Any) -> np.ndarray[Any, Any]:
    """The elements of a tensor, or the values of a GradientSlice, as an array on the same memory."""
    return (x.values if isinstance(x, GradientSlice) else x).detach().numpy()


def text(x: Any) -> str:
    """What must be equal on all ranks, for handshakes and messages."""
    if not isinstance(x, GradientSlice): return f"{x.dtype} {x.shape}"
    rows = "n" if x.shape is None else x.shape[0]
    return f"a {x.dtype} GradientSlice of shape ({', '.join(map(str, (rows, *x.values.shape[1:])))})"


class ElementStream:
    """The elements of tensors of one dtype, one tensor after the other. A tensor that is not contiguous has a
    contiguous copy here until close(). None stands for zeros, which are never written."""

    def __init__(self, tensors: list[Tensor | None], sizes: list[int] | None = None):
        self.flat: list[Any] = []                   # 1-D tensors on the memory of `tensors`, and arrays
        self.copied: list[tuple[Any, Any]] = []
        for x in tensors: self.flat.append(None if x is None else self._flat(x.detach()))
        sizes = sizes or [0 if f is None else len(f[1]) for f in self.flat]
        self.ends = [*itertools.accumulate(sizes)]
        self.size = self.ends[-1] if self.ends else 0

    def _flat(self, x):
        if x.numpy().flags.c_contiguous: return (y := x.reshape(-1)), y.numpy()
        copy = x.copy()
        self.copied.append((x, copy))
        return (y := copy.reshape(-1)), y.numpy()

    def parts(self, start: int, stop: int) -> Any:
        """(entry, from, to, where in the segment) for the elements start:stop."""
        k, at = bisect_right(self.ends, start), start
        while at < stop:
            first = self.ends[k - 1] if k else 0
            to = min(stop, self.ends[k])
            if to > at: yield self.flat[k], at - first, to - first, at - start
            k, at = k + 1, to

    def read(self, start: int, stop: int, out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The elements start:stop: a view of them if one tensor has them all, else copied to `out`."""
        parts = [*self.parts(start, stop)]
        if len(parts) == 1 and parts[0][0] is not None: return parts[0][0][1][parts[0][1]:parts[0][2]]
        for entry, a, b, at in parts: out[at:at + b - a] = 0 if entry is None else entry[1][a:b]
        return out[:stop - start]

    def write(self, start: int, stop: int, source: Tensor) -> None:
        """Copy the 1-D tensor `source` to the elements start:stop, which raises their versions."""
        for entry, a, b, at in self.parts(start, stop):
            if entry is not None: entry[0][a:b].copy_(source[at:at + b - a])

    def close(self, written: bool = True) -> None:
        """Copy the contiguous copies back, if they were written."""
        for x, copy in self.copied if written else (): x.copy_(copy)
        self.copied.clear()


def streams(tensors: list[Tensor], packed: bool = True) -> list[ElementStream]:
    """A stream for each dtype, or for each tensor."""
    if not packed: return [ElementStream([x]) for x in tensors]
    kinds: dict[Any, list[Tensor | None]] = {}
    for x in tensors: kinds.setdefault(x.dtype, []).append(x)
    return [ElementStream(some) for some in kinds.values()]


class Pack:
    """Workspace for segments of up to `n` elements: `out` for the result, `received` for what other ranks send."""

    def __init__(self, n: int, received: int, dtype: Any):
        self.n = n
        self.tensor, self._held = empty((n,), dtype=dtype), empty((received,), dtype=dtype)
        self.out, self.received = self.tensor.numpy(), self._held.numpy()
