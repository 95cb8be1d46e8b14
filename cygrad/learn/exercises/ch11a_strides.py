"""Strides (chapter 11).

Write `strides(shape)`: the strides, in elements, of a dense tensor of that shape in row-major order, as a tuple. The
last axis has the stride 1. Then write `offset(index, strides)`: how many elements from the first one the element at
that index is.
"""


def strides(shape):
    ...  # your code


def offset(index, strides):
    ...  # your code
