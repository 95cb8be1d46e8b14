"""The wording of errors: indices, gathering and scattering."""

import numpy as np

import cygrad as cg
from cygrad.ops.index import add_at
from cygrad.ops.slices import ArrayIndex, Region, Slices
from wrong import kept_index, replayed_mask

CASES = [
    (lambda: add_at(cg.zeros(3), 1, cg.ones(2), [0, 1]), IndexError,
     "add_at: 1 index arrays from axis 1 on do not fit x of shape (3,)"),
    (lambda: cg.zeros(3)[(None,) * 16], ValueError,
     "a tensor has at most 16 dimensions, this index would give 17"),
    (lambda: Slices((0,) * 17), IndexError,
     "an index of more than 16 dimensions"),
    (lambda: Region((2, 3), Slices((0,))), IndexError,
     "put_slice: an index of 1 dimensions for a shape of 2"),
    (lambda: ArrayIndex(Slices((None,)), (1,), 0), IndexError,
     "put: the order (1,) and the axis 0 do not fit an index of 1 dimensions"),
    (lambda: cg.zeros((2, 3))[0, 0, 0], IndexError,
     "3 indices for a tensor of 2 dimensions"),
    (lambda: cg.zeros((2, 3))[..., ...], IndexError,
     "an index has at most one Ellipsis (...)"),
    (lambda: cg.zeros((2, 3))["a"], TypeError,
     "an index is made of ints, slices, ..., None and arrays of integers or bools, got str"),
    (lambda: cg.zeros(3)[[0.5]], TypeError,
     "indices are integers, got a float32 tensor of shape (1,)"),
    (lambda: cg.zeros(3)[np.array([0, 2**64 - 1], dtype="uint64")], IndexError,
     "index 18446744073709551615 is out of range for any dimension"),
    (lambda: cg.zeros((2, 3))[:, [0, 3]], IndexError,
     "index 3 is out of range for a dimension of size 3"),
    (lambda: cg.zeros((2, 3))[:, [True]], IndexError,
     "a mask of shape (1,) for dimensions of sizes (3,); the two must be equal"),
    (lambda: cg.zeros(3)[([0], *[None] * 16)], ValueError,
     "a tensor has at most 16 dimensions, this index would give 17"),
    (lambda: cg.zeros((1,) * 16)[([0],) * 15], IndexError,
     "an index has at most 14 arrays, this one has 15"),
    (lambda: cg.take(cg.zeros((1,) * 16), [[0]], 0), ValueError,
     "take: a tensor has at most 16 dimensions, this index would give 17"),
    (lambda: cg.zeros((2, 3))[[0, 1], [0, 1, 2]], ValueError,
     "take: shapes (2,) and (3,) do not broadcast; sizes 2 and 3 in dimension -1 must agree, or one of them must be 1"),
    (lambda: kept_index([0, 1]).backward(), cg.InplaceError,
     "take: index 1099511627776 was in range in forward and is not now, for a dimension of size 2; it has been written "
     "meanwhile: give a copy()"),
    (lambda: replayed_mask().run(), cg.InplaceError,
     "mask_put: the mask chose 1 at first and chooses 2 now; it has been written meanwhile: give a copy()"),
    (lambda: cg.ops.ROWS["add_at"].function(cg.zeros(3), 0, cg.zeros(2), cg.tensor([1])), ValueError,
     "add_at: v is (2,); wanted (1,), that of the places"),
    (lambda: cg.ops.ROWS["select"].function(cg.zeros(3), cg.zeros(3)), IndexError,
     "select: x is (3,) and the mask is (3,), float32; wanted a bool mask of the shape of x, or of its first "
     "dimensions"),
    (lambda: cg.gather(cg.zeros((2, 3)), 1, [[0], [0], [0]]), ValueError,
     "gather: x is (2, 3) and the index is (3, 1); wanted as many dimensions, and none of the index larger than that "
     "of x but dimension 1"),
    (lambda: cg.gather(cg.zeros((2, 3)), 1, [[3]]), IndexError,
     "gather: index 3 is out of range for a dimension of size 3"),
    (lambda: cg.scatter_add(cg.zeros(3), 0, [0], [True]), TypeError,
     "scatter_add: x is float32 and src is bool; wanted one dtype, not bool; convert with astype"),
    (lambda: cg.scatter_add(cg.zeros(3), 0, [0, 1], [1.0]), ValueError,
     "scatter_add: the index is (2,) but src is (1,); wanted a src at least as large in each dimension"),
    (lambda: cg.one_hot([0, 3], 3), IndexError,
     "one_hot: label 3 is no class; the classes go from 0 to 2"),
    (lambda: cg.one_hot([0], -1), ValueError,
     "one_hot: the number of classes is -1; wanted 0 or more"),
    (lambda: cg.one_hot(cg.zeros((1,) * 16, dtype="int64"), 2), ValueError,
     "one_hot: the labels have 16 dimensions, which is the most; reshape them"),
    (lambda: cg.zeros((2, 3))[0, 3], IndexError,
     "index 3 is out of range for dimension 1 of size 3"),
    (lambda: cg.zeros(2, dtype="int64").__setitem__(0, cg.tensor(1.5)), TypeError,
     "setitem: a float32 value cannot be written into a int64 tensor; cast it with astype"),
]
