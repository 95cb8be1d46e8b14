"""Communicator: collective calls on tensors."""

from __future__ import annotations                  # so that help() shows types by their names

from collections.abc import Iterable
from typing import Any

import numpy as np

from cygrad.autograd import pause
from cygrad.comm.arrays import Pack, ElementStream, check, check_distinct, listed, streams, text
from cygrad.comm.channel import Channel
from cygrad.comm.launch import checked, world
from cygrad.comm.overlap import AllReduceScope
from cygrad.comm.sums import SEGMENT, GatheredRows, added, all_reduce_stream, pack_for, scaled, segments
from cygrad.core.errors import described
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.tensor import Tensor
from cygrad.optim.settings import count, shown


class Communicator:
    """The ranks of one job, and collective calls on their tensors.

    comm: a communicator of mpi4py; None is MPI.COMM_WORLD if a launcher of MPI (mpiexec) started this process. Else the
    process is alone, with rank 0 and size 1; all methods work, and mpi4py is not imported.

    All ranks make the same calls in the same order, also this constructor. Before each call, the ranks compare the call
    and its arguments. Where they differ, all ranks raise the same RuntimeError (another call, or an exception on a
    rank) or ValueError (other shapes, dtypes, numbers of arrays or options), and nothing has changed. An exception that
    nobody catches, in any thread of a rank, ends the whole job by MPI's Abort, after its traceback.

    Arrays are tensors of float32, float64 or integers, with equal shapes and dtypes on all ranks; they need not be
    contiguous. Each result is bit-identical on all ranks: one rank adds the values of an element, in the order of the
    ranks. A write raises the version of the tensor. Workspace is at most 2 * 4 MiB for each dtype, and a copy of each
    tensor that is not contiguous.

    A GradientSlice has other rows on each rank. Its sum is a new slice with each index once, which the call returns in
    the list of results. Where a variable has it, assign it to .grad.

    Raises TypeError or ValueError for arguments that do not fit, on the rank that has them; the others raise
    RuntimeError."""

    takes_slices = True             # all_reduce does: an Updater asks each comm

    def __init__(self, comm: Any = None):
        comm = world() if comm is None else checked(comm)
        self._channel, self._beside = Channel(comm), Channel(comm)      # (the second one for the threads of scopes)

    @property
    def rank(self) -> int:
        """The number of this process, from 0 to size - 1."""
        return self._channel.rank

    @property
    def size(self) -> int:
        """The number of processes."""
        return self._channel.size

    def __repr__(self) -> str:
        return shown(self, {"rank": self.rank, "size": self.size})

    def __reduce__(self):
        raise TypeError("a Communicator cannot be pickled or copied: it belongs to the processes of this job")

    # ---- the calls

    def all_reduce(self, arrays: Any, division: bool = False, inplace: bool = False) -> list[Any]:
        """Write the sum over ranks to each of `arrays`, divided by the number of ranks with division=True (floating
        dtypes only). inplace=False: arrays of one dtype are sent together, in packs of 4 MiB. inplace=True: each array
        by itself, from its own memory. Both give the same bits.

        Returns the list of the arrays, with a new GradientSlice, the sum, in place of each GradientSlice."""
        call = "all_reduce"

        def prepare(self):
            given = self._arrays(call, arrays, slices=True)
            divides = flag(call, "division", division)
            for k, x in enumerate(given) if divides else ():
                if x.dtype.kind != "f":
                    raise TypeError(f"{call}: arrays[{k}] is {x.dtype}, and division=True needs float32 or float64")
            dense = [x for x in given if not isinstance(x, GradientSlice)]
            parts = streams(dense, not flag(call, "inplace", inplace)) if self.size > 1 else []
            packs = {x.dtype: pack_for(self._channel, longest(parts, x), x.dtype) for x in dense if parts}
            return given, [("division", division), ("inplace", inplace)], parts, packs

        with self._begun(call, prepare) as (given, _, parts, packs):
            for s in parts:
                if s.size: all_reduce_stream(self._channel, s, packs[s.flat[0][0].dtype], self._divisor(division))
                s.close()
            return [self._sum(x, division) if isinstance(x, GradientSlice) else x for x in given]

    def bcast(self, arrays: Any, root: int = 0, inplace: bool = False) -> list[Any]:
        """Copy the arrays of rank `root` to those of all ranks. inplace: as in all_reduce(). Returns the list of the
        arrays, with that of `root` in place of each GradientSlice."""
        call = "bcast"

        def prepare(self):
            given = self._arrays(call, arrays, slices=True)
            if count(call, "root", root, 0) >= self.size:
                raise ValueError(f"{call}: root is {root}, and the ranks are 0 to {self.size - 1}")
            dense = [x for x in given if not isinstance(x, GradientSlice)]
            parts = streams(dense, not flag(call, "inplace", inplace)) if self.size > 1 else []
            packs = {x.dtype: Pack(longest(parts, x), 0, x.dtype) for x in dense if parts}
            return given, [("root", root), ("inplace", inplace)], parts, packs

        with self._begun(call, prepare) as (given, _, parts, packs):
            for s in parts:
                pack = packs[s.flat[0][0].dtype]
                for start, stop in segments(s.size, pack.n):
                    out = pack.out[:stop - start]
                    if self.rank == root: out = s.read(start, stop, pack.out)
                    self._channel.spread(out, root)
                    if self.rank != root: s.write(start, stop, pack.tensor[:stop - start])
                s.close(self.rank != root)
            return [self._from(x, root) if isinstance(x, GradientSlice) else x for x in given]

    def reduce_scatter(self, arrays: Any, out: Tensor, division: bool = False) -> None:
        """Write the sum over ranks of arrays[r] to `out` of rank r, divided by the number of ranks with division=True.
        arrays: one for each rank, all of the shape and dtype of `out`."""
        call = "reduce_scatter"

        def prepare(self):
            given = self._parts(call, "arrays", arrays, "out", out, written=False)
            if flag(call, "division", division) and out.dtype.kind != "f":
                raise TypeError(f"{call}: out is {out.dtype}, and division=True needs float32 or float64")
            n = limited(out, self.size)
            return given, [("division", division)], Pack(n, (self.size - 1) * n, out.dtype), [ElementStream([out]), *(
                ElementStream([x]) for x in given)]

        with self._begun(call, prepare) as (given, _, pack, (result, *sources)):
            for start, stop in segments(out.size, pack.n):
                n = stop - start
                received = [pack.received[r * n:r * n + n] for r in range(self.size - 1)]
                received.insert(self.rank, sources[self.rank].read(start, stop, pack.out))
                self._channel.swap([s.read(start, stop, pack.out) for s in sources], received)
                with np.errstate(all="ignore"):
                    scaled(added(received, pack.out[:n]), self._divisor(division), None)
                result.write(start, stop, pack.tensor[:n])
            result.close()

    def all_gather(self, array: Tensor, outs: Any) -> None:
        """Copy `array` of rank r to outs[r] on all ranks. outs: one for each rank, all of the shape and dtype of
        `array`."""
        call = "all_gather"

        def prepare(self):
            given = self._parts(call, "outs", outs, "array", array, written=True)
            n = limited(array, self.size)
            return given, [], Pack(n, 0, array.dtype), [ElementStream([array]), *(ElementStream([x]) for x in given)], \
                [Pack(n, 0, array.dtype) for _ in range(self.size)]

        with self._begun(call, prepare) as (given, _, pack, (source, *results), packs):
            for start, stop in segments(array.size, pack.n):
                n = stop - start
                own = source.read(start, stop, pack.out)
                self._channel.swap([own] * self.size, [p.out[:n] for p in packs])
                np.copyto(packs[self.rank].out[:n], own)
                for s, p in zip(results, packs, strict=True): s.write(start, stop, p.tensor[:n])
            for s in results: s.close()

    def barrier(self) -> None:
        """Wait until all ranks have called this."""
        with self._begun("barrier", lambda self: ([], [])): pass

    def all_reduce_callback(self, arrays: Iterable[Tensor], pack_size: int, division: bool = False,
                            scale_grad: float | None = None) -> AllReduceScope:
        """A scope around one backward pass that sums the gradients of variables over ranks while the pass still runs:

            scope = comm.all_reduce_callback(parameters, 1 << 20)
            with scope: y.backward()

        See AllReduceScope. The scope can be entered again for each pass."""
        return AllReduceScope(self, arrays, pack_size, division, scale_grad)

    # ---- what they share

    def _begun(self, call, prepare):
        return Begun(self, call, prepare)

    def _divisor(self, division):
        return self.size if division else 1

    def _arrays(self, call, arrays, slices):
        given = listed(call, "arrays", arrays)
        for k, x in enumerate(given): check(call, f"arrays[{k}]", x, True, slices)
        if len(given) > 1: check_distinct(call, [(f"arrays[{k}]", x) for k, x in enumerate(given)])
        return given

    def _parts(self, call, label, arrays, name, one, written):
        """The checks of reduce_scatter and all_gather: `arrays` has an array like `one` for each rank."""
        given = listed(call, label, arrays)
        check(call, name, one, not written)
        if len(given) != self.size:
            raise ValueError(f"{call}: {label} must have a tensor for each of {self.size} ranks, got {len(given)}")
        for k, x in enumerate(given):
            check(call, f"{label}[{k}]", x, written)
            if (x.shape, x.dtype) != (one.shape, one.dtype):
                raise ValueError(f"{call}: {label}[{k}] is {text(x)} and {name} is {text(one)}; they must be equal")
        check_distinct(call, [(name, one), *((f"{label}[{k}]", x) for k, x in enumerate(given) if written)])
        for k, x in enumerate(given if not written else ()):
            check_distinct(call, [(name, one), (f"{label}[{k}]", x)])
        return given

    def _sum(self, x, division):
        """The sum of a GradientSlice over ranks."""
        counts = self._channel.gather(np.array([len(x)]))[:, 0]
        rows = GatheredRows(x, counts, x.shape, (x.values.shape, x.dtype))
        rows.join(self._channel)
        return rows.total(self._divisor(division))

    def _from(self, x, root):
        """The GradientSlice of rank `root`."""
        n = int(self._channel.gather(np.array([len(x)]))[root, 0])
        if self.rank == root:
            for t in (x.indices, x.values): self._channel.spread(np.ascontiguousarray(t.detach().numpy()).ravel(), root)
            return x
        rows = GatheredRows(None, [n], x.shape, (x.values.shape, x.dtype))
        for t in (rows.indices, rows.values): self._channel.spread(t.numpy().reshape(-1), root)
        return GradientSlice(rows.indices, rows.values, x.shape)


