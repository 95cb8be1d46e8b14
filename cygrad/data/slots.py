"""The memory of batches. A loader writes each batch to memory that an earlier one had, unless somebody still holds
that: then the memory is left to them, and the loader takes new memory."""

import math
import threading
from typing import Any

import numpy as np

from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import empty
from cygrad.data.sources import Read
from cygrad.data.trees import Spec, build
from cygrad.memory.holders import count_holders


class Slot:
    """Memory for one batch: a vector for each leaf, as long as the largest so far."""

    def __init__(self) -> None:
        self.vectors: list[Tensor] = []
        self.shapes: list[tuple[int, ...]] = []
        self.spec: Spec = None

    def prepare(self, spec: Spec, kinds: list[tuple[tuple[int, ...], Any]]) -> list[np.ndarray[Any, Any]]:
        """Arrays of these shapes and dtypes in the memory of the slot."""
        self.spec, self.shapes = spec, [shape for shape, _ in kinds]
        for k, (shape, dtype) in enumerate(kinds):
            if k < len(self.vectors):
                if self.vectors[k].dtype == dtype and self.vectors[k].size >= math.prod(shape): continue
                self.vectors.pop(k)                 # (its memory goes back first)
            self.vectors.insert(k, empty(math.prod(shape), dtype=dtype))
        del self.vectors[len(kinds):]
        return [v.numpy()[:math.prod(s)].reshape(s) for v, s in zip(self.vectors, self.shapes, strict=True)]

    def write(self, batch: Read) -> "Slot":
        spec, columns = batch
        arrays = self.prepare(spec, [(c.shape, c.dtype) for c in columns])
        for column, out in zip(columns, arrays, strict=True): column.write(out)
        return self

    def batch(self) -> Any:
        """The batch, as new tensors on the memory of the slot."""
        return build(self.spec, iter([v[:math.prod(s)].reshape(s)
                                      for v, s in zip(self.vectors, self.shapes, strict=True)]))

    def is_free(self) -> bool:
        return all(count_holders(v) == 1 for v in self.vectors)


class Ring:
    """The slots of a loader."""

    def __init__(self) -> None:
        self.free: list[Slot] = []
        self.lent: list[Slot] = []                  # to the caller, the oldest first
        self.lock = threading.Lock()                # (guards `free`, which the thread that reads ahead uses too)

    def take(self) -> Slot:
        with self.lock: return self.free.pop() if self.free else Slot()

    def give(self, slot: Slot) -> None:
        with self.lock: self.free.append(slot)

    def lend(self, slot: Slot) -> Any:
        """The batch of a slot, for the caller."""
        self.lent.append(slot)
        return slot.batch()

    def reclaim(self) -> None:
        """Take back what the caller has released. What it holds longer than until the next batch is its own."""
        last = len(self.lent) - 1
        kept = []
        for k, slot in enumerate(self.lent):
            if slot.is_free(): self.give(slot)
            elif k == last: kept.append(slot)
        self.lent = kept

    def clear(self) -> None:
        with self.lock: self.free.clear()
        self.lent.clear()
