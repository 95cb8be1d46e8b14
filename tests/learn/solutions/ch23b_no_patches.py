"""A convolution without patches (chapter 23).

Write `convolution(x, w)` for tensors x (c, height, width) and w (o, c, k, k): the same as `cg.conv2d` without padding,
as a sum of k x k matrix products, one for each element of the kernel. Each is the product of a matrix (o, c) with a
shifted part of the image. Never make the matrix of patches. Do not use conv2d or unfold.
"""

import cygrad as cg


def convolution(x, w):
    o, c, k, _ = w.shape
    rows, columns = x.shape[1] - k + 1, x.shape[2] - k + 1
    y = cg.zeros((o, rows * columns), x.dtype)
    for i in range(k):
        for j in range(k):
            y += w[:, :, i, j] @ x[:, i:i + rows, j:j + columns].reshape(c, -1)
    return y.reshape(o, rows, columns)
