"""Compute the minimax polynomials of include/cygrad/double.h: python tools/fit.py [NAME ...]

Remez's exchange algorithm, in 60 digits of mpmath, finds the polynomial p of the given degree that minimises the
largest |weight(x) (p(x) - f(x))| over the interval. The program prints the coefficients as the nearest doubles, the
constant one first, and the largest error before rounding the coefficients, as a power of two."""

import sys

from mpmath import (
    asin, atan, atanh, cos, diff, erf, erfc, exp, expm1, log, lu_solve, matrix, mp, mpf, pi, polyval, sin, sqrt,
)

mp.dps = 60


def scaled_erfc(t):
    """(1 + x) exp(x^2) erfc(x) at x = 4 (1 + t) / (1 - t): falls from 1 at x = 0 to 0.56."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + x) * exp(x * x) * erfc(x)


def root(f):
    """f of the root of a number, for even series."""
    return lambda z: f(sqrt(z))


R, Z = log(2) / 2, (pi / 4) ** 2
FITS = {        # the function, the ends of the interval, the degree, the weight
    "exp": (lambda r: (expm1(r) - r) / r**2, -R, R, 10, lambda r: abs(r) + mpf("1e-3")),
    "log": (root(lambda s: 2 * (atanh(s) - s) / s**3), 0, (3 - 2 * sqrt(mpf(2)))**2, 6, lambda z: z / 2),
    "sin": (root(lambda x: (sin(x) - x) / x**3), 0, Z, 5, lambda z: z),
    "cos": (root(lambda x: (cos(x) - 1 + x**2 / 2) / x**4), 0, Z, 5, lambda z: z**2),
    "asin": (root(lambda x: (asin(x) - x) / x**3), 0, mpf(1) / 4, 12, lambda z: z),
    "atan": (root(lambda x: (atan(x) - x) / x**3), 0, (sqrt(mpf(2)) - 1)**2, 10, lambda z: z),
    "erf": (root(lambda x: (erf(x) / x - 2 / sqrt(pi)) / x**2), 0, mpf("0.65")**2, 8, lambda z: z),
    "erfc": (scaled_erfc, -1, mpf("0.75"), 23, lambda t: 1),
    "slope": (lambda t: diff(scaled_erfc, t), -1, mpf("0.75"), 3, lambda t: 1),
}


def fit(f, low, high, degree, weight):
    """(coefficients, largest error)"""
    low, high = low + (high - low) * mpf(10)**-20, mpf(high)        # f may be undefined at `low`
    middle, half, n = (low + high) / 2, (high - low) / 2, degree + 2
    grid = [middle - half * cos(pi * i / (20 * n)) for i in range(20 * n + 1)]
    values = [(f(x), weight(x)) for x in grid]
    chosen = [20 * i * n // (n - 1) for i in range(n)]
    while True:
        a = matrix(n, n)
        for row, i in enumerate(chosen):
            for j in range(degree + 1):
                a[row, j] = grid[i]**j
            a[row, n - 1] = (-1)**row / values[i][1]
        solved = lu_solve(a, matrix([values[i][0] for i in chosen]))
        p = list(solved)[:degree + 1]
        errors = [w * (polyval(p[::-1], x) - y) for x, (y, w) in zip(grid, values, strict=True)]
        peaks = []                                  # the largest error of each run of one sign
        for i, e in enumerate(errors):
            if peaks and (errors[peaks[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[peaks[-1]]): peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > n:                       # too many: drop the smaller of the two ends
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        worst = max(abs(errors[i]) for i in peaks)
        if len(peaks) < n or peaks == chosen or worst < abs(solved[n - 1]) * mpf("1.001"):
            return p, worst
        chosen = peaks


if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        p, worst = fit(*FITS[name])
        print(f"{name}: error 2^{float(log(worst, 2)):.1f}")
        print(",\n".join(f"    {float(c)!r}" for c in p))
