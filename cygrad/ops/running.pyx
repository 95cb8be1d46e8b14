"""Running statistics of batch_norm: their checks, and the step towards the statistics of a batch."""

from cygrad.core.graph.tensor cimport Tensor, array_of, is_tracked, ready
from cygrad.core.execute.inplace cimport check_writable
from cygrad.core.interop.numpy cimport share_memory
from cygrad.core.graph.calls cimport note, tensor_item
from cygrad.core.graph.trace cimport PREPARING, Step, Trace, raise_version
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport FLOAT32, FLOAT64, Array, is_floating, itemsize

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
    cdef Array s
    if flags().trace != NULL: return trace_move(average, var, stats, factor)
    s = array_of(stats)
    move(array_of(average), s, factor)
    s.data += n * itemsize(s.dtype)
    move(array_of(var), s, factor)
    average.buffer.version += 1
    var.buffer.version += 1
    return 0


def move_statistics(Tensor average, Tensor var, Tensor stats, double factor):
    """move_running() for nets: the running statistics move towards those of a batch, `stats` of shape (2, channels)."""
    fits = stats.layout.ndim == 2 and stats.layout.dense
    if not fits or average.shape != stats.shape[1:] or var.shape != average.shape:
        raise ValueError(f"move_running: the statistics are {stats.shape}, running_mean {average.shape} and "
                         f"running_var {var.shape}; wanted (2, channels) and (channels,)")
    for r in (average, var):
        if not is_floating((<Tensor>r).dtype) or stats.dtype not in (FLOAT32, FLOAT64):
            raise TypeError("move_running: running_mean, running_var and the statistics must be floating")
        check_writable(<Tensor>r, flags())
    move_running(average, var, stats, factor)


cdef class RunningStep(Step):
    """move_running() in a program."""
    cdef Tensor average, var            # held: their versions rise
    cdef Array a, v, s
    cdef double factor

    cdef int run(self) except -1:
        cdef Array s = self.s
        move(self.a, s, self.factor)
        s.data += s.layout.shape[1] * itemsize(s.dtype)
        move(self.v, s, self.factor)
        self.average.buffer.version += 1
        self.var.buffer.version += 1
        return 0


cdef int trace_move(Tensor average, Tensor var, Tensor stats, double factor) except -1:
    """Instead of move_running(), during a trace: prepare the call if steps are made."""
    cdef Trace t = <Trace>flags().trace
    cdef RunningStep s
    for r in (average, var):
        t.before_write((<Tensor>r).buffer)
        raise_version(flags(), (<Tensor>r).buffer)
    note("running statistics", (tensor_item(average), tensor_item(var), tensor_item(stats), factor))
    if t.purpose != PREPARING: return 0
    s = RunningStep.__new__(RunningStep)
    s.take(3, 3)
    s.name, s.average, s.var, s.factor = "batch_norm", average, var, factor
    aim(s, t, &s.a, average)
    aim(s, t, &s.v, var)
    aim(s, t, &s.s, stats)
    return t.emit(s)


cdef int aim(RunningStep s, Trace t, Array* a, Tensor x) except -1:
    """Let a step use the elements of a tensor."""
    a.data, a.layout, a.dtype = x.buffer.data + x.layout.offset * itemsize(x.dtype), s.hold(x.layout), x.dtype
    return s.point(t, &a.data, x.buffer)


cdef void move(Array r, Array s, double factor) noexcept nogil:
    cdef Py_ssize_t i, step = r.layout.strides[0]
    cdef double v
    for i in range(r.layout.shape[0]):
        v = (<float*>s.data)[i] if s.dtype == FLOAT32 else (<double*>s.data)[i]
        if r.dtype == FLOAT32: (<float*>r.data)[i * step] += <float>(factor * (v - (<float*>r.data)[i * step]))
        else:                  (<double*>r.data)[i * step] += factor * (v - (<double*>r.data)[i * step])
