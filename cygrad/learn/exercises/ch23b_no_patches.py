"""A convolution without patches (chapter 23).

Write `convolution(x, w)` for tensors x (c, height, width) and w (o, c, k, k): the same as `cg.conv2d` without padding,
as a sum of k x k matrix products, one for each element of the kernel. Each is the product of a matrix (o, c) with a
shifted part of the image. Never make the matrix of patches. Do not use conv2d or unfold.
"""

import cygrad as cg


def convolution(x, w):
    ...  # your code
