"""Checks of chapter 15."""

from cygrad.learn.checking import equal


def best_fit(reader):
    free = [(0, 8), (10, 3), (20, 5), (30, 3), (40, 20)]
    for nbytes, right in ((3, 10), (4, 20), (5, 20), (6, 0), (9, 40), (20, 40), (21, -1)):
        fitting = [(start, size) for start, size in free if size >= nbytes]
        mistakes = [(fitting[0][0], "This is the first span with room. The best fit is the smallest one: a large span "
                                    "stays whole for a large request."),
                    (max(fitting, key=lambda s: s[1])[0], "This is the largest span. Take the smallest one with room."),
                    (next((s for s, n in reversed(fitting) if n == min(fitting, key=lambda s: s[1])[1]), None),
                     "Of spans of equal size, take the first.")] if fitting else []
        equal(f"best_fit({free}, {nbytes})", reader.best_fit(free, nbytes), right,
              "A span has room if its size is at least the number of bytes.", mistakes)
    for nbytes, right in ((4, [(0, 8), (10, 3), (24, 1), (30, 3), (40, 20)]), (5, [(0, 8), (10, 3), (30, 3), (40, 20)]),
                          (21, free)):
        equal(f"take({free}, {nbytes})", reader.take(list(free), nbytes), right,
              "The bytes come from the front of the span, so its rest begins later and is smaller.",
              [([s for s in free if s[0] != 20], "The rest of the span is missing: only the front was taken."),
               ([(0, 8), (10, 3), (25, 0), (30, 3), (40, 20)], "A span of 0 bytes is none.")])


def join(reader):
    free = [(0, 4), (10, 6), (30, 2)]
    for start, size, right, where in (
            (20, 5, [(0, 4), (10, 6), (20, 5), (30, 2)], "touches none"),
            (4, 3, [(0, 7), (10, 6), (30, 2)], "begins where a free one ends"),
            (7, 3, [(0, 4), (7, 9), (30, 2)], "ends where a free one begins"),
            (16, 14, [(0, 4), (10, 22)], "has free neighbours on both sides"),
            (4, 6, [(0, 16), (30, 2)], "has free neighbours on both sides")):
        apart = sorted([*free, (start, size)])
        equal(f"give({free}, {start}, {size})", reader.give(list(free), start, size), right,
              f"The freed span {where}.", [(apart, f"The freed span {where}, and nothing was joined: later, no request "
                                                   "would find the two as one.")])
