"""Reading operands: arrays become tensors, mixed dtypes are promoted, Python numbers take the dtype of the others."""

import numpy as np

from cpython.bool cimport PyBool_Check
from cpython.float cimport PyFloat_AS_DOUBLE
from libc.string cimport memcpy

from cygrad.core.dtypes cimport default_dtype, promote
from cygrad.core.graph.tensor cimport ensure_tensor, is_tracked
from cygrad.core.late_bound cimport late_bound
from cygrad.core.source cimport warn_here
from cygrad.kernels.array cimport BOOL, FLOAT64, INT64, is_floating, is_real

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import PrecisionWarning, described
from cygrad.kernels.by_dtype cimport put_number


cdef extern from "Python.h":
    double PyLong_AsDouble(object v)
    void* PyErr_Occurred()
    void PyErr_Clear()


cdef object plain_operand(v):
    """Convert an operand to a tensor with memory, unless it is a Python number. This may run Python code, so it comes
    before any operand of the operation is read."""
    if is_plain(v): return v
    t = ensure_tensor(v)
    usable(t)
    return t


cdef bint convert(list xs) except -1:
    """Convert the entries that are not plain, in place. Returns whether there were any: the conversion may have
    released the memory of others."""
    cdef bint converted = False
    for i in range(len(xs)):
        if is_plain(xs[i]): continue
        xs[i] = plain_operand(xs[i])
        converted = True
    return converted


cdef int too_large(v, int dtype) except -1:
    raise OverflowError(f"the number {described(v)} does not fit the dtype {DTYPES[dtype]} of the other operand"
                        ) from None


cdef inline double double_of(v, int dtype) except? -1:
    """An int as a double. (A try statement would cost every operation with a number.)"""
    cdef double x = PyLong_AsDouble(v)
    if x == -1 and PyErr_Occurred() != NULL:
        PyErr_Clear()
        too_large(v, dtype)
    return x


cdef int cast_scalar(Operand* o, int dtype) except -1:
    """Write a Python number in the dtype of the operation."""
    v = <object>o.tensor
    o.array.dtype = dtype
    if is_real(dtype):
        put_number(dtype, &o.number, 0, PyFloat_AS_DOUBLE(v) if PyFloat_Check(v) else double_of(v, dtype))
    else:
        try:
            raw = np.array(v, DTYPES[dtype]).tobytes()
        except OverflowError:
            too_large(v, dtype)
        memcpy(&o.number, <const char*>raw, len(raw))


cdef list prepare(Operator op, Operand* x, int n):
    """Bring the operands to one dtype: Python numbers are weak, and tensors of mixed dtypes are cast, which is recorded
    like any cast. Returns the tensors that must stay alive until the operation has run."""
    cdef list alive = None
    cdef int dtype = -1, i
    cdef bint mixed = False
    for i in range(n):
        if x[i].buffer == NULL or x[i].array.dtype != x[0].array.dtype: break
        if i == n - 1 and is_real(x[0].array.dtype): return None        # (as in most operations)
    for i in range(op.n_unpromoted, n):
        if x[i].buffer == NULL: continue
        if dtype < 0: dtype = x[i].array.dtype
        elif dtype != x[i].array.dtype:
            dtype = promote(dtype, x[i].array.dtype)
            mixed = True
    for i in range(op.n_unpromoted, n):
        if x[i].buffer != NULL or dtype >= 0 and is_floating(dtype): continue
        if dtype < 0 or PyFloat_Check(<object>x[i].tensor):
            dtype = default_dtype()
            mixed = True
        elif dtype == BOOL and not PyBool_Check(<object>x[i].tensor):
            dtype = INT64
            mixed = True
    if op.promotes_to_float and (dtype < 0 or not is_real(dtype)):
        dtype = default_dtype()
        mixed = True
    for i in range(op.n_unpromoted, n):
        if x[i].buffer == NULL: cast_scalar(&x[i], dtype)
        elif mixed and x[i].array.dtype != dtype:
            t = late_bound.cast(<Tensor>x[i].tensor, dtype)
            if alive is None: alive = []
            alive.append(t)
            release_operand(&x[i])
            read_tensor(&x[i], t)
    return alive


cdef int warn_if_widened(Operator op, list casts) except -1:
    """Warn that float64 data makes a recorded result float64 although its gradients flow to float32 tensors."""
    if not op.differentiable or flags().node != NULL: return 0
    if not any([is_tracked(<Tensor>t) and (<Tensor>t).dtype == FLOAT64 for t in casts]): return 0
    warn_here(f"{op.name}: a float32 tensor that gradients flow through meets float64 data, so the result and "
              f"everything computed from it is float64; cast the data with astype(\"float32\"), or make the variables "
              f"float64",
              PrecisionWarning)
