"""The errors of cygrad's functions in units in the last place, compared with mpmath.

`python tests/support/ulps.py [NAMES] [--points 1000000] [--dtype float32]` prints the largest errors and
where they are. Half of the points have random bits, so they cover every exponent and denormals; the other half is dense
where a function is hard to compute.
tests/kernels/test_mathematics.py holds a sample against `bound`."""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import mpmath
import numpy as np

import cygrad as cg

BITS = 160                                          # mpmath's precision: 53, and the bits that cancel near 1 and near 0
CHUNK = 5000
INF = float("inf")


@dataclass
class Case:
    """A function: its exact value; the interval in which it is neither constant nor infinite, in float32 and in
    float64; the intervals with dense points; the largest allowed errors, in float32 and in float64."""
    exact: object
    ends: tuple = ((-INF, INF), (-INF, INF))
    dense: tuple = ((-2, 2), (-20, 20))
    single: float = 2
    double: float = 1


def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


EXP = ((-104, 89), (-746, 710))
CASES = {
    "exp": Case(mpmath.exp, EXP, ((-1, 1), (-104, 89), (-746, 710))),
    "expm1": Case(mpmath.expm1, ((-20, 89), (-40, 710)), ((-1, 1), (-5, 5), (-40, 710))),
    "log": Case(mpmath.log, ((0, INF),) * 2, ((0, 3), (0.99, 1.01))),
    "log2": Case(lambda x: mpmath.log(x, 2), ((0, INF),) * 2, ((0, 3), (0.99, 1.01))),
    "log10": Case(mpmath.log10, ((0, INF),) * 2, ((0, 3), (0.99, 1.01)), double=2),
    "exp2": Case(lambda x: mpmath.power(2, x), ((-150, 128), (-1075, 1024)), ((-1, 1), (-150, 128), (-1075, 1024))),
    "log1p": Case(mpmath.log1p, ((-1, INF),) * 2, ((-1, 3), (-0.01, 0.01))),
    "sin": Case(mpmath.sin, dense=((-4, 4), (-1e3, 1e3), (-1e7, 1e7), (-1e9, 1e9))),
    "cos": Case(mpmath.cos, dense=((-4, 4), (-1e3, 1e3), (-1e7, 1e7), (-1e9, 1e9))),
    "tan": Case(mpmath.tan, dense=((-4, 4), (-1e3, 1e3), (-1e7, 1e7), (-1e9, 1e9))),
    "asin": Case(mpmath.asin, ((-1, 1),) * 2, ((-1, 1), (0.99, 1))),
    "acos": Case(mpmath.acos, ((-1, 1),) * 2, ((-1, 1), (0.99, 1))),
    "atan": Case(mpmath.atan),
    "sinh": Case(mpmath.sinh, ((-90, 90), (-711, 711)), ((-2, 2), (-90, 90), (-711, 711))),
    "cosh": Case(mpmath.cosh, ((-90, 90), (-711, 711)), ((-2, 2), (-90, 90), (-711, 711))),
    "tanh": Case(mpmath.tanh, ((-10, 10), (-20, 20)), ((-1, 1), (-20, 20))),
    "asinh": Case(mpmath.asinh),
    "acosh": Case(mpmath.acosh, ((1, INF),) * 2, ((1, 1.01), (1, 20))),
    "atanh": Case(mpmath.atanh, ((-1, 1),) * 2, ((-1, 1), (0.99, 1))),
    "erf": Case(mpmath.erf, ((-4, 4), (-6, 6)), ((-1.1, 1.1), (-6, 6))),
    "erfc": Case(mpmath.erfc, ((-4, 10), (-6, 26.5)), ((-1.1, 1.1), (-4, 10)), 5, 3),
    "erfinv": Case(mpmath.erfinv, ((-1, 1),) * 2, ((-1, 1), (0.99, 1)), 4, 2),
    "sigmoid": Case(lambda x: 1 / (1 + mpmath.exp(-x)), ((-104, 20), (-746, 40)), ((-2, 2), (-20, 20), (-746, 40))),
    "softplus": Case(lambda x: mpmath.log1p(mpmath.exp(x)), ((-104, INF), (-746, INF)), ((-2, 2), (-20, 20)), double=2),
    # Products with a factor that has fewer digits if it is denormal. Denormal factors are excluded.
    "silu": Case(lambda x: x / (1 + mpmath.exp(-x)), ((-87, INF), (-708, INF)), ((-2, 2), (-20, 20)), 3, 2.5),
    "gelu": Case(lambda x: x * normal(x), ((-12.9, INF), (-37, INF)), ((-2, 2), (-12.9, 10)), 6, 2.5),
    "mish": Case(lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), ((-87, INF), (-708, INF)),
                 ((-2, 2), (-20, 20)), 3, 4),
    "softsign": Case(lambda x: x / (1 + abs(x)), double=1.5),
    "logsigmoid": Case(lambda x: -mpmath.log1p(mpmath.exp(-x)), ((-INF, 104), (-INF, 746)), double=2),
    "elu": Case(lambda x: x if x > 0 else mpmath.expm1(x), ((-20, INF), (-40, INF)), ((-1, 1), (-5, 5), (-40, 10))),
    "pow": Case(mpmath.power),
}


