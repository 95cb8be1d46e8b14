"""Backward in the right order (chapter 5).

Here is the class of the chapter without its `backward`. Write it: the gradient of self becomes 1, and each number
passes its gradient times the derivative on to its parents, where contributions add up. A number may do so only after
all contributions to its own gradient have arrived, and only once: visit the numbers from the one made last (`order`) to
the one made first.
"""

import itertools

made = itertools.count()


class Quantity:
    """A number with its parents and the derivative with respect to each."""

    def __init__(self, value, parents=()):
        self.value = value
        self.parents = parents          # pairs: (a Quantity, the derivative of this one with respect to it)
        self.order = next(made)
        self.grad = 0.0

    def __add__(self, other):
        return Quantity(self.value + other.value, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        return Quantity(self.value * other.value, ((self, other.value), (other, self.value)))

    def backward(self):
        ...  # your code
