"""The wording of errors: in-place writes."""

import numpy as np

import cygrad as cg
from wrong import RESULT, VARIABLE, recording, view_of_a_leaf, write_to_a_detached, write_to_a_part_of_steps

CASES = [
    (lambda: cg.zeros(2).fill_("a"), TypeError,
     "fill_ takes a number, got str"),
    (lambda: cg.zeros(2).__iadd__(cg.zeros((2, 2))), ValueError,
     "add in place: the result has shape (2, 2), but the tensor written to has shape (2,)"),
    (lambda: cg.zeros(2).__iadd__(cg.zeros(2, dtype="float64")), TypeError,
     "add in place: the result has dtype float64, but the tensor written to has dtype float32; write x = "
     "cygrad.add(x, y), or cast the operand"),
    (lambda: cg.asarray(np.frombuffer(b"ab", "uint8")).fill_(0), ValueError,
     "this tensor of shape (2,) has read-only memory and cannot be written; copy() it first"),
    (lambda: cg.zeros(1).broadcast_to((3, 2)).fill_(0), ValueError,
     "this tensor of shape (3, 2) repeats its elements (broadcast in dimension 0) and cannot be written; copy() "
     "it first"),
    (lambda: recording(lambda: VARIABLE().fill_(0)), cg.InplaceError,
     "a leaf variable of shape (2,) cannot be written in place while recording; write inside pause() or no_grad(), or "
     "make a new tensor"),
    (lambda: view_of_a_leaf(), cg.InplaceError,
     "a view of a leaf variable of shape (1,) cannot be written in place while recording; write inside pause() or "
     "no_grad(), or make a new tensor"),
    (lambda: RESULT().fill_(0), cg.InplaceError,
     "this result of mul, of shape (2,), belongs to a graph and cannot be written outside record(): its gradient would "
     "ignore the write; write to its detach() instead"),
    (lambda: write_to_a_detached(), cg.InplaceError,
     "this tensor of shape (2,) is detached, by detach() or as a view taken outside record(), and shares its memory "
     "with other tensors, whose gradients would ignore a recorded write; write to a copy()"),
    (lambda: write_to_a_part_of_steps(), cg.InplaceError,
     "this view of shape (2,) is part of a tensor of shape (4,) that is a strided array of external memory: a recorded "
     "write to either has no gradient for the other; write to a copy()"),
]
