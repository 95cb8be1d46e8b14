"""Checks of chapter 29."""

import numpy as np

from cygrad.learn.checking import equal, expect


def mean(reader):
    for means, rows in (([1.0, 2.0], [5, 5]), ([1.0, 2.0, 3.0, 10.0], [10, 10, 10, 2])):
        right = float(np.average(means, weights=rows))
        equal(f"mean({means}, {rows})", reader.mean(means, rows), right,
              "Weight each mean by its share of all rows.",
              [(np.mean(means), "This is the mean of the means. The rows of a rank with few rows count too much."),
               (right * sum(rows), "This is the sum of all rows. Divide by their number.")])


def all_reduce(reader):
    rng = np.random.default_rng(0)
    for n, size in ((2, 8), (4, 8), (3, 9)):
        arrays = [rng.normal(size=size).astype("float32") * 10.0 ** k for k in range(n)]
        arrays = [a.astype("float32") for a in arrays]
        copies, sent = [a.copy() for a in arrays], [0] * n

        def send(source, target, part, sent=sent):
            expect(source != target, f"Rank {source} sends to itself.")
            sent[source] += np.asarray(part).nbytes
            return np.array(part)

        got = reader.all_reduce(arrays, send)
        total = copies[0].copy()
        for a in copies[1:]: total += a
        what = f"With {n} ranks of {size} numbers"
        equal(f"{what}, the number of results", len(got), n, "There is a result for each rank.")
        for k in range(n):
            equal(f"{what}, the result of rank {k}", got[k], total, "It is the sum of the arrays of all ranks.",
                  [(total / n, "This is the mean."), (copies[k], "This is its own array.")])
            expect(np.asarray(got[k]).tobytes() == np.asarray(got[0]).tobytes(),
                   f"{what}, ranks 0 and {k} differ in the last bits: each part must be summed on one rank, in the "
                   "order of the ranks.")
        right = 2 * (n - 1) * arrays[0].nbytes // n
        for k in range(n):
            expect(sent[k] == right, f"{what}, rank {k} sends {sent[k]} bytes, but 2 (n - 1) / n of an array, {right} "
                                     "bytes, are "
                                     "right. " + ("Nothing was sent: a rank can only use what it has or has received."
                                           if not any(sent) else "In each round a rank sends a part of 1 / n of an "
                                                                 "array to each other rank."))
