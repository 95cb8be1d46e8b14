"""The wording of errors: statistics and selections that are made of operators."""

import cygrad as cg


def x():
    return cg.zeros((2, 3))


CASES = [
    (lambda: cg.diff(x(), -1), ValueError, "diff: n is -1; it must be at least 0"),
    (lambda: cg.diff(1.0), ValueError, "diff: x has no dimensions; it must have at least one"),
    (lambda: cg.gradient(x(), edge_order=3), ValueError, "gradient: edge_order must be 1 or 2, got 3"),
    (lambda: cg.gradient(cg.zeros((2, 3, 4)), 1.0, 2.0), ValueError,
     "gradient: got 2 spacings for 3 axes; give none, one, or one for each"),
    (lambda: cg.gradient(x(), axis=0, edge_order=2), ValueError,
     "gradient: x has 2 samples along axis 0; edge_order 2 needs at least 3"),
    (lambda: cg.gradient(x(), [0.0, 1.0], axis=1), ValueError,
     "gradient: a spacing has shape (2,); wanted a number or (3,), a coordinate for each sample along axis 1"),
    (lambda: cg.median(x(), (0, 0)), ValueError, "median: duplicate axis in (0, 0)"),
    (lambda: cg.median(cg.zeros((0, 3)), 0), ValueError,
     "median: cannot reduce a tensor of shape (0, 3) over axes of size 0"),
    (lambda: cg.quantile(x(), 1.5), ValueError, "quantile: q is 1.5; wanted numbers from 0 to 1"),
    (lambda: cg.quantile(x(), 0.5, method="cubic"), ValueError,
     "quantile: method must be one of linear, lower, higher, midpoint, nearest, got 'cubic'"),
    (lambda: cg.percentile(x(), 101), ValueError, "percentile: q is 101; wanted numbers from 0 to 100"),
    (lambda: cg.average(x(), 1, cg.ones(2)), ValueError,
     "average: weights has shape (2,) and x has (2, 3); it must have the shape of x, or one "
     "dimension of the size of one axis"),
    (lambda: cg.take_along_axis(x(), [0]), ValueError,
     "take_along_axis: indices has shape (1,) and x has (2, 3); they must have as many dimensions"),
    (lambda: cg.index_add(x(), 1, [0, 1], x()), ValueError,
     "index_add: index has shape (2,) and src has (2, 3); they must have shapes (n,) and (2, n)"),
    (lambda: cg.masked_fill(x(), x(), 1.0), TypeError, "masked_fill: the mask is float32; it must be bool"),
    (lambda: cg.masked_fill(x(), x() > 0, cg.zeros(3)), ValueError,
     "masked_fill: value has shape (3,); it must be a number"),
    (lambda: cg.nonzero(1.0), ValueError, "nonzero: x has no dimensions; it must have at least one"),
]
