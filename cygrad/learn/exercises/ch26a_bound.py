"""The least arena (chapter 26).

`lives` is a dict: the name of a buffer -> (bytes, first, last), where first and last are the steps in which it is first
and last used. Write `bound(lives)`: the largest sum of the bytes of buffers that are alive in the same step. No arena
can be smaller.
"""


def bound(lives):
    ...  # your code
