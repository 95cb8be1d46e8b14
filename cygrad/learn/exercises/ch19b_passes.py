"""Several passes and one update (chapter 19).

Write `update(weights, losses, lr)`: one update by `cg.optim.Momentum` (with its default settings and the rate lr) for
the sum of several losses. `losses` is a list of functions; each computes with the variables in the list `weights`, and
gets a pass of its own, since all together do not fit. The gradients may not be stored: let the solver sum them up
within backward, in a scope of `accumulate()`, and update once after it. It returns nothing.
"""

import cygrad as cg


def update(weights, losses, lr):
    ...  # your code
