"""Checks of chapter 1."""

import re

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect


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
        try: got = reader.fit(cg.tensor(x), cg.tensor(y), steps, rate)
        except (RuntimeError, TypeError) as e:
            if steps > 1 and re.search("was not recorded|NoneType", str(e)):
                e.add_note("The first step was right. After it, a or b is no variable any more: `a = a - ...` makes a "
                           "new\ntensor, which has no `.grad`. `a -= ...` changes the variable itself.")
            raise
        equal(f"{when}, (a, b)", got, descent(x, y, steps, rate),
              "Each step computes the loss anew inside of record(), calls backward(), and subtracts rate times the "
              "gradient from a and from b. The gradient of a variable of attach_grad() is written anew by each pass.",
              [(descent(x, y, steps, rate, sign=1.0), "The step goes uphill: subtract the gradient, do not add it."),
               (descent(x, y, steps, rate, total=True),
                "This is the gradient of the sum of the squares. The loss is their mean."),
               ([0.0, 0.0], "a and b have not moved: write `a -= ...` on the variables themselves.")], rtol=1e-3)


def differences(reader):
    for what, f, x, right in (("x^2", lambda x: x * x, 3.0, 6.0), ("x^3", lambda x: x ** 3, -1.0, 3.0),
                              ("e^x", np.exp, 2.0, np.exp(2.0))):
        h = 0.5
        equal(f"slope() of {what} at {x:g} for h = 0.5", reader.slope(f, x, h), (f(x + h) - f(x - h)) / (2 * h),
              "It is (f(x + h) - f(x - h)) / (2 h).",
              [((f(x + h) - f(x - h)) / h, "The two points are 2 h apart."),
               ((f(x + h) - f(x)) / h, "This goes from x to x + h. With x - h in the place of x, the error falls with "
                                       "the square of h.")])
        for gradient, good in ((right, True), (right * 1.01, False), (-right, False), (right + 1e-5, True)):
            got = reader.agrees(f, float(gradient), x)
            expect(bool(got) == good, f"agrees() says {bool(got)} of the gradient {gradient:g} of {what} at {x:g}, "
                                      f"where {right:g} is right. Compare the absolute value of the difference with "
                                      "1e-3 times the larger of 1 and the gradient.")
    got = reader.agrees(lambda x: 1e6 * x, 1e6 + 10, 1.0)
    expect(got, "agrees() says False of the gradient 1000010 where 1000000 is right. The difference of 10 is a part "
                "of 1e-5 of it: large gradients need a larger bound.")
