"""Places in an arena (chapter 26).

Write `place(lives, order)`: a dict from names to offsets. `lives` is as in the exercise before: name -> (bytes, first,
last). Take the buffers in the given order, and put each at the lowest offset where it overlaps no buffer that was
placed before and is alive in a step in which it is alive.
"""


def place(lives, order):
    offsets = {}
    for name in order:
        n, first, last = lives[name]
        low = 0
        for begin, end in sorted((offsets[k], offsets[k] + lives[k][0]) for k in offsets
                                 if lives[k][1] <= last and first <= lives[k][2]):
            if begin - low >= n:
                break
            low = max(low, end)
        offsets[name] = low
    return offsets
