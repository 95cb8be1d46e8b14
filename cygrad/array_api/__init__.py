"""The Python array API standard, version 2025.12: the namespace that x.__array_namespace__() of a tensor returns. Its
functions have the names, arguments and results of the standard (https://data-apis.org/array-api/2025.12). Most are
functions of cygrad itself; `functions` and `linalg` have those that the standard defines otherwise. So programs for any
array library run on tensors, are recorded while recording, and count their memory.

All dtypes of the standard are here except complex64 and complex128, and all functions except those of the extension fft
and linalg.eig and eigvals, whose results are complex."""

from math import e, inf, nan, pi

import numpy as np

from cygrad.array_api import linalg
from cygrad.array_api.functions import (
    arange, argsort, asarray, astype, bitwise_invert, broadcast_shapes, can_cast, conj,
    cumulative_prod, cumulative_sum, empty, empty_like, eye, finfo, floor_divide, full, full_like, iinfo, imag, isdtype,
    isin, linspace, namespace_info, ones, ones_like, permute_dims, positive, prod, real, reshape, result_type, sort,
    sum, tile, unique_all, unique_counts, unique_inverse, unique_values, zeros, zeros_like,
)
from cygrad.core.late_bound import namespace
from cygrad.ops.protocols import where

__array_api_version__ = "2025.12"
__array_namespace_info__ = namespace_info

bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = np.dtype("float32"), np.dtype("float64")
newaxis = None

# Functions of cygrad that are as the standard wants them.
_shared = """
abs acos acosh add all any argmax argmin asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_or
bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to ceil clip concat copysign cos cosh count_nonzero diff
divide equal exp expand_dims expm1 flip floor from_dlpack greater greater_equal hypot isfinite isinf isnan less
less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max
maximum mean meshgrid min minimum moveaxis multiply negative nextafter nonzero not_equal pow reciprocal remainder repeat
roll round searchsorted sign signbit sin sinh sqrt square squeeze stack std subtract take take_along_axis tan tanh
tensordot tril triu trunc unstack var vecdot
""".split()
globals().update({name: getattr(namespace(), name) for name in _shared})

__all__ = ["__array_namespace_info__", *(name for name in dir() if name[0] != "_" and name not in (
    "functions", "namespace", "namespace_info", "np"))]


def __dir__(): return __all__
