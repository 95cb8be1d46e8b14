"""The matrix of patches (chapter 23).

Write `im2col(x, k, stride)`: for an image x (channels, height, width), a NumPy array, the matrix with a row for each
element of a kernel (channel, then row, then column) and a column for each position of a k x k kernel that is moved by
`stride`, row by row. So `w.reshape(outputs, -1) @ im2col(x, k, stride)` is the convolution.
"""

import numpy as np


def im2col(x, k, stride):
    ...  # your code
