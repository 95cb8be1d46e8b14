"""Checks of chapter 5."""

import math

from cygrad.learn.checking import equal, expect


def exponential(reader):
    s = reader.Scalar(2.0)
    e = reader.exp(s)
    expect(isinstance(e, reader.Scalar), f"exp() is {type(e).__name__}, but a Scalar is right: a number has no "
                                         "parents.")
    equal("The value of exp(2)", e.value, math.exp(2.0), "Use math.exp of s.value.")
    expect(len(e.parents) == 1 and e.parents[0][0] is s,
           f"exp(s) has {len(e.parents)} parents, but one is right: the pair (s, derivative).")
    e.backward()
    equal("After backward, the gradient of s = 2", s.grad, math.exp(2.0),
          "The derivative of e^s is e^s, the value of the result.",
          [(1.0, "A derivative of 1 belongs to a sum. That of e^s is e^s."),
           (2.0 * math.exp(1.0), "That is the rule for powers, s e^(s - 1). The derivative of e^s is e^s.")])
    x, y = reader.Scalar(0.5), reader.Scalar(-1.0)
    (reader.exp(x * y) + x).backward()
    equal("For e^(x y) + x with x = 0.5 and y = -1, the gradient of x", x.grad, 1 - math.exp(-0.5),
          "It is y e^(x y) + 1.")


def backward(reader):
    number = reader.Quantity
    x, y = number(3.0), number(4.0)
    z = x * y + x
    z.backward()
    equal("For z = x y + x with x = 3 and y = 4, the gradient of z", z.grad, 1.0, "Begin with self.grad = 1.")
    equal("For z = x y + x with x = 3 and y = 4, the gradient of x", x.grad, 5.0,
          "There are two paths from x to z, with y and with 1.",
          [(1.0, "Contributions of several paths add up: `+=` in place of `=`."),
           (4.0, "Contributions of several paths add up: `+=` in place of `=`.")])
    equal("The gradient of y", y.grad, 3.0, "dz/dy is x.")
    a = number(1.0)
    h = a
    for _ in range(3): h = h + h
    h.backward()
    equal("After doubling a three times by h = h + h, the gradient of a", a.grad, 8.0,
          "Each number passes its gradient on once, after all contributions to it have arrived.")
    a = number(2.0)
    b = a * a
    c = b * a
    (c + b).backward()
    equal("For a^3 + a^2 at a = 2, the gradient of a", a.grad, 16.0,
          "b = a a gets contributions from c and from the sum. Visit c before b: from the number made last to the "
          "first.")
    many, chain = number(1.0), []
    for _ in range(12):
        many = many + many
        many.parents = Watched(many.parents)
        chain.append(many)
    Watched.reads = 0
    many.backward()
    expect(Watched.reads <= 4 * len(chain),
           f"For 12 doublings, parents were read {Watched.reads:,} times. There are {2 ** 12:,} paths, but 12 numbers: "
           "visit each number once, when its gradient is complete.")


class Watched:
    """Parents that count how often they are read."""

    reads = 0

    def __init__(self, parents): self.parents = parents

    def __len__(self): return len(self.parents)

    def __getitem__(self, i):
        Watched.reads += isinstance(i, int)
        return self.parents[i]

    def __iter__(self):
        Watched.reads += 1
        return iter(self.parents)
