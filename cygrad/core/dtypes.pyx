"""dtypes: their numbers, the default one, promotion. A dtype is a numpy.dtype to users and a small number inside."""

import numpy as np

from cygrad.kernels.array cimport FLOAT32, FLOAT64

from cygrad.core.errors import described

DTYPES = tuple(np.dtype(d) for d in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                     "float32", "float64"))
cdef dict dtype_numbers = {d: i for i, d in enumerate(DTYPES)}
cdef int default_float = FLOAT32


cdef int default_dtype() noexcept:
    return default_float


def read_dtype(dtype):
    """A dtype, given as anything NumPy reads as one. Raises TypeError."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{described(dtype)} is not a dtype; cygrad has {', '.join(map(str, DTYPES))}") from None


def dtype_number(dtype):
    """The number of a dtype, given as anything NumPy reads as one. Raises TypeError for those cygrad has not."""
    d = read_dtype(dtype)
    number = dtype_numbers.get(d)
    if number is None:
        raise TypeError(f"cygrad has no dtype {d}; it has {', '.join(map(str, DTYPES))}; cast to one of them first")
    return number


def set_default_dtype(dtype):
    """Set the dtype that Python floats, int / int and the mean of integers get: float32 (at start) or float64."""
    global default_float
    number = dtype_number(dtype)
    if number < FLOAT32:
        raise TypeError(f"the default dtype is float32 or float64, got {np.dtype(dtype)}")
    default_float = number


def get_default_dtype():
    """The dtype that Python floats get."""
    return DTYPES[default_float]


cdef int promote(int a, int b) except -1:
    """The dtype of a result of two: the Array API's table, and the floating one for an integer with a float."""
    if a == b: return a
    if a >= FLOAT32 or b >= FLOAT32:
        if a >= FLOAT32 and b >= FLOAT32: return FLOAT64
        return a if a >= FLOAT32 else b
    number = dtype_numbers.get(np.promote_types(DTYPES[a], DTYPES[b]))
    if number is None or number >= FLOAT32:         # uint64 with a signed integer: NumPy says float64
        raise TypeError(f"{DTYPES[a]} and {DTYPES[b]} have no common integer dtype; convert one with astype")
    return number
