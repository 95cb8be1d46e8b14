"""Descent without gradients (chapter 19).

Write `train(weights, loss, lr, steps)`: so many steps of plain descent (`cg.optim.Sgd`) of the function `loss()`, which
computes with the variables in the list `weights`. At no moment may the gradients of all weights be in memory: let the
solver update within backward. It returns nothing.
"""

import cygrad as cg


def train(weights, loss, lr, steps):
    solver = cg.optim.Sgd(weights, lr=lr)
    with solver.fuse_into_backward():
        for _ in range(steps):
            with cg.record():
                y = loss()
            y.backward()
