"""A sum over ranks (chapter 29).

There are n ranks, and `arrays` has the array of each, of equal sizes that n divides. Write `all_reduce(arrays, send)`:
the list of what each rank has in the end, which is the sum of all arrays. A rank sees what it has and what others send
to it: `send(source, target, part)` returns what the target receives. In the first round, rank r receives the r-th part
of the array of each other rank and adds these parts up, in the order of the ranks. In the second round it sends the sum
of its part to all others. So each rank sends 2 (n - 1) / n of an array, and all have the same bits.
"""

import numpy as np


def all_reduce(arrays, send):
    n = len(arrays)
    parts = [np.split(a, n) for a in arrays]
    sums = []
    for r in range(n):
        received = [parts[r][r] if k == r else send(k, r, parts[k][r]) for k in range(n)]
        total = received[0].copy()
        for part in received[1:]:
            total += part
        sums.append(total)
    return [np.concatenate([sums[r] if k == r else send(r, k, sums[r]) for r in range(n)]) for k in range(n)]
