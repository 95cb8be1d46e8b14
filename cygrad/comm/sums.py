"""Sums over ranks. Every element is summed on one rank, in the order of the ranks, and its bytes go to all others, so
the result is the same on all ranks, for any packing:

    rank r of n owns the r-th part of a segment, receives this part of the others, adds them, and sends the sum"""

import numpy as np

from cygrad.comm.arrays import Pack
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.interop.creation import empty

SEGMENT = 1 << 22               # bytes: beyond it, all_reduce is not faster (benchmarks/ranks.py)


def part(n, size):
    """The elements of each part of a segment of n, the last ones excepted."""
    return -(-n // size)


def pack_for(channel, n, dtype):
    """A Pack for segments of up to n elements."""
    return Pack(n, (channel.size - 1) * part(n, channel.size), dtype)


def segments(n, longest):
    """(start, stop) of the segments of n elements."""
    for start in range(0, n, longest or 1): yield start, min(n, start + longest)


def scaled(total, divisor, scale):
    """total / divisor * scale, in place; None: neither."""
    if divisor != 1: np.divide(total, divisor, out=total)
    if scale is not None: np.multiply(total, total.dtype.type(scale), out=total)


def added(pieces, total):
    """The sum of the pieces in their order, in `total`, which is the first of them or none."""
    if total is not pieces[0]: np.copyto(total, pieces[0])
    for piece in pieces[1:]: np.add(total, piece, out=total)
    return total


def all_reduce(channel, mine, pack, divisor=1, scale=None):
    """Sum the 1-D array `mine` over ranks, into pack.out. `mine` is on that memory, or not written."""
    n, size, rank = len(mine), channel.size, channel.rank
    k = part(n, size)
    bounds = [(min(n, r * k), min(n, r * k + k)) for r in range(size)]
    a, b = bounds[rank]
    length, own, out = b - a, mine[a:b], pack.out[:n]
    received, at = [], 0
    for r in range(size):
        received.append(own if r == rank else pack.received[at:at + length])
        at += 0 if r == rank else length
    channel.swap([mine[i:j] for i, j in bounds], received)
    with np.errstate(all="ignore"):
        total = added(received, out[a:b] if rank == 0 else received[0])
        scaled(total, divisor, scale)
    channel.swap([total] * size, [out[i:j] for i, j in bounds])
    if rank: out[a:b] = total


def all_reduce_stream(channel, stream, pack, divisor=1, scale=None):
    """The same for the tensors of a stream, in segments of pack.n elements."""
    for start, stop in segments(stream.size, pack.n):
        all_reduce(channel, stream.read(start, stop, pack.out), pack, divisor, scale)
        stream.write(start, stop, pack.tensor[:stop - start])


class GatheredRows:
    """The rows of a GradientSlice of all ranks, in their order: memory for them, which join() fills."""

    def __init__(self, own, counts, shape, like):
        """own: the slice of this rank, or None. counts: the number of rows of each rank. like: shape and dtype of the
        values."""
        self.own, self.counts, self.shape = own, counts, shape
        self.indices = empty((int(sum(counts)),), dtype="int64")
        self.values = empty((int(sum(counts)), *like[0][1:]), dtype=like[1])
        if own is None: self.sent = np.empty(0, np.int64), np.empty(0, like[1])
        else: self.sent = np.ascontiguousarray(own.indices.numpy()), np.ascontiguousarray(own.values.detach().numpy())

    def join(self, channel):
        """Fetch the rows of all ranks."""
        ends = np.cumsum(self.counts)
        for sent, t in zip(self.sent, (self.indices, self.values), strict=True):
            parts = [t.numpy()[end - n:end].reshape(-1) for n, end in zip(self.counts, ends, strict=True)]
            sent = sent.reshape(-1)
            channel.swap([sent] * channel.size, parts)
            parts[channel.rank][...] = sent

    def total(self, divisor=1, scale=None):
        """The sum: a slice with each index once, ascending. Rows of equal index are added in the order of the ranks."""
        total = GradientSlice(self.indices, self.values, self.shape).deduplicate()
        with np.errstate(all="ignore"): scaled(total.values.numpy(), divisor, scale)
        return total
