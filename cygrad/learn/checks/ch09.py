"""Checks of chapter 9."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect


def direction(reader):
    x, v = cg.tensor([1.0, 2.0, 3.0]), cg.tensor([0.5, 0.0, -1.0])
    calls = []

    def f(x):
        calls.append(x.shape)
        return cg.stack([x.sum(), (x * x).sum(), x[0] * x[1]])

    got = reader.along(f, x, v)
    equal("The derivative of (sum of x, sum of x², x0 x1) at (1, 2, 3) along (0.5, 0, -1)", got, [-0.5, -5.0, 1.0],
          "It is the Jacobian times v.", [(f(x), "These are the results of f. jvp returns a pair: the results and "
                                                 "their tangents."),
                                          ([6.0, 14.0, 2.0], "These are the results of f, not their tangents.")])
    expect(len(calls) <= 2, f"f was called {len(calls) - 1} times. In forward mode one call is enough, whatever the "
                            "number of results.")
    equal("The derivative of x³ along the same v", reader.along(lambda x: x * x * x, x, v), [1.5, 0.0, -27.0],
          "It is 3 x² v for each element.")


def each_sample(reader):
    rng = np.random.default_rng(0)
    w, xs, ys = rng.normal(size=3), rng.normal(size=(5, 3)), rng.normal(size=5)
    t = np.tanh(xs @ w)
    each = (2 * (t - ys) * (1 - t * t))[:, None] * xs
    right = np.sqrt((each ** 2).sum(1))
    got = reader.lengths(*(cg.tensor(a) for a in (w, xs, ys)))
    equal("lengths() of five samples", got, right,
          "The gradients of the samples are (5, 3); the length is over the second axis.",
          [(np.sqrt((each.sum(0) ** 2).sum()), "This is the length of the summed gradient. Map `grad(loss)` over the "
                                               "samples: vmap(grad(loss), in_axes=(None, 0, 0))."),
           (each, "These are the gradients. Take the length of each row."),
           (right ** 2, "The root is missing."),
           (np.sqrt((each ** 2).sum(0)), "The sum goes over the samples: take axis 1.")])
