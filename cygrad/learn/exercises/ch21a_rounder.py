"""Rounding without an instruction for it (chapter 21).

A float32 has 24 bits. Write `rounded(x)`: the array x of float32 numbers, each below 2^21 in absolute value, rounded to
whole numbers (between two of them to the even one) by an addition and a subtraction of one constant. The result is
float32. No np.round, no integers, no branches.
"""

import numpy as np


def rounded(x):
    ...  # your code
