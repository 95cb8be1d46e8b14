"""dtypes: their numbers, the default dtype, promotion. A dtype is a numpy.dtype for users and a small number inside.

The properties of each dtype are in one table, include/cygrad/dtypes.h."""

import numpy as np

from cygrad.kernels.array cimport FLOAT32, N_DTYPES, dtype_name, is_real, itemsize, kind_of

from cygrad.core.errors import described

DTYPES = tuple([np.dtype(dtype_name(number).decode()) for number in range(N_DTYPES)])
cdef dict dtype_numbers = {d: number for number, d in enumerate(DTYPES)}
cdef int default_float = FLOAT32
cdef unsigned long long reads = 0                   # counts reads of the default dtype
cdef signed char promoted[N_DTYPES][N_DTYPES]       # the dtype to which two promote; -1 if there is none


cdef int default_dtype() noexcept:
    global reads
    reads += 1
    return default_float


def default_dtype_reads():
    """How often the default dtype was asked for: a program that did not ask does not depend on it."""
    return reads


def read_dtype(dtype):
    """The numpy.dtype of anything that NumPy accepts as one. Raises TypeError for anything else."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{described(dtype)} is not a dtype; cygrad has {', '.join(map(str, DTYPES))}") from None


def dtype_number(dtype):
    """The number of anything that NumPy accepts as a dtype. Raises TypeError for a dtype that cygrad does not have."""
    d = read_dtype(dtype)
    number = dtype_numbers.get(d)
    if number is None:
        raise TypeError(f"cygrad has no dtype {d}; it has {', '.join(map(str, DTYPES))}; cast to one of them first")
    return number


def set_default_dtype(dtype: npt.DTypeLike) -> None:
    """Set the dtype of Python floats, of int / int and of the mean of integers: float32 (initially) or float64."""
    global default_float
    number = dtype_number(dtype)
    if not is_real(number):
        raise TypeError(f"the default dtype must be float32 or float64, got {np.dtype(dtype)}")
    default_float = number


def get_default_dtype() -> np.dtype[Any]:
    """The dtype of Python floats."""
    return DTYPES[default_dtype()]


cdef int find(char kind, int size) noexcept:
    """The first dtype of that kind with elements of that size, or -1."""
    for d in range(N_DTYPES):
        if kind_of(d) == kind and itemsize(d) == size: return d
    return -1


cdef int common(int a, int b) noexcept:
    """The dtype to which two promote, or -1: by the Array API's table, and an integer with a float gives the float."""
    cdef char ka = kind_of(a), kb = kind_of(b)
    cdef int na = itemsize(a), nb = itemsize(b)
    if a == b: return a
    if ka == kb: return a if na > nb else b if nb > na else find(ka, 2 * na)
    if ka == c"f" or kb == c"f": return a if ka == c"f" else b
    if ka == c"b" or kb == c"b": return b if ka == c"b" else a
    return find(c"i", max(na, 2 * nb) if ka == c"i" else max(nb, 2 * na))


cdef int promote(int a, int b) except -1:
    """The dtype to which two promote. Raises TypeError for uint64 with a signed integer."""
    cdef int d = promoted[a][b]
    if d < 0: raise TypeError(f"{DTYPES[a]} and {DTYPES[b]} have no common integer dtype; convert one with astype")
    return d


def promote_dtypes(a, b):
    """The numpy.dtype to which two dtypes promote. Raises TypeError for uint64 with a signed integer, and for a dtype
    that cygrad does not have."""
    return DTYPES[promote(dtype_number(a), dtype_number(b))]


cdef void fill_promoted() noexcept:
    for a in range(N_DTYPES):
        for b in range(N_DTYPES): promoted[a][b] = common(a, b)


fill_promoted()
