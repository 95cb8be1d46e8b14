"""Counting traffic (chapter 21).

Arrays of n float32 numbers are too large for the caches. A loop reads some of them and writes some of them, once each.
Write `traffic(n, reads, writes, past_cache)`: the bytes that move between memory and the CPU. An ordinary store first
reads the line that it overwrites; with `past_cache` stores do not. Then write `chain(n, k)`: the pair of the bytes for
k elementwise operations in a row, y = f(g(... (x))), one loop for each with ordinary stores, and all in one loop with
stores past the cache.
"""


def traffic(n, reads, writes, past_cache):
    return 4 * n * (reads + writes * (1 if past_cache else 2))


def chain(n, k):
    return k * traffic(n, 1, 1, False), traffic(n, 1, 1, True)
