"""The wording of errors: indices, gathering and scattering."""

import numpy as np

import cygrad as cg
from cygrad.ops.shapes.index import add_at
from cygrad.ops.shapes.slices import ArrayIndex, Region, Slices
from wrong import kept_index, run_with_another_mask

CASES = [
    (lambda: add_at(cg.zeros(3), 1, cg.ones(2), [0, 1]), IndexError,
     "add_at: 1 index arrays from axis 1 on do not fit x of shape (3,)"),
    (lambda: cg.zeros(3)[(None,) * 16], ValueError,
     "a tensor has at most 16 dimensions, but this index would give 17"),
    (lambda: Slices((0,) * 17), IndexError,
     "an index has at most 16 dimensions, this one has more"),
    (lambda: Region((2, 3), Slices((0,))), IndexError,
     "put_slice: the index is for 1 dimensions, but the shape has 2"),
    (lambda: ArrayIndex(Slices((None,)), (1,), 0), IndexError,
     "put: order (1,) and axis 0 do not fit an index with 1 dimensions"),
    (lambda: cg.zeros((2, 3))[0, 0, 0], IndexError,
     "too many indices: 3 for a tensor of 2 dimensions"),
    (lambda: cg.zeros((2, 3))[..., ...], IndexError,
     "an index has at most one Ellipsis (...)"),
    (lambda: cg.zeros((2, 3))["a"], TypeError,
     "only ints, slices, ..., None and arrays of integers or bools can index; got str"),
    (lambda: cg.zeros(3)[[0.5]], TypeError,
     "indices must be integers, got a float32 tensor of shape (1,)"),
    (lambda: cg.zeros(3)[np.array([0, 2**64 - 1], dtype="uint64")], IndexError,
     "index 18446744073709551615 is out of range for any dimension"),
    (lambda: cg.zeros((2, 3))[:, [0, 3]], IndexError,
     "index 3 is out of range for a dimension of size 3"),
    (lambda: cg.zeros((2, 3))[:, [True]], IndexError,
     "a mask of shape (1,) cannot index dimensions of sizes (3,); they must be equal"),
    (lambda: cg.zeros(3)[([0], *[None] * 16)], ValueError,
     "a tensor has at most 16 dimensions, but this index would give 17"),
    (lambda: cg.zeros((1,) * 16)[([0],) * 15], IndexError,
     "an index has at most 14 arrays, this one has 15"),
    (lambda: cg.take(cg.zeros((1,) * 16), [[0]], 0), ValueError,
     "take: a tensor has at most 16 dimensions, but this index would give 17"),
    (lambda: cg.zeros((2, 3))[[0, 1], [0, 1, 2]], ValueError,
     "take: shapes (2,) and (3,) do not broadcast; sizes 2 and 3 in dimension -1 must agree, or one of them must be 1"),
    (lambda: kept_index([0, 1]).backward(), cg.InplaceError,
     "take: index 1099511627776 is out of range for a dimension of size 2; it was modified since forward; pass a "
     "copy()"),
    (lambda: run_with_another_mask(), cg.InplaceError,
     "mask_put: the mask had 1 true elements at first and has 2 now; it was modified since; pass a copy()"),
    (lambda: cg.ops.ROWS["add_at"].function(cg.zeros(3), 0, cg.zeros(2), cg.tensor([1])), ValueError,
     "add_at: v has shape (2,), but the index selects (1,)"),
    (lambda: cg.ops.ROWS["select"].function(cg.zeros(3), cg.zeros(3)), IndexError,
     "select: x is (3,) and the mask is (3,), float32; the mask must be bool and have the shape of x, or of its first "
     "dimensions"),
    (lambda: cg.gather(cg.zeros((2, 3)), 1, [[0], [0], [0]]), ValueError,
     "gather: x is (2, 3) and the index is (3, 1); they must have as many dimensions, and only dimension 1 of the "
     "index may be larger than in x"),
    (lambda: cg.gather(cg.zeros((2, 3)), 1, [[3]]), IndexError,
     "gather: index 3 is out of range for a dimension of size 3"),
    (lambda: cg.scatter_add(cg.zeros(3), 0, [0], [True]), TypeError,
     "scatter_add: x is float32 and src is bool; they must have the same dtype, not bool; convert with astype"),
    (lambda: cg.scatter_add(cg.zeros(3), 0, [0, 1], [1.0]), ValueError,
     "scatter_add: the index is (2,) but src is (1,); src must be at least as large in each dimension"),
    (lambda: cg.one_hot([0, 3], 3), IndexError,
     "one_hot: label 3 is not a class; the classes are 0 to 2"),
    (lambda: cg.one_hot([0], -1), ValueError,
     "one_hot: classes is -1; it must be at least 0"),
    (lambda: cg.one_hot(cg.zeros((1,) * 16, dtype="int64"), 2), ValueError,
     "one_hot: the labels have 16 dimensions, the maximum; reshape them"),
    (lambda: cg.zeros((2, 3))[0, 3], IndexError,
     "index 3 is out of range for dimension 1 of size 3"),
    (lambda: cg.zeros(2, dtype="int64").__setitem__(0, cg.tensor(1.5)), TypeError,
     "setitem: cannot write float32 values into a tensor of dtype int64; cast them with astype"),
]
