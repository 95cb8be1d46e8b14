"""A line through points (chapter 1).

Write `fit(x, y, steps, rate)`: the slope a and the offset b, two floats, of the line a x + b after so many steps of
gradient descent. x and y are tensors of the same length. Begin with a = b = 0. The loss is the mean of the squares of a
x + b - y. Each step subtracts `rate` times the gradient from a and from b.
"""

import cygrad as cg


def fit(x, y, steps, rate):
    a, b = (cg.tensor(0.0).attach_grad() for _ in range(2))
    for _ in range(steps):
        with cg.record():
            loss = ((a * x + b - y) ** 2).mean()
        loss.backward()
        a -= rate * a.grad
        b -= rate * b.grad
    return a.item(), b.item()
