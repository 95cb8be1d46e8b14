"""Running statistics of batch_norm: their checks, and the step towards the statistics of a batch."""

from cygrad.core.graph.tensor cimport Tensor, array_of, is_tracked, ready
from cygrad.core.execute.inplace cimport check_writable
from cygrad.core.interop.numpy cimport share_memory
from cygrad.core.source cimport refuse_capture
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport FLOAT32, Array, is_floating, itemsize

from cygrad.core.errors import described


cdef int check_running(str name, r, Tensor x, bint train) except -1:
    """Raise an error unless `r` can be a running statistic, and can be written to if `train`."""
    cdef Tensor t = check_statistic(name, r, x)
    if is_tracked(t):
        raise ValueError(f"batch_norm: gradients flow through {name}; pass a tensor without a graph, such as "
                         f"{name}.detach()")
    if not train: return 0
    if flags().capture != NULL: refuse_capture("batch_norm in train mode, which writes to running_mean,")
    check_writable(t, flags())
    return ready(t)


cdef Tensor check_statistic(str name, r, Tensor x):
    """`r`, a statistic of the channels of x. Raises TypeError or ValueError for anything else."""
    cdef Tensor t
    if type(r) is not Tensor or not is_floating((<Tensor>r).dtype):
        raise TypeError(f"batch_norm: {name} must be a floating-point tensor, got {described(r)}")
    t = <Tensor>r
    if x.layout.ndim > 1 and (t.layout.ndim != 1 or t.layout.shape[0] != x.layout.shape[1]):
        raise ValueError(f"batch_norm: x is {x.shape} and {name} is {t.shape}; wanted an element for each of the "
                         f"{x.shape[1]} channels, which are axis 1")
    return t


cdef int check_all_apart(Tensor average, Tensor var, Tensor x, Tensor weight, Tensor bias) except -1:
    """Raise ValueError if a running statistic, which train mode writes, shares memory with another argument."""
    check_apart("running_var", var, "running_mean", average)
    check_apart("running_mean", average, "x", x)
    check_apart("running_var", var, "x", x)
    check_apart("running_mean", average, "weight", weight)
    check_apart("running_var", var, "weight", weight)
    check_apart("running_mean", average, "bias", bias)
    return check_apart("running_var", var, "bias", bias)


cdef int check_apart(str name, Tensor r, str other, Tensor t) except -1:
    if t is None or not share_memory(r, t): return 0
    raise ValueError(f"batch_norm: {name} shares memory with {other}, and train mode writes to it; pass a copy()")


cdef int move_running(Tensor average, Tensor var, Tensor stats, double factor) except -1:
    """(1 - factor) times themselves + factor times the statistics of the batch. Allocates nothing."""
    cdef Py_ssize_t n = stats.layout.shape[1]
    cdef Array s = array_of(stats)
    move(array_of(average), s, factor)
    s.data += n * itemsize(s.dtype)
    move(array_of(var), s, factor)
    average.buffer.version += 1
    var.buffer.version += 1
    return 0


cdef void move(Array r, Array s, double factor) noexcept nogil:
    cdef Py_ssize_t i, step = r.layout.strides[0]
    cdef double v
    for i in range(r.layout.shape[0]):
        v = (<float*>s.data)[i] if s.dtype == FLOAT32 else (<double*>s.data)[i]
        if r.dtype == FLOAT32: (<float*>r.data)[i * step] += <float>(factor * (v - (<float*>r.data)[i * step]))
        else:                  (<double*>r.data)[i * step] += factor * (v - (<double*>r.data)[i * step])
