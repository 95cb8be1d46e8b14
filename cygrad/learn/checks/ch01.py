"""Checks of chapter 1."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal


def slope(reader):
    numbers = [-1.0, 0.0, 0.5, 2.0]
    values = [v ** 3 - 2 * v for v in numbers]
    equal("slope([-1, 0, 0.5, 2])", reader.slope(numbers), [3 * v * v - 2 for v in numbers],
          "The derivative of x^3 - 2 x is 3 x^2 - 2.",
          [(values, "These are the values of f. Return the `.grad` of the variable, after backward().")])
    reader.module.f = lambda x: cg.exp(x)
    equal("With f = exp, slope([-1, 0, 0.5, 2])", reader.slope(numbers), np.exp(numbers),
          "Call f inside of record() in place of writing its derivative: the function must work for any f.")


@np.errstate(all="ignore")                         # (a wrong step leaves the range of numbers)
def descent(x, y, steps, rate, sign=-1.0, total=False):
    """a and b by formulas; a step with another sign, or with the sum in the place of the mean."""
    a = b = 0.0
    for _ in range(steps):
        error = a * x + b - y
        n = 1 if total else len(x)
        a, b = a + sign * rate * 2 * (error * x).sum() / n, b + sign * rate * 2 * error.sum() / n
    return [a, b]


def line(reader):
    x = np.array([-1.0, 0.0, 1.0, 2.0, 4.0], "float32")
    y = 3 * x - 1
    for steps, rate, when in ((1, 0.01, "After one step"), (3, 0.01, "After three steps"), (200, 0.1, "In the end")):
        got = reader.fit(cg.tensor(x), cg.tensor(y), steps, rate)
        equal(f"{when}, (a, b)", got, descent(x, y, steps, rate),
              "Each step computes the loss anew inside of record(), calls backward(), and subtracts rate times the "
              "gradient from a and from b. The gradient of a variable of attach_grad() is written anew by each pass.",
              [(descent(x, y, steps, rate, sign=1.0), "The step goes uphill: subtract the gradient, do not add it."),
               (descent(x, y, steps, rate, total=True),
                "This is the gradient of the sum of the squares. The loss is their mean."),
               ([0.0, 0.0], "a and b have not moved: write `a -= ...` on the variables themselves.")], rtol=1e-3)
