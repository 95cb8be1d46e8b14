"""The largest batch (chapter 16).

`step(x)` is a training step on a batch x, and `batch(n)` makes a batch of n rows. Write `largest(step, batch, limit)`:
the largest n for which the peak of the step is at most `limit` bytes, or 0 if one row is too many. The peak grows with
n. Nothing may be run: `cg.memory.plan(step, x)` says what the peak would be (`.peak_bytes`). Take few plans: for 1,000
rows, twenty are enough.
"""

import cygrad as cg


def largest(step, batch, limit):
    def fits(n):
        return cg.memory.plan(step, batch(n)).peak_bytes <= limit

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
