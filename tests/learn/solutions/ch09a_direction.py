"""The derivative in a direction (chapter 9).

Write `along(f, x, v)`: the derivative of f at the tensor x in the direction v, a tensor of the shape of x. f may have
any number of results; the derivative has their shape. One call of f must be enough: use forward mode (`cg.func.jvp`).
"""

import cygrad as cg


def along(f, x, v):
    _, tangent = cg.func.jvp(f, (x,), (v,))
    return tangent
