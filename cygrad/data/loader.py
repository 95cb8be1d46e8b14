"""DataLoader: batches of arrays, samples or a stream."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Never, TypeAlias, TypedDict, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator, load_generator
from cygrad.core.graph.tensor import Tensor
from cygrad.data.ahead import Ahead
from cygrad.data.answers import of_argument
from cygrad.data.slots import Ring, Slot
from cygrad.data.sources import Read, IterableSource, source_of
from cygrad.data.workers import Workers
from cygrad.optim.settings import count, runs, shown

ARGUMENTS = "data", "batch_size", "shuffle", "drop_last", "seed", "collate", "prefetch", "workers"
STATE = ("seed", "epoch", "position", "batch_size", "shuffle", "drop_last", "samples")

Rows: TypeAlias = Tensor | npt.NDArray[np.generic]
Batch = TypeVar("Batch")      # the type of a batch


class LoaderOptions(TypedDict, total=False):
    """The arguments of a DataLoader that do not decide the type of a batch."""

    drop_last: bool
    seed: int | None
    prefetch: int
    workers: int


class DataLoader(Generic[Batch]):
    """Batches of `data`, as tensors. One `for` loop over the loader is one epoch; next() goes on from epoch to epoch.

        for x, labels in DataLoader((images, digits), 64, shuffle=True): ...

    data: an array or tensor, or a tuple or dict (nested too) of them, with one row for each sample; or a sequence of
    samples, any object with __getitem__ and __len__, also a list; or an iterable of samples. A sample is a number, an
    array, or a tuple, list or dict of these. A batch has the structure of a sample, and its arrays have one dimension
    more, the first. collate(samples), if given, makes the batch from a list of samples instead, such as one that pads.

    batch_size: the number of samples of a batch. The last batch of an epoch may have fewer; drop_last=True omits it.
    The length of a sequence is asked for at the start of each epoch.
    shuffle: a new order in each epoch, which depends on `seed` and the number of the epoch alone. seed=None draws one
    from the default generator, so cygrad.random.seed() determines it.

    prefetch: the number of batches that a thread makes before they are asked for. workers: the number of forked
    processes that read the samples, for __getitem__ or collate in slow Python code; each has at most one batch ready.
    They see the data as it was at the start of the epoch. In a worker, the default generators of cygrad, NumPy and
    random are seeded for each batch, so random numbers do not depend on the number of workers.

    Memory: a batch is written to the memory of an earlier one: of the last that the caller has released, or else of the
    one before. The loader holds 2 batches, and `prefetch` more. A batch that somebody still holds, a graph or an array
    too, when the batch after the next is asked for, remains as it is, and the loader takes new memory in its place. So
    a list of all batches is right, and as large as the data.

    An exception in the data, in collate or in a worker is raised in the place of its batch, as itself. A loop that ends
    early ends the thread and the workers. close() does so too, and releases the memory. next() can be called in several
    threads.

    state_dict() and load_state_dict() resume within an epoch: the next loop, or next(), continues with the batch that
    would have followed. Batches that were made ahead are not lost. Of an iterable, the samples before are read again.

    Raises TypeError or ValueError for wrong arguments, data whose arrays differ in length, and samples of a batch that
    differ in structure, shape or dtype.
    """

    @overload
    def __init__(self, data: Any, batch_size: int = 1, shuffle: bool = False, *, collate: Callable[[list[Any]], Batch],
                 **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: "DataLoader[Tensor]", data: Rows, batch_size: int = 1, shuffle: bool = False, *,
                 collate: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: "DataLoader[tuple[Tensor, ...]]", data: tuple[Rows, ...], batch_size: int = 1,
                 shuffle: bool = False, *, collate: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: "DataLoader[dict[str, Tensor]]", data: Mapping[str, Rows], batch_size: int = 1,
                 shuffle: bool = False, *, collate: None = None, **options: Unpack[LoaderOptions]) -> None: ...
    @overload
    def __init__(self: "DataLoader[Any]", data: Any, batch_size: int = 1, shuffle: bool = False, *,
                 drop_last: bool = False, seed: int | None = None, collate: None = None, prefetch: int = 0,
                 workers: int = 0) -> None: ...

    def __init__(
        self, data: Any, batch_size: int = 1, shuffle: bool = False, *, drop_last: bool = False,
        seed: int | None = None, collate: Callable[[list[Any]], Any] | None = None, prefetch: int = 0, workers: int = 0,
        **__: Never,
    ):
        for name in __: raise TypeError(of_argument(name, ARGUMENTS))
        self.batch_size = count("DataLoader", "batch_size", batch_size)
        self.prefetch = count("DataLoader", "prefetch", prefetch, 0)
        self.workers = count("DataLoader", "workers", workers, 0)
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise TypeError(f"DataLoader: {name} must be True or False, got {described(value)}")
        self.shuffle, self.drop_last = shuffle, drop_last
        if collate is not None and not callable(collate):
            raise TypeError(f"DataLoader: collate must be a function of a list of samples, got {described(collate)}")
        runs("DataLoader", "collate", collate)
        self.data, self._source = data, source_of(data, collate)
        if self._source.n is None:
            if shuffle:
                raise ValueError("DataLoader: only data with a length can be shuffled, got an iterable; pass a list, "
                                 "or shuffle it yourself")
            if self.workers > 1:
                raise ValueError(f"DataLoader: an iterable can be read by one worker, got workers={workers}; pass a "
                                 f"sequence for more")
        if seed is None: seed = int(default_generator.integers(0, 2**62, ()).item()) if shuffle or workers else 0
        self.seed = count("DataLoader", "seed", seed, 0)
        self._epoch = self._position = 0
        self._resumes = False                       # whether the next loop continues an epoch
        self._ring = Ring()
        self._latest: Epoch | None = None           # the one that may go on
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        flags = {name: True for name in ("shuffle", "drop_last") if getattr(self, name)}
        counts = {name: n for name in ("prefetch", "workers") if (n := getattr(self, name))}
        samples = {} if self._source.n is None else {"samples": self._source.n}
        return shown(self, samples | {"batch_size": self.batch_size} | flags | counts)

    def __len__(self) -> int:
        """The number of batches of an epoch. Raises TypeError for an iterable, which has no length."""
        n = self._source.n
        if n is None: raise TypeError("DataLoader: an iterable has no length, so the number of its batches is unknown")
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    @property
    def epoch(self) -> int:
        """The number of the current epoch, from 0."""
        return self._epoch

    @property
    def position(self) -> int:
        """How many batches of the current epoch have been returned."""
        return self._position

    def __iter__(self) -> Iterator[Batch]:
        if self._position and not self._resumes: self._turn()       # (the last loop ended early)
        return Batches(self)

    def next(self) -> Batch:
        """The next batch; after the last of an epoch, the first of the next one. It can be the data_feeder of an
        Updater. Raises ValueError if an epoch has no batch."""
        with self._lock:
            for _ in range(2):
                if self._latest is None or self._latest.ended: Epoch(self)
                try: return self._advance(self._latest)
                except StopIteration: pass
        raise ValueError(f"DataLoader: an epoch has no batch: {self._empty()}")

    def _empty(self) -> str:
        n = self._source.n
        if n is None: return "the iterable is empty, or is an iterator, which can be read once"
        return f"there are {n} samples, and batch_size is {self.batch_size}" + self.drop_last * " with drop_last=True"

    def __reduce__(self) -> Any:
        raise TypeError("a DataLoader cannot be pickled or copied, since it may have a thread and workers; make "
                        "another one of the same data, and load the state_dict() of this one")

    def close(self) -> None:
        """End the thread and the workers, and release the memory. The loader can be used again."""
        if self._latest is not None: self._latest.close()
        self._latest = None
        self._ring.clear()

    def state_dict(self) -> dict[str, Any]:
        """The position: the epoch, how many of its batches have been returned, the seed, and the settings that
        determine the order. JSON can hold it."""
        return {"seed": self.seed, "epoch": self._epoch, "position": self._position, "batch_size": self.batch_size,
                "shuffle": self.shuffle, "drop_last": self.drop_last, "samples": self._source.n}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what state_dict() returned. Raises ValueError or TypeError for anything else, and for the state
        of a loader with other settings or another number of samples; then nothing has changed."""
        where = "DataLoader.load_state_dict"
        if not isinstance(state, Mapping) or state.keys() != {*STATE}:
            raise ValueError(f"{where} takes what state_dict() returned, a dict with {', '.join(STATE)}; got "
                             f"{described([*map(str, state)]) if isinstance(state, Mapping) else described(state)}")
        for name in STATE[3:]:
            own = self.state_dict()[name]
            if state[name] != own:
                raise ValueError(f"{where}: the saved loader has {name}={described(state[name])}, this one "
                                 f"{name}={own}; the order of the samples would be another one")
        seed, epoch, position = (count(where, name, state[name], 0) for name in STATE[:3])
        if self._source.n is not None and position > len(self):
            raise ValueError(f"{where}: position must be at most {len(self)}, the batches of an epoch, got {position}")
        self.close()
        self.seed, self._epoch, self._position, self._resumes = seed, epoch, position, True

    # ---- an epoch

    def _advance(self, run: "Epoch | None") -> Any:
        """The next batch of an epoch. The caller has the lock."""
        if run is None or (run.ended and run is self._latest): raise StopIteration
        if run is not self._latest:
            run.close()
            raise RuntimeError("DataLoader: a later loop over this loader has begun, or it was closed or its state was "
                               "loaded; use one loop at a time, or a loader for each")
        self._ring.reclaim()
        try:
            run.check()
            slot = next(run.slots)
        except StopIteration:
            run.close()
            self._turn()
            raise
        except BaseException:
            run.close()
            self._resumes = True                    # (the batch can be asked for again)
            raise
        self._position += 1
        return self._ring.lend(slot)

    def _turn(self) -> None:
        """Go to the next epoch."""
        self._epoch += 1
        self._position = 0

    def _order(self) -> np.ndarray[Any, Any] | None:
        """The row numbers of the samples of this epoch in their order, or None if they are not shuffled."""
        n = self._source.n
        if not self.shuffle or n is None: return None
        return load_generator(self.seed, self._epoch * n).permutation(n).numpy()

    def _reader(self) -> Callable[[int], Read | None]:
        """A function that makes batch number k of this epoch, or returns None after the last. Of a stream, the numbers
        must increase by 1. A StopIteration of the data arrives as a RuntimeError, since it would end the loop."""
        source, size, drop_last = self._source, self.batch_size, self.drop_last
        if isinstance(source, IterableSource):
            stream, skipped = source.open(), self._position * size

            def read_stream(k: int) -> Read | None:
                nonlocal skipped
                for _ in range(skipped): next(stream, None)
                skipped = 0
                n, batch = source.read(stream, size)
                return None if n < size and drop_last else batch
            return guarded(read_stream)
        order, batches, n = self._order(), len(self), source.n

        def read(k: int) -> Read | None:
            if k >= batches: return None
            start, stop = k * size, min((k + 1) * size, n)
            return source.read(slice(start, stop) if order is None else order[start:stop])
        return guarded(read)


