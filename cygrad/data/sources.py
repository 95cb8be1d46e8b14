"""What a loader reads: columns of rows, a sequence of samples, or a stream of them.

read(rows) returns a batch as (spec, columns): the structure of a sample, and for each of its leaves the elements of all
samples, as a Column, which writes them to memory that the loader has."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.data.trees import Spec, build, flatten, place, size


class Column(NamedTuple):
    """One leaf of a batch. `write` puts the elements into an array of this shape and dtype."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    write: Callable[[np.ndarray[Any, Any]], None]


Read = tuple[Spec, list[Column]]


def source_of(data: Any, collate: Callable[..., Any] | None) -> "Columns | Samples | IterableSource":
    """The source that reads `data`."""
    if is_array(data): return Columns(None, [data])
    if isinstance(data, (tuple, Mapping)) and collate is None:
        leaves: list[Any] = []
        spec = flatten(data, leaves)
        if leaves and all(map(is_array, leaves)): return Columns(spec, leaves)
        if isinstance(data, Mapping):
            raise TypeError(f"DataLoader: a dict of data must contain arrays, one row for each sample, got "
                            f"{described(data)}; for samples by key, pass list(data.values())")
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"): return Samples(data, collate)
    if hasattr(data, "__iter__"): return IterableSource(data, collate)
    raise TypeError(f"DataLoader: data must be an array, a tuple or dict of arrays, a sequence of samples or an "
                    f"iterable of them, got {described(data)}")


def is_array(x: Any) -> bool:
    return isinstance(x, Tensor) or hasattr(x, "__array__")


class Columns:
    """Arrays with one row for each sample."""

    def __init__(self, spec: Spec, arrays: list[Any]):
        self.spec = spec
        self.arrays = [x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x) for x in arrays]
        for k, a in enumerate(self.arrays):
            if not a.ndim:
                raise ValueError(f"DataLoader: data{place(spec, k)} is a number; an array of data has one row for each "
                                 f"sample")
            if a.dtype not in DTYPES:
                raise TypeError(f"DataLoader: data{place(spec, k)} has dtype {a.dtype}; cygrad has "
                                f"{', '.join(map(str, DTYPES))}; cast it to one of them first")
        self.n = len(self.arrays[0])
        for k, a in enumerate(self.arrays):
            if len(a) != self.n:
                raise ValueError(f"DataLoader: data{place(spec, k)} has {len(a)} rows, but data{place(spec, 0)} has "
                                 f"{self.n}; they must agree")

    def read(self, rows: slice | np.ndarray[Any, Any]) -> Read:
        return self.spec, [self.column(a, rows) for a in self.arrays]

    def column(self, a: np.ndarray[Any, Any], rows: slice | np.ndarray[Any, Any]) -> Column:
        if isinstance(rows, slice): return whole(a[rows])

        def write(out: np.ndarray[Any, Any]) -> None:
            if a.flags.c_contiguous: np.take(a, rows, 0, out, "clip")   # (mode "raise" would copy through a buffer)
            else: out[...] = a[rows]                # (take would copy all of `a` first)
        return Column((len(rows), *a.shape[1:]), a.dtype, write)


class Samples:
    """A sequence, with __len__ and __getitem__."""

    def __init__(self, data: Any, collate: Callable[..., Any] | None):
        self.data, self.collate = data, collate

    @property
    def n(self) -> int:
        """The number of samples, which may change between epochs."""
        return len(self.data)

    def read(self, rows: slice | np.ndarray[Any, Any]) -> Read:
        if isinstance(rows, slice): rows = np.arange(rows.start, rows.stop)
        return join([self.data[int(k)] for k in rows], self.collate)


class IterableSource:
    """An iterable without a length, which starts again for each epoch."""

    n = None

    def __init__(self, data: Iterable[Any], collate: Callable[..., Any] | None):
        self.data, self.collate = data, collate

    def open(self) -> Iterator[Any]:
        return iter(self.data)

    def read(self, stream: Iterator[Any], n: int) -> tuple[int, Read | None]:
        """(number of samples, the batch) of the next `n` samples."""
        samples = list(islice(stream, n))
        return len(samples), join(samples, self.collate) if samples else None


def join(samples: list[Any], collate: Callable[..., Any] | None) -> Read:
    """A batch of samples: each leaf is stacked along a new first dimension, or what collate(samples) returned."""
    if collate is not None:
        leaves: list[Any] = []
        spec = flatten(collate(samples), leaves)
        return spec, [whole(array_of(x, f"collate returned {described(x)} for the batch{place(spec, k)}"))
                      for k, x in enumerate(leaves)]
    parts: list[list[Any]] = [[] for _ in samples]
    specs = [flatten(sample, found) for sample, found in zip(samples, parts, strict=True)]
    for spec in specs:
        if spec != specs[0]:
            raise ValueError(f"DataLoader: a sample is {outline(spec)}, but the first of its batch is "
                             f"{outline(specs[0])}; all samples need the same structure, or pass collate=")
    return specs[0], [stacked([part[k] for part in parts], f"a sample{place(specs[0], k)}")
                      for k in range(size(specs[0]))]


def outline(spec: Spec) -> str:
    """The structure of a sample, for messages."""
    names = iter(lambda: "...", None)
    return cut(str(build(spec, names)).replace("'...'", "..."))


def array_of(x: Any, what: str) -> np.ndarray[Any, Any]:
    """A leaf as an array of a dtype that cygrad has."""
    try: return asarray(x).detach().numpy()
    except (TypeError, ValueError) as e:
        raise type(e)(f"DataLoader: {what} is no array of numbers: {e}") from None


def whole(a: np.ndarray[Any, Any]) -> Column:
    return Column(a.shape, a.dtype, partial(_copy, a))


def _copy(a: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
    out[...] = a


def numbers(leaves: list[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """A vector of numbers of one type in one step, or None if they have no common array of this dtype. One by one,
    they take 4 us each."""
    try: a = asarray(leaves).detach().numpy()
    except (TypeError, ValueError, OverflowError): return None
    return a if a.dtype == dtype and a.ndim == 1 else None


def stacked(leaves: list[Any], what: str) -> Column:
    kinds, first = set(map(type, leaves)), array_of(leaves[0], what)
    if first.ndim == 0 and len(kinds) == 1:
        column = numbers(leaves, first.dtype)
        if column is not None: return whole(column)
    ready = kinds == {np.ndarray} and leaves[0].dtype == first.dtype        # then arrays of this dtype are as they are
    arrays = [x if ready and x.dtype == first.dtype else array_of(x, what) for x in leaves]
    for a in arrays:
        if a.shape != first.shape or a.dtype != first.dtype:
            raise ValueError(f"DataLoader: {what} is {a.dtype} of shape {a.shape}, but the first of its batch is "
                             f"{first.dtype} of shape {first.shape}; they must agree, or pass collate= to pad them")

    def write(out: np.ndarray[Any, Any]) -> None:
        for k, a in enumerate(arrays): out[k] = a
    return Column((len(arrays), *first.shape), first.dtype, write)
