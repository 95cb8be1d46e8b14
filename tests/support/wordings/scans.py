"""The wording of errors: scans and searches."""

import cygrad as cg

CASES = [
    (lambda: cg.zeros((2, 3)).cumprod(2), IndexError,
     "axis 2 is out of range for a tensor of 2 dimensions"),
    (lambda: cg.cummax(cg.zeros((2, 3)), -3), IndexError,
     "axis -3 is out of range for a tensor of 2 dimensions"),
    (lambda: cg.ops.ROWS["recurrence"].function(cg.zeros(2), cg.zeros((2, 1)), 0), ValueError,
     "recurrence: x is float32 of shape (2,) and a is float32 of shape (2, 1); they must have the same shape and "
     "floating-point dtype"),
    (lambda: cg.searchsorted(cg.zeros((2, 3)), 1.0), ValueError,
     "searchsorted: x has shape (2, 3); it must have one dimension"),
    (lambda: cg.zeros(3).searchsorted(1.0, side="middle"), ValueError,
     "searchsorted: side must be 'left' or 'right', got 'middle'"),
    (lambda: cg.searchsorted(cg.zeros(3), 1.0, sorter=[0, 1]), ValueError,
     "searchsorted: sorter has shape (2,) and x has (3,); they must be equal"),
]
