"""Checks of chapter 26."""

from cygrad.learn.checking import equal, expect

CASES = [
    {"a": (2, 0, 1), "b": (2, 1, 3), "c": (3, 2, 3)},
    {"a": (4, 0, 5), "b": (1, 0, 1), "c": (2, 2, 3), "d": (3, 3, 4), "e": (1, 5, 6)},
    {"a": (5, 0, 0), "b": (3, 1, 1), "c": (4, 2, 2)},
    {"a": (10, 0, 1), "b": (2, 2, 3), "c": (2, 2, 3), "d": (1, 0, 3)},
]


def bound(reader):
    for lives in CASES:
        steps = range(8)
        right = max(sum(n for n, first, last in lives.values() if first <= s <= last) for s in steps)
        open_end = max(sum(n for n, first, last in lives.values() if first <= s < last) for s in steps)
        equal(f"bound({lives})", reader.bound(lives), right, "Sum the bytes of all that are alive, for each step.",
              [(sum(n for n, _, _ in lives.values()),
                "This is the sum of all buffers. Those that never meet can use the same memory."),
               (open_end, "A buffer is alive in its last step, too."),
               (max(n for n, _, _ in lives.values()), "This is the largest buffer.")])


def lowest(lives, order):
    offsets = {}
    for name in order:
        n, first, last = lives[name]
        beside = [(offsets[k], offsets[k] + lives[k][0]) for k in offsets
                  if lives[k][1] <= last and first <= lives[k][2]]
        offsets[name] = next(at for at in range(100) if all(at + n <= a or b <= at for a, b in beside))
    return offsets


def places(reader):
    for lives in CASES:
        for order in ("".join(lives), "".join(reversed(lives)), "".join(sorted(lives, key=lambda k: -lives[k][0]))):
            got, right = reader.place(lives, order), lowest(lives, order)
            what = f"place({lives}, {order!r})"
            expect(isinstance(got, dict) and got.keys() == lives.keys(),
                   f"{what} returns a dict with an offset for each buffer.")
            for i, x in enumerate(order):
                for y in order[:i]:
                    (m, a, b), (n, c, d) = lives[x], lives[y]
                    together = a <= d and c <= b
                    apart = got[x] + m <= got[y] or got[y] + n <= got[x]
                    expect(apart or not together, f"{what} is {got}: {y!r} and {x!r} are both alive in step "
                                                  f"{max(a, c)}, and their bytes overlap.")
            for x in order:
                expect(got[x] == right[x], f"{what} puts {x!r} at {got[x]}, but {right[x]} is the lowest offset that "
                                           "is free in all its steps. Look into the gaps between the buffers that are "
                                           "alive at the same time, and ignore those that are not.")