def bound(name, dtype):
    """The largest allowed error, in ulp."""
    return CASES[name].single if dtype == "float32" else CASES[name].double


def points(name, dtype, count, rng):
    """`count` numbers in the function's interval."""
    case, dtype = CASES[name], np.dtype(dtype)
    low, high = case.ends[dtype == np.float64]
    kept, found = [], 0
    while found < count // 2:
        x = rng.integers(0, 2 ** (8 * dtype.itemsize), count, dtype=f"u{dtype.itemsize}").view(dtype)
        x = x[(x > low) & (x < high)]               # neither NaN nor infinite
        kept.append(x[:count // 2 - found])
        found += kept[-1].size
    for interval in case.dense:
        a, b = max(interval[0], low), min(interval[1], high)
        x = rng.uniform(a, b, (count - count // 2) // len(case.dense)).astype(dtype)
        kept.append(x[(x > low) & (x < high)])
    return np.concatenate(kept)


def pairs(dtype, count, rng):
    """Bases and exponents whose power is usually neither 0 nor infinite. Negative bases have integer exponents."""
    x = np.abs(points("atan", dtype, count, rng))
    x = x[x > 0]
    most = 150 if dtype == "float32" else 1075
    with np.errstate(over="ignore", divide="ignore"):
        y = (rng.uniform(-most, most, x.size) / np.log2(x.astype(np.float64))).astype(dtype)
    y = np.where(np.isfinite(y), y, 1).astype(dtype)
    whole = rng.random(x.size) < 0.2
    y[whole] = np.rint(np.clip(y[whole], -1e6, 1e6))
    x[whole & (rng.random(x.size) < 0.5)] *= -1
    return x, y


def references(task):
    """The exact values of one chunk, each as a sum of two float64."""
    name, numbers = task
    exact = CASES[name].exact
    high, low = np.empty((2, len(numbers[0])))
    with mpmath.workprec(BITS):
        for i, at in enumerate(zip(*(column.tolist() for column in numbers), strict=True)):
            value = exact(*map(mpmath.mpf, at))
            high[i] = float(value)
            low[i] = float(value - high[i]) if np.isfinite(high[i]) else 0
    return high, low


def errors(y, high, low):
    """|y - reference| in ulp of the reference. Overflow counts as the power of 2 above the largest number."""
    info = np.finfo(y.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(info.max)
        exponent = np.frexp(np.clip(np.abs(high), float(info.smallest_normal), largest))[1]
        ulp = np.ldexp(1.0, exponent - info.nmant - 1)
        over = largest + (0 if y.dtype == np.float64 else np.ldexp(1.0, info.maxexp - info.nmant - 1))
        y = np.clip(y.astype(np.float64), -over, over)
        return np.abs((y - np.clip(high, -over, over)) - np.where(np.abs(high) < over, low, 0)) / ulp


def measure(name, dtype, count, seed=0, run=map):
    """The error at each of about `count` points, and the points: one array for each argument."""
    rng = np.random.default_rng(seed)
    numbers = pairs(dtype, count, rng) if name == "pow" else (points(name, dtype, count, rng),)
    y = getattr(cg, name)(*map(cg.tensor, numbers)).numpy()
    assert y.dtype == dtype
    starts = range(0, y.size, CHUNK)
    chunks = list(run(references, [(name, [column[s:s + CHUNK] for column in numbers]) for s in starts]))
    high, low = (np.concatenate(part) for part in zip(*chunks, strict=True))
    wrong = errors(y, high, low)
    return np.where(np.isnan(wrong), INF, wrong), numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="functions (all of them)")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--dtype", choices=["float32", "float64"], help="one precision only")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    failed = False
    print(f"{'function':10} {'dtype':8} {'points':>9} {'largest':>9} {'mean':>7} {'bound':>6}  at")
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name in arguments.names or CASES:
            for dtype in [arguments.dtype] if arguments.dtype else ["float32", "float64"]:
                wrong, numbers = measure(name, dtype, arguments.points, run=pool.map)
                worst, most = int(wrong.argmax()), bound(name, dtype)
                failed |= wrong[worst] > most
                at = ", ".join(float(column[worst]).hex() for column in numbers)
                print(f"{name:10} {dtype:8} {wrong.size:9,} {wrong[worst]:9.3f} {wrong.mean():7.3f} {most:6g}  {at}"
                      f"{'  TOO LARGE' if wrong[worst] > most else ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
