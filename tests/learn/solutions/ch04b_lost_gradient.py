"""A gradient that gets lost (chapter 4).

`loss(w, x)` should be the mean of (x w - 1)², divided by the length of w, the root of the sum of its squares. It
returns the right number, but the gradient of w is wrong: a part of the calculation leaves the graph. Repair the
function without changing what it returns.
"""

import cygrad as cg


def loss(w, x):
    length = cg.sqrt((w * w).sum())
    error = cg.square(x @ w - 1.0).mean()
    return error / length
