"""A chain with few values (chapter 17).

Write `chain(f, x, n, k)`: f applied to x n times, f(f(... f(x))), where n is a multiple of k. Of each k calls, the
graph may keep only the value at which they begin; backward computes the others again. Use `cg.checkpoint(function, x)`,
which keeps the arguments of a function and drops what the operations in it save.
"""

import cygrad as cg


def chain(f, x, n, k):
    def part(x):
        for _ in range(k):
            x = f(x)
        return x

    for _ in range(n // k):
        x = cg.checkpoint(part, x)
    return x
