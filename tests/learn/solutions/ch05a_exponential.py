"""An exponential for the scalar autograd (chapter 5).

`Scalar` is the class of the chapter. Write `exp(s)` for a Scalar s: a new Scalar with the value e^s and one parent, s,
with the derivative of the result with respect to it. The derivative is a number that you have already computed.
"""

import heapq
import itertools
import math

made = itertools.count()


class Scalar:
    """A number with its parents and the derivative with respect to each."""

    def __init__(self, value, parents=()):
        self.value = value
        self.parents = parents          # pairs: (a Scalar, the derivative of this one with respect to it)
        self.order = next(made)
        self.grad = 0.0

    def __add__(self, other):
        return Scalar(self.value + other.value, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        return Scalar(self.value * other.value, ((self, other.value), (other, self.value)))

    def backward(self):
        self.grad = 1.0
        waiting, seen = [(-self.order, self)], {self}
        while waiting:
            _, node = heapq.heappop(waiting)                # the most recent one: its gradient is complete
            for parent, derivative in node.parents:
                parent.grad += node.grad * derivative       # contributions add up
                if parent not in seen:
                    seen.add(parent)
                    heapq.heappush(waiting, (-parent.order, parent))


def exp(s):
    e = math.exp(s.value)
    return Scalar(e, ((s, e),))
