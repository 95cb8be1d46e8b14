"""Splitting needs joining (chapter 15).

Free memory is a list of spans (start, size), in the order of their addresses; no two of them touch. Write
`give(free, start, size)`: the list after the span (start, size), which was in use, was freed. Where it touches a free
span, on one side or on both, they become one.
"""


def give(free, start, size):
    joined = []
    for a, n in sorted([*free, (start, size)]):
        if joined and sum(joined[-1]) == a:
            joined[-1] = joined[-1][0], joined[-1][1] + n
        else:
            joined.append((a, n))
    return joined
