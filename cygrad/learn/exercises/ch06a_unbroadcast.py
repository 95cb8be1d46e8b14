"""The gradient of what was broadcast (chapter 6).

In x + b, where x is (4, 3) and b is (3,), NumPy repeats b along the first axis. The gradient that arrives is (4, 3),
and that of b must be (3,): each number of b was used four times, so its contributions are added. Write
`unbroadcast(g, shape)`: the gradient g, an array, summed to the shape of the operand. There are two cases: axes that
the operand does not have, which NumPy puts in front, and axes where it has the size 1.
"""

import numpy as np


def unbroadcast(g, shape):
    ...  # your code