class Epoch:
    """One epoch of a loader, from its position. It holds no reference to the loader, which may hold it."""

    def __init__(self, loader: DataLoader[Any]):
        slots: Any
        if loader.workers:
            slots = Workers(loader._reader(), loader.workers, loader._position, loader.seed + loader._epoch,
                            loader._ring)
        else: slots = made(loader._reader(), loader._position, loader._ring)
        self.slots = Ahead(slots, loader.prefetch) if loader.prefetch else slots
        self.ended = False
        self.process = os.getpid() if loader.prefetch or loader.workers else None
        loader._resumes, loader._latest = False, self

    def check(self) -> None:
        """Raise RuntimeError in a fork of the process whose thread or workers make the batches."""
        if self.process in (None, os.getpid()): return
        raise RuntimeError("DataLoader: this process is a fork of the one that began the epoch, whose thread and "
                           "workers it does not have; call next() again, or begin a new loop, to read the rest of the "
                           "epoch in this process too")

    def close(self) -> None:
        """End the thread and the workers."""
        self.ended = True
        self.slots.close()


class Batches:
    """The batches of an epoch."""

    def __init__(self, loader: DataLoader[Any]):
        self._loader, self._run = loader, Epoch(loader)

    def __iter__(self) -> "Batches": return self

    def __next__(self) -> Any:
        with self._loader._lock: return self._loader._advance(self._run)


def guarded(read: Callable[[int], Read | None]) -> Callable[[int], Read | None]:
    """`read` with a RuntimeError in place of a StopIteration, which a generator of the data has already replaced."""
    def read_or_raise(k: int) -> Read | None:
        try: return read(k)
        except (StopIteration, RuntimeError) as e:
            stop = e if isinstance(e, StopIteration) else e.__cause__
            if not isinstance(stop, StopIteration): raise
            args = ", ".join(map(described, stop.args))
            del stop                                # (its traceback has this frame, which would be a cycle)
            raise RuntimeError(f"DataLoader: the data raised StopIteration({args}) within a sample, as next(iterator) "
                               f"does at the end of another iterator; catch it there, and use return to end a "
                               f"generator") from e
    return read_or_raise


def made(read: Callable[[int], Read | None], first: int, ring: Ring) -> Iterator[Slot]:
    """The slots with the batches first, first + 1, ..."""
    k = first
    while True:
        batch = read(k)
        if batch is None: return
        yield ring.take().write(batch)
        del batch
        k += 1
