"""The GPT of tiny_gpt.py on numbers: chapter 5 of the walkthrough with powers, exp and log, and a model in lists."""

import gc
import heapq
import itertools
import math
import operator
import time
import tracemalloc
from functools import reduce

import numpy as np

made = itertools.count()


def backward(result, one, contribution):
    """Chapter 5's backward. `contribution` of a gradient and of what a parent has beside it."""
    result.grad, waiting, seen = one, [(-result.order, result)], {result}
    while waiting:
        _, node = heapq.heappop(waiting)                # the most recent one: its gradient is complete
        for parent, derivative in node.parents:
            parent.grad = parent.grad + contribution(node.grad, derivative)
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(waiting, (-parent.order, parent))


class Scalar:
    """Chapter 5's class, with powers, exp and log."""

    def __init__(self, value, parents=()):
        self.value, self.parents, self.order, self.grad = value, parents, next(made), 0.0

    def __add__(self, y):
        if not isinstance(y, Scalar): return Scalar(self.value + y, ((self, 1.0),))
        return Scalar(self.value + y.value, ((self, 1.0), (y, 1.0)))

    def __mul__(self, y):
        if not isinstance(y, Scalar): return Scalar(self.value * y, ((self, y),))
        return Scalar(self.value * y.value, ((self, y.value), (y, self.value)))

    def __pow__(self, n): return Scalar(self.value ** n, ((self, n * self.value ** (n - 1)),))

    def exp(self): return Scalar(e := math.exp(self.value), ((self, e),))

    def log(self): return Scalar(math.log(self.value), ((self, 1 / self.value),))

    def tanh(self): return Scalar(t := math.tanh(self.value), ((self, 1 - t * t),))

    def backward(self): backward(self, 1.0, operator.mul)


def dot(x, y): return reduce(operator.add, map(operator.mul, x, y))


def plus(x, y): return [a + b for a, b in zip(x, y, strict=True)]


def product(x, w): return [dot(x, column) for column in zip(*w, strict=True)]


def norm(x):
    scale = (dot(x, x) * (1 / len(x)) + 1e-5) ** -0.5
    return [a * scale for a in x]


def loss_of_numbers(p, ids, heads):
    """loss_of() of one name, a list of letters: parameters are lists of lists of numbers."""
    xs = [plus(p["letters"][i], p["places"][t]) for t, i in enumerate(ids[:-1])]
    seen, size, losses = [norm(x) for x in xs], len(xs[0]) // heads, []
    q, k, v = ([product(x, p[w]) for x in seen] for w in ("query", "key", "value"))
    for t, x in enumerate(xs):
        mixed = []
        for part in (slice(h * size, (h + 1) * size) for h in range(heads)):
            e = [(dot(q[t][part], k[s][part]) * size ** -0.5).exp() for s in range(t + 1)]
            share = reduce(operator.add, e) ** -1.0
            mixed += product([a * share for a in e], [row[part] for row in v[:t + 1]])
        x = plus(x, product(mixed, p["mix"]))
        x = plus(x, product([a.tanh() for a in product(norm(x), p["wide"])], p["narrow"]))
        scores = product(norm(x), p["out"])
        losses.append(reduce(operator.add, [z.exp() for z in scores]).log() + scores[ids[t + 1]] * -1.0)
    return reduce(operator.add, losses) * (1 / len(losses))


def on_numbers(p, ids, heads):
    """The loss, and the gradients of the parameters `p`, matrices."""
    numbers = {k: [[Scalar(float(x)) for x in row] for row in v] for k, v in p.items()}
    loss = loss_of_numbers(numbers, ids, heads)
    loss.backward()
    return loss.value, {k: np.array([[x.grad for x in row] for row in v]) for k, v in numbers.items()}


def cost(step, *arguments):
    """What a step returns, its seconds (the least within one second), and Python's count of bytes at its peak: of
    objects and arrays."""
    seconds = []
    while sum(seconds) < 1:
        start = time.perf_counter()
        found = step(*arguments)
        seconds.append(time.perf_counter() - start)
    gc.collect()
    tracemalloc.start()
    step(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, min(seconds), peak
