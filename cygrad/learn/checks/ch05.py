"""Checks of chapter 5."""

import math
import random

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


GRAPHS = (
    ("b = a * a; c = b * a; z = c + b", "b gets contributions from c and from z: visit c before b. "),
    ("b = a * a; c = b * a; z = b + c", "b gets contributions from z and from c: visit c before b, although z has b "
                                        "as its first parent. "),
    ("b = a * a; c = a * b; z = b + c", "b gets contributions from z and from c: visit c before b, although z has b "
                                        "as its first parent. "),
    ("b = a + a; c = b * b; d = c + b; e = b * d; z = c + e",
     "c gets contributions from z and from d, which has to wait for e: the order is z, e, d, c, b. "),
)


def random_graphs():
    """Ten of seven operations on numbers made shortly before."""
    draw = random.Random(5)
    for _ in range(10):
        names = ["a"]
        for name in "bcdefgz":
            names.append(f"{name} = {draw.choice(names[-3:])[0]} {draw.choice('+*')} {draw.choice(names[-3:])[0]}")
        yield "; ".join(names[1:])


def derivative(graph, a):
    """dz/da by a complex step: the imaginary part of f(a + ih) is h f'(a), exactly to rounding for a small h."""
    names = {"a": complex(a, 1e-20)}
    exec(graph, {}, names)
    return names["z"].imag / 1e-20


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
    for graph, look in (*GRAPHS, *((graph, "") for graph in random_graphs())):
        names = {"a": number(2.0)}
        exec(graph, {}, names)
        names["z"].backward()
        equal(f"For {graph}, with a = 2, the gradient of a", names["a"].grad, derivative(graph, 2.0),
              f"{look}A number has passed its gradient on before all contributions to it had arrived, or twice. Visit "
              "the numbers from the one made last to the one made first.")
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
