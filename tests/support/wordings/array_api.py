"""Errors of cygrad.array_api."""

import cygrad as cg

xp = cg.array_api

CASES = [
    (lambda: xp.zeros(2, device="gpu"), ValueError,
     "device must be None or \"cpu\", got 'gpu'; all memory is the CPU's"),
    (lambda: cg.ones(2).to_device("gpu"), ValueError,
     "to_device: device must be \"cpu\" without a stream, got 'gpu'; all memory is the CPU's"),
    (lambda: cg.ones(2).__array_namespace__(api_version="2099.01"), ValueError,
     "__array_namespace__: there is no version '2099.01' here; the newest is '2025.12'"),
    (lambda: xp.asarray([1.0], copy=False), ValueError,
     "asarray: [1.0] cannot become a tensor without a copy; leave copy out"),
    (lambda: xp.finfo("int8"), TypeError, "finfo takes a floating-point dtype, got int8"),
    (lambda: xp.iinfo("float32"), TypeError, "iinfo takes an integer dtype, got float32"),
    (lambda: xp.isdtype(xp.int8, "number"), TypeError,
     "isdtype: kind must be a dtype or one of bool, signed integer, unsigned integer, integral, real floating, complex "
     "floating, numeric; got 'number'"),
    (lambda: xp.result_type(1, 2.0), ValueError, "result_type takes at least one tensor or dtype"),
    (lambda: xp.reshape(cg.ones((2, 3)).T, (6,), copy=False), ValueError,
     "reshape: x of shape (3, 2) and strides (1, 3) cannot become (6,) without a copy; leave copy out"),
    (lambda: xp.cumulative_sum(cg.ones((2, 2))), ValueError,
     "cumulative_sum: x has shape (2, 2); pass axis, unless it has one dimension"),
    (lambda: cg.linalg.matrix_rank(cg.ones(2)), ValueError, "matrix_rank: x is (2,); wanted matrices (..., m, n)"),
]