class Begun:
    """The beginning of a call: prepare() checks its arguments and allocates, then the ranks agree, and the writes that
    follow are not recorded."""

    def __init__(self, comm, call, prepare):
        self.comm, self.call, self.prepare = comm, call, prepare
        self.scope = pause(train_mode=None)

    def __enter__(self):
        channel, error, prepared = self.comm._channel, None, ([], [])
        channel.lock.acquire()
        self.scope.__enter__()
        try:
            try: prepared = self.prepare(self.comm)
            except Exception as e: error = e
            given, options = prepared[:2]
            label = "arrays" if self.call != "all_gather" else "outs"
            channel.agree(self.call, [(name, str(value)) for name, value in options], label, map(text, given), error)
            return prepared
        except BaseException:
            self.__exit__()
            raise
        finally: error = prepared = None            # (the traceback must not hold the arrays)

    def __exit__(self, *_):
        try: self.scope.__exit__(None, None, None)
        finally: self.comm._channel.lock.release()


def flag(call, name, value):
    if not isinstance(value, bool): raise TypeError(f"{call}: {name} must be True or False, got {described(value)}")
    return value


def limited(x, size):
    """The elements of a segment of `x`, of which each of `size` ranks has one at a time."""
    return min(x.size, SEGMENT // x.itemsize // size + 1)


def longest(parts, x):
    """The elements of a segment of the streams that have the dtype of `x`."""
    return min(max(s.size for s in parts if s.flat[0][0].dtype == x.dtype), SEGMENT // x.itemsize)
