"""Checks of chapter 21."""

import numpy as np

from cygrad.learn.checking import equal, expect


def rounder(reader):
    x = np.array([0.0, 0.4, 0.5, 0.6, 1.5, 2.5, -0.5, -1.5, -2.6, 1234.5], "float32")
    got = reader.rounded(x.copy())
    expect(isinstance(got, np.ndarray), "rounded() returns an array.")
    equal("The dtype of the result", str(got.dtype), "float32",
          "A Python number or a float64 constant makes the sum a float64, which has bits left for the fraction: use "
          "np.float32(...).")
    low = np.float32(2 ** 23)
    equal(f"rounded({x.tolist()})", got, np.rint(x), "Add and subtract 1.5 times 2 to the 23rd, in float32.",
          [(x, "Nothing was rounded. The constant must be so large that the sum has no bits for a fraction."),
           (np.floor(x + np.float32(0.5)), "Halves must go to the even number."),
           (np.trunc(x), "This cuts the fraction off."),
           ((x + low) - low, "With 2 to the 23rd, sums with negative numbers are below 2 to the 23rd, where halves "
                             "have a bit. Take 1.5 times as much.")], rtol=0)
    x = np.array([-99999.75, 2000000.4], "float32")
    equal(f"rounded({x.tolist()})", reader.rounded(x.copy()), np.rint(x),
          "The sum must stay below 2 to the 24th.", rtol=0)


def traffic(reader):
    n = 1 << 20
    for reads, writes, past, right in ((1, 1, False, 3), (1, 1, True, 2), (2, 1, False, 4), (3, 2, True, 5),
                                       (1, 0, True, 1)):
        equal(f"traffic(n, {reads}, {writes}, {past})", reader.traffic(n, reads, writes, past), 4 * n * right,
              "Each array that is read or written moves 4 n bytes.",
              [(n * right, "A float32 has four bytes."), (4 * n * (reads + writes),
                                                          "An ordinary store also reads the line before it writes, so "
                                                          "a written array moves twice.")])
    for k in (1, 2, 5):
        equal(f"chain(n, {k})", reader.chain(n, k), (12 * n * k, 8 * n),
              "k loops read and write an array each, and one loop reads x and writes y.",
              [((12 * n * k, 12 * n), "The one loop stores past the cache."),
               ((12 * n * k, 8 * n * k), "The one loop reads x once and writes y once, whatever k is.")])
