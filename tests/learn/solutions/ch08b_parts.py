"""A batch in parts (chapter 8).

The batch x (n, 3) does not fit into memory. Write `gradient(w, x, parts)`: the gradient of the loss
`cg.square(x @ w).mean()` with respect to w, a tensor of 3 numbers, computed from so many parts of x of equal size, one
backward pass for each. `cg.split(x, parts)` makes the parts. The result must be that of the whole batch.
"""

import cygrad as cg


def gradient(w, x, parts):
    w = w.copy().requires_grad_()
    for part in cg.split(x, parts):
        with cg.record():
            loss = cg.square(part @ w).mean() / parts
        loss.backward()
    return w.grad
