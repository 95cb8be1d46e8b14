"""Strides (chapter 11).

Write `strides(shape)`: the strides, in elements, of a dense tensor of that shape in row-major order, as a tuple. The
last axis has the stride 1. Then write `offset(index, strides)`: how many elements from the first one the element at
that index is.
"""


def strides(shape):
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= n
    return tuple(reversed(found))


def offset(index, strides):
    return sum(i * step for i, step in zip(index, strides, strict=True))
