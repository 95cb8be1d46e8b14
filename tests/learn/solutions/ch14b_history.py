"""A list that grows (chapter 14).

`history(w, batches)` returns the loss of each batch, for a plot. Something in it keeps the memory of all batches alive
until the list is gone. Change it so that after its return nothing is live that was not live before, and the list has
floats.
"""

import cygrad as cg


def history(w, batches):
    losses = []
    for x in batches:
        with cg.record():
            h = cg.tanh(x @ w)
            loss = cg.square(h).mean()
        losses.append(loss.item())
    return losses
