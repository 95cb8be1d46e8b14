"""A loss that does not fall (chapter 4).

A model returns predictions of shape (n, 1), and the targets have the shape (n,). `loss(predictions, targets)` should be
the mean of the squares of the n differences. No error is raised, but the model learns to predict the mean of all
targets. Look at the shape of the difference, and repair the function.
"""

import cygrad as cg


def loss(predictions, targets):
    return cg.square(predictions - targets).mean()
