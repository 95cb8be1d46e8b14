"""A softmax in one pass (chapter 24).

Write `online(parts)`: the softmax of a row of scores times the values, where the row comes in parts. `parts` is an
iterator of pairs (s, v) of NumPy arrays: some scores (n,) and the values that belong to them (n, width). Each part is
gone when the next one comes. Keep the maximum so far, the sum of e^(s - maximum) so far, and the sum of values so far.
The scores may be large: no exponent may be above 0.
"""

import numpy as np


def online(parts):
    ...  # your code
