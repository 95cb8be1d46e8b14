"""Running statistics of batch_norm: their checks, and the step towards the statistics of a batch."""

from cygrad.core.graph.tensor cimport Tensor, is_tracked, ready
from cygrad.core.execute.inplace cimport check_writable
from cygrad.core.interop.numpy cimport share_memory
from cygrad.core.graph.calls cimport note, tensor_item
from cygrad.core.graph.lifts cimport LANES, Lift, lift_below
from cygrad.core.graph.steps cimport READS, UPDATES, Arrays, call, put
from cygrad.core.graph.trace cimport lists_calls
from cygrad.core.thread_state cimport flags
from cygrad.kernels cimport by_dtype
from cygrad.kernels.array cimport Array, is_real, itemsize, real

from cygrad.core.errors import described


cdef int check_running(str name, r, Tensor x, bint train) except -1:
    """Raise an error unless `r` can be a running statistic, and can be written to if `train`."""
    cdef Tensor t = check_statistic(name, r, x)
    if is_tracked(t):
        raise ValueError(f"batch_norm: gradients flow through {name}; pass a tensor without a graph, such as "
                         f"{name}.detach()")
    if not train: return 0
    check_writable(t, flags())
    return ready(t)


cdef Tensor check_statistic(str name, r, Tensor x):
    """`r`, a statistic of the channels of x. Raises TypeError or ValueError for anything else."""
    cdef Tensor t
    if type(r) is not Tensor or not is_real((<Tensor>r).dtype):
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


cdef int check_shared(Tensor stats) except -1:
    """Raise an error if the statistics of the batch differ between lanes of vmap(), which share the running ones."""
    cdef Lift lift = lift_below(stats, flags().lifting)
    while lift is not None:
        if lift.level.kind == LANES:
            raise RuntimeError("batch_norm: inside of vmap the batch of each slice would move running_mean and "
                               "running_var, which all slices share; call freeze_statistics() of the layer, which "
                               "then uses them as they are, or pass no running statistics")
        lift = lift_below(stats, lift.level.depth - 1)


cdef int move_running(Tensor average, Tensor var, Tensor stats, double factor) except -1:
    """(1 - factor) times themselves + factor times the statistics of the batch. Allocates nothing."""
    cdef Arrays a
    if stats.lifted: check_shared(stats)
    a.n = 0
    put(&a, average, UPDATES)
    put(&a, var, UPDATES)
    put(&a, stats, READS)
    call(flags(), "batch_norm", move_both, &a, 2, &factor, sizeof(factor), None)
    if lists_calls():
        note("running statistics", (tensor_item(average), tensor_item(var), tensor_item(stats), factor))


cdef int move_both(Array* a, const void* parameters, object held) except -1:
    """A kernel: move the running mean a[0] and the running variance a[1] towards the statistics a[2]."""
    cdef double factor = (<const double*>parameters)[0]
    cdef Array s = a[2]
    move(a[0], s, factor)
    s.data += s.layout.shape[1] * itemsize(s.dtype)
    move(a[1], s, factor)


def move_statistics(Tensor average, Tensor var, Tensor stats, double factor):
    """move_running() for nets: the running statistics move towards those of a batch, `stats` of shape (2, channels)."""
    fits = stats.layout.ndim == 2 and stats.layout.dense
    if not fits or average.shape != stats.shape[1:] or var.shape != average.shape:
        raise ValueError(f"move_running: the statistics are {stats.shape}, running_mean {average.shape} and "
                         f"running_var {var.shape}; wanted (2, channels) and (channels,)")
    for r in (average, var):
        if not is_real((<Tensor>r).dtype) or not is_real(stats.dtype):
            raise TypeError("move_running: running_mean, running_var and the statistics must be floating")
        check_writable(<Tensor>r, flags())
    move_running(average, var, stats, factor)


cdef inline void approach(real* r, double v, double factor) noexcept nogil:
    r[0] += <real>(factor * (v - r[0]))


cdef void move(Array r, Array s, double factor) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(r.layout.shape[0]):
        by_dtype.call(r.dtype, approach[float], approach[double],
                      by_dtype.element(r.dtype, r.data, i * r.layout.strides[0]),
                      by_dtype.number(s.dtype, s.data, i), factor)
