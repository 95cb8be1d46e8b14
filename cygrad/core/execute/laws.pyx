"""Draws with parameters that are numbers or tensors: everything is checked and allocated before a generator moves."""

import numpy as np

from libc.math cimport fabs

from cygrad.core.graph.construct cimport fresh, view_of
from cygrad.core.graph.tensor cimport Tensor, array_of, ensure_tensor
from cygrad.core.interop.numpy cimport check_lendable, window
from cygrad.core.source cimport warn_here
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER
from cygrad.kernels cimport laws as kernel
from cygrad.kernels.array cimport FLOAT64, Layout
from cygrad.kernels.laws cimport MAX_PARAMETERS, Form

from cygrad.core.errors import as_float, described

RULES = {
    "exponential": "scale must be at least 0", "gumbel": "loc must be a number and scale at least 0",
    "gamma": "a and scale must be at least 0", "poisson": "lam must be from 0 to 2**62",
    "truncated_normal": "low must be at most high, loc finite, and scale finite and above 0",
}


cdef class Sampling:
    """A draw that is checked and has its memory; `blocks` is the number of blocks that it takes."""

    cdef Tensor run(self, uint64_t key, uint64_t counter):
        self.draws.key, self.draws.counter = key, counter
        with nogil: kernel.fill(&self.draws)
        return self.y


cdef Sampling plan(str name, Form form, shape, int dtype, dict parameters):
    """Check the parameters and allocate the result. Its shape is `shape` or, if that is (), that of all parameters."""
    cdef Sampling s = Sampling.__new__(Sampling)
    cdef Layout* target = lay.from_shape(shape)
    cdef Layout* both
    cdef double bad[MAX_PARAMETERS]
    cdef Py_ssize_t i
    cdef int k
    cdef Tensor t
    values = [parameter(name, key, value) for key, value in parameters.items()]
    try:
        for t in [v for v in values if isinstance(v, Tensor)] if shape == () else []:
            both = lay.broadcast(name, target, t.layout)
            lay.decref(target)
            target = both
        s.draws.form, s.draws.dtype, s.draws.n, s.draws.n_parameters = form, dtype, target.size, len(values)
        s.held = []
        for k, (key, value) in enumerate(parameters.items()):
            s.draws.varies[k] = isinstance(values[k], Tensor)
            if s.draws.varies[k]:
                t = wide(name, key, values[k], target)
                s.held.append(t)
                s.draws.parameters[k] = array_of(t)
            else: s.draws.number[k] = values[k]
        i = kernel.first_invalid(&s.draws, bad)
        if i >= 0:
            given = ", ".join([f"{key} = {bad[k]}" for k, key in enumerate(parameters)])
            raise ValueError(f"{name}: {RULES[name]}; got {given}")
        s.y = fresh(lay.incref(target), dtype, OTHER)
    finally:
        lay.decref(target)
    s.draws.y = s.y.buffer.data
    s.blocks = kernel.blocks_for(form, s.draws.n)
    return s


cdef object parameter(str name, str key, value):
    """A parameter as a Python float, or as a tensor with dimensions."""
    if value is None: raise TypeError(f"{name}: {key} is missing; it is a number or a tensor")
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {key} must be a number or a tensor, got {described(value)}")
    if not hasattr(value, "shape"): return as_float(value, f"{name}: {key}")
    t = ensure_tensor(value)
    check_lendable(t, f"{name}()")
    return t if t.ndim else float(t.item())


cdef Tensor wide(str name, str key, Tensor t, const Layout* target):
    """A parameter in float64, broadcast to the shape of the result."""
    cdef Tensor y = t
    cdef int d, i
    for d in range(1, t.layout.ndim + 1):
        i = target.ndim - d
        if i < 0 or t.layout.shape[t.layout.ndim - d] not in (1, target.shape[i]):
            raise ValueError(f"{name}: {key} has shape {t.shape}, which does not broadcast to shape "
                             f"{lay.shape_tuple(target)}")
    if t.dtype != FLOAT64:
        y = fresh(lay.dense_like(t.layout), FLOAT64, OTHER)
        window(y, True)[...] = window(t, False)
    return view_of(y, lay.expand(y.layout, target))


# ---- categories ------------------------------------------------------------------------------------------------------

cdef Tensor weights_of(values):
    """A tensor; of a list in float64, because a list of Python floats would be float32."""
    return ensure_tensor(np.asarray(values, "float64") if isinstance(values, (list, tuple)) else values)


cdef bint sums_to_one(const double* x, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Whether each of n rows of k numbers, of several categories, is at least 0 and sums to 1 within the rounding of
    float32."""
    cdef Py_ssize_t i, j
    cdef double total
    for i in range(n):
        total = 0
        for j in range(k):
            if not x[i * k + j] >= 0: return False
            total += x[i * k + j]
        if not fabs(total - 1) <= 1e-5: return False
    return n > 0 and k > 1


cdef Tensor cumulative(str name, str what, values, axis, bint logarithms):
    """The cumulative sums of weights (or of their exponentials) in float64, with the axis last."""
    cdef Tensor t = weights_of(values), y
    cdef Py_ssize_t k, bad
    check_lendable(t, f"{name}()")
    if t.layout.ndim == 0: raise ValueError(f"{name}: {what} has no dimensions; it must have at least one")
    axis = lay.read_axis(axis, t.layout.ndim)
    k = t.layout.shape[axis]
    y = fresh(lay.from_shape((*t.shape[:axis], *t.shape[axis + 1:], k)), FLOAT64, OTHER)
    if k == 0: raise ValueError(f"{name}: {what} has shape {t.shape}; there must be at least one category")
    window(y, True)[...] = np.moveaxis(window(t, False), axis, -1)
    if logarithms and sums_to_one(<double*>y.buffer.data, y.layout.size // k, k):
        warn_here(f"{name}: each row of {what} is at least 0 and sums to 1, as probabilities do; pass those as "
                  f"probs=p, or as {what}=cygrad.log(p)", UserWarning)
    bad = kernel.cumulate(<double*>y.buffer.data, y.layout.size // k, k, logarithms)
    if bad < 0: return y
    rule = "be numbers or -inf, not all -inf" if logarithms else "be at least 0, with a finite sum above 0"
    raise ValueError(f"{name}: {what} must {rule}" + (f"; row {bad} is not" if t.layout.ndim > 1 else ""))
