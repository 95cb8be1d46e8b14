"""How long is the gradient of each sample? (chapter 9)

`loss(w, x, y)` is the loss of one sample: x is (3,), y is a number. Write `lengths(w, xs, ys)`: for samples xs (n, 3)
and ys (n,), the n lengths (the root of the sum of squares) of the gradients with respect to w. A training step has only
the sum of these gradients. `cg.func.grad` gives the gradient of one sample, `cg.func.vmap` maps over samples.
"""

import cygrad as cg


def loss(w, x, y):
    return cg.square(cg.tanh((x * w).sum()) - y)


def lengths(w, xs, ys):
    ...  # your code
