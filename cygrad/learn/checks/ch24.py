"""Checks of chapter 24."""

import numpy as np

from cygrad.learn.checking import equal


def softmax(s, v):
    p = np.exp(s - s.max())
    return p / p.sum() @ v


def online(reader):
    rng = np.random.default_rng(0)
    for what, s in (("rising scores", np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])),
                    ("falling scores", np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])),
                    ("scores of a thousand", np.array([1000.0, 1001.0, 999.0, 1002.0, 998.0, 1000.0]))):
        v = rng.normal(size=(6, 3))

        def parts(s=s, v=v):
            scores, values = np.empty(2), np.empty((2, 3))      # one memory for all parts
            for j in range(0, 6, 2):
                scores[:], values[:] = s[j:j + 2], v[j:j + 2]
                yield scores, values

        m, total, y = -np.inf, 0.0, 0.0
        for sp, vp in parts():                                  # without scaling to the new maximum
            m = max(m, sp.max())
            total, y = total + np.exp(sp - m).sum(), y + np.exp(sp - m) @ vp
        with np.errstate(all="ignore"): got = reader.online(parts())
        text = f"With {what}, the result"
        mistakes = [(y / total, "When the maximum grows from m to top, multiply the old sums by e^(m - top)."),
                    (softmax(s[4:], v[4:]), "Only the last part is in it. Do not keep the arrays: each part "
                                            "overwrites the one before."),
                    (np.full(3, np.nan), "It is NaN: e^s is infinite for large scores. Subtract the maximum so far.")]
        equal(text, got, softmax(s, v), "It is the sum of e^(s - m) v over the sum of e^(s - m).",
              mistakes + [(softmax(s, v) * np.exp(s - s.max()).sum(), "Divide by the sum of the weights at the end.")])


def halves(reader):
    rng = np.random.default_rng(0)
    s, v = rng.normal(size=10) * 3, rng.normal(size=(10, 2))

    def state(s, v): return s.max(), np.exp(s - s.max()).sum(), np.exp(s - s.max()) @ v

    for cut in (5, 3):
        a, b, right = state(s[:cut], v[:cut]), state(s[cut:], v[cut:]), state(s, v)
        for first, second in ((a, b), (b, a)):
            m, l, y = reader.combined(first, second)
            equal("m of the whole row", m, right[0], "It is the larger of the two maxima.")
            equal("l of the whole row", l, right[1], "Scale each l by e^(its m - the larger m), then add.",
                  [(first[1] + second[1], "The halves are relative to different maxima. Scale both to the larger "
                                          "one.")])
            equal("y of the whole row", y, right[2], "Scale each y as its l, then add.",
                  [(first[2] + second[2], "The halves are relative to different maxima. Scale both to the larger one."),
                   (right[2] / right[1], "y is not yet divided by l: whoever has the whole row divides.")])
