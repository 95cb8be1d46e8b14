"""Rows that are too far apart (chapter 22).

A cache has 64 sets, and a line of 64 bytes at the address a belongs to set a // 64 % 64. Write `sets(pitch, rows)`: to
how many different sets the first lines of so many rows belong, if a row begins `pitch` bytes after the one before it,
and the first one at 0. Then write `padded(nbytes, rows)`: the smallest pitch of at least `nbytes`, a multiple of 64,
for which that number is as large as the number of rows allows (64 at most).
"""


def sets(pitch, rows):
    ...  # your code


def padded(nbytes, rows):
    ...  # your code
