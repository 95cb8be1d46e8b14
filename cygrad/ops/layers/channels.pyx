"""Normalization of channels: of groups of them in each sample (group_norm, instance_norm), and over a batch
(batch_norm)."""

import math

from libc.float cimport DBL_MAX
from libc.stdint cimport uint64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport (
    BackwardCall, Call, Operator, Stage, add_stage, hide, input_bit, output_bit, saved,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.backward.formula cimport Context
from cygrad.core.execute.run cimport apply_list
from cygrad.core.graph.calls cimport in_train_mode
from cygrad.core.thread_state cimport flags
from cygrad.kernels.layers cimport channels as kernels
from cygrad.kernels.array cimport Array, Layout, is_floating, itemsize
from cygrad.kernels.by_dtype cimport put_number
from cygrad.kernels.layers.channels cimport Channels
from cygrad.kernels.driver cimport gather
from cygrad.ops.layers.normalize cimport capacity, dense, read_eps
from cygrad.ops.layers.running cimport check_all_apart, check_running, check_statistic, move_running

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.core.interop.creation import ones
from cygrad.ops.elementwise.elementwise import add, div, mul, power, rsqrt, square
from cygrad.ops.images.pool import avg_pool2d
from cygrad.ops.reductions.reduce import mean, sum
from cygrad.ops.shapes.shape import expand_dims, reshape


cdef class Epsilon(Attributes):
    """The attributes of batch_norm: eps."""
    cdef readonly double eps

    def __cinit__(self, double eps=0):
        self.eps = eps


cdef class Groups(Attributes):
    """The attributes of group_norm and instance_norm: eps, and the number of groups (0: a group for each channel)."""
    cdef readonly double eps
    cdef readonly Py_ssize_t groups

    def __cinit__(self, double eps=0, Py_ssize_t groups=0):
        self.eps, self.groups = eps, groups

    cdef dict keywords(self):
        return {"num_groups": self.groups, "eps": self.eps}


cdef Channels channels_of(const Layout* x, int dtype, double eps) noexcept nogil:
    """The sizes of a job for x (n, channels, ...)."""
    cdef Channels c
    memset(&c, 0, sizeof(Channels))
    c.dtype, c.eps, c.n, c.channels, c.size = dtype, eps, x.shape[0], x.shape[1], 1
    for d in range(2, x.ndim): c.size *= x.shape[d]
    return c


cdef int check_channels(str name, const Call* c, int first) except -1 nogil:
    """Raise ValueError unless x is (n, channels, ...) and the other inputs have an element for each channel. Input
    `first` is the weight."""
    cdef const Layout* x = c.x[0].layout
    cdef int i
    if x.ndim < 2:
        with gil: raise ValueError(f"{name}: x is {lay.shape_tuple(x)}; wanted (n, channels, ...)")
    for i in range(1, c.n_in):
        if c.x[i].layout.ndim == 1 and c.x[i].layout.shape[0] == x.shape[1]: continue
        with gil:
            what = ("running_mean", "running_var", "weight", "bias")[i - first + 2]
            raise ValueError(f"{name}: x is {lay.shape_tuple(x)} and {what} is {lay.shape_tuple(c.x[i].layout)}; "
                             f"wanted an element for each of the {x.shape[1]} channels, which are axis 1")


cdef class ChannelNorm(Operator):
    """The base of normalizations of x (n, channels, ...). The last inputs, from `first` on, are an optional weight, and
    then an optional bias, for each channel. Output 1 has statistics, which backward keeps."""
    lanes = "normalizing_channels"
    operands, hidden = "x weight? bias?", "statistics"
    reads = {"x": "x weight statistics", "weight": "x statistics"}
    traits = "promotes promotes_to_float fused differentiable"
    cdef int first          # the input that is the weight

    def __cinit__(self):
        self.first = 1

    cdef void prepare(self, Call* c, Channels* job, char** workspace) noexcept nogil:
        """Describe the operands of forward. Strided ones are packed."""
        job[0] = channels_of(c.y[0].layout, c.y[0].dtype, 0)
        job.x, job.y = c.x[0].data, c.y[0].data
        if not c.x[0].layout.dense:
            gather(c.y[0].data, &c.x[0], 0, c.y[0].layout.size)
            job.x = job.y
        if c.n_in > self.first: job.w = dense(&c.x[self.first], workspace)
        if c.n_in > self.first + 1: job.b = dense(&c.x[self.first + 1], workspace)

    cdef size_t sums(self, BackwardCall* b) noexcept nogil:
        """Bytes of workspace for sums."""
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef uint64_t wanted = 0
        cdef Stage* s
        cdef Array a
        cdef int i
        for i in range(b.n_in):
            if b.want[i]: wanted |= input_bit(i)
        s = add_stage(b, wanted)
        s.gradients = 1
        s.workspace_bytes = capacity(&b.g[0]) + self.sums(b)
        if s.saved & 1:
            a = saved(b, 0)
            s.workspace_bytes += capacity(&a)
            if wanted & 1: s.donated_saved = 1
        if wanted & 1: s.donated_gradients = 1
        if s.saved & input_bit(self.first):
            a = saved(b, self.first)
            s.workspace_bytes += capacity(&a)

    cdef Channels prepare_backward(self, BackwardCall* b, int stage, double eps) noexcept nogil:
        """Describe the operands of backward, of which one or several are wanted."""
        cdef Channels job = channels_of(b.y, b.dtype, eps)
        cdef char* free = b.workspace + self.sums(b)
        cdef uint64_t needs = b.stages[stage].saved
        cdef Array a
        job.g = dense(&b.g[0], &free)
        if needs & 1:
            a = saved(b, 0)
            job.x = dense(&a, &free)
        if needs & output_bit(1): job.stats = saved(b, OWN | 1).data
        if needs & input_bit(self.first):
            a = saved(b, self.first)
            job.w = dense(&a, &free)
        if b.want[0]: job.dx = b.dx[0].data
        return job


cdef class GroupNorms(ChannelNorm):
    """The base of group_norm and instance_norm. Backward keeps x, the mean and the rate of each group (a hidden output)
    and, for dx, weight."""
    lanes = "normalizing_samples"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t shape[2]
        cdef Py_ssize_t groups
        check_channels(self.name, c, 1)
        groups = groups_of(x, c.attributes)
        if (<Groups>c.attributes).groups == 0: check_elements(x)
        if groups > 0 and x.shape[1] % groups:
            with gil: raise ValueError(f"{self.name}: x is {lay.shape_tuple(x)}, whose {x.shape[1]} channels (axis 1) "
                                       f"are not a multiple of the {groups} groups")
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        if c.wanted & 3:
            c.n_out, c.hidden = 2, 1
            shape[0], shape[1] = x.shape[0] * groups, 2
            c.y[1].layout, c.y[1].dtype = lay.dense(2, shape), c.x[0].dtype
        c.workspace_bytes = 0
        for i in range(1, c.n_in): c.workspace_bytes += capacity(&c.x[i])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Channels job
        cdef char* workspace = c.workspace
        if c.y[0].layout.size == 0: return 0
        self.prepare(c, &job, &workspace)
        job.eps, job.groups = (<Groups>c.attributes).eps, groups_of(c.y[0].layout, c.attributes)
        if c.hidden: job.stats = c.y[1].data
        kernels.group_norm(&job)

    cdef size_t sums(self, BackwardCall* b) noexcept nogil:
        if not (b.n_in > 1 and b.want[1] or b.n_in > 2 and b.want[2]): return 0
        return max(b.y.shape[0], <Py_ssize_t>1) * b.y.shape[1] * 16

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Channels job = self.prepare_backward(b, stage, (<Groups>b.attributes).eps)
        cdef int i
        cdef Py_ssize_t k
        if self.sums(b): job.sums = <double*>b.workspace
        job.groups = groups_of(b.y, b.attributes)
        if b.y.size: kernels.group_norm_grad(&job)
        else: memset(b.workspace, 0, self.sums(b))
        for i in range(1, b.n_in):
            if not b.want[i]: continue
            for k in range(job.channels):
                put_number(b.dtype, b.dx[i].data, k, job.sums[2 * k + i - 1])

    cdef object formula(self, c, int i, g):
        g = by_channel(g)
        if i == 2: return sum(g, (0, 2))
        x = c.input(0)
        n, groups = x.shape[0], c.attributes.groups or x.shape[1]
        rows = (n, groups, x.size // (n * groups) if n * groups else 0)
        z = reshape(x, rows)
        z = z - mean(z, 2, True)
        rate = rsqrt(mean(square(z), 2, True) + c.attributes.eps)
        z = z * rate
        if i == 1: return sum(g * reshape(z, g.shape), (0, 2))
        if (<Context>c).b.node.n_in > 1: g = g * expand_dims(c.input(1), 1)
        g = reshape(g, rows)
        return reshape(rate * (g - mean(g, 2, True) - z * mean(g * z, 2, True)), x.shape)


cdef int check_elements(const Layout* x) except -1 nogil:
    """Raise ValueError if a channel of a sample has one element."""
    cdef Py_ssize_t size = 1
    for d in range(2, x.ndim): size *= x.shape[d]
    if size != 1: return 0
    with gil: raise ValueError(f"instance_norm: x is {lay.shape_tuple(x)}, one element for each channel of a sample; "
                               f"wanted at least two, because their variance is 0")


cdef Py_ssize_t groups_of(const Layout* x, const void* attributes) noexcept nogil:
    return (<Groups>attributes).groups or x.shape[1]


cdef object by_channel(x):
    """x (n, channels, ...) as (n, channels, size)."""
    return reshape(x, (x.shape[0], x.shape[1], math.prod(x.shape[2:])))


cdef class GroupNorm(GroupNorms):
    """y = z weight + bias, z = (x - mean) rate, rate = 1 / sqrt(var + eps)        dweight = sum g z
    dx = rate (g weight - mean(g weight) - z mean(g weight z))        dbias = sum g

    The means and the variance are those of a group of channels in one sample."""


cdef class InstanceNorm(GroupNorms):
    """y = z weight + bias, z = (x - mean) rate, rate = 1 / sqrt(var + eps)        dweight = sum g z
    dx = weight rate (g - mean(g) - z mean(g z))        dbias = sum g

    The means and the variance are those of a channel in one sample."""


cdef class BatchNorm(ChannelNorm):
    """y = z weight + bias, z = (x - mean) rate, rate = 1 / sqrt(var + eps)        dweight = sum g z
    dx = weight rate (g - mean(g) - z mean(g z))        dbias = sum g

    The means and the variance are those of a channel in the batch. Output 1, which batch_norm uses and does not return,
    has the mean and the unbiased variance of each channel. Backward keeps it, x and, for dx, weight."""
    traits = "promotes promotes_to_float fused differentiable mode_dependent"
    outputs, hidden = "y statistics", ""
    row, no_gradient = "batch_norm_with_statistics", "running_mean running_var"
    functions = {"batch_norm": "x running_mean? running_var? weight? bias?"}

    cdef tuple call_of(self, operands, arguments):
        """The row batch_norm has the running statistics too."""
        running = len(operands) > 3 or "running_mean" in operands
        return [0, *range(3, len(operands))] if running else range(len(operands)), None

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t shape[2]
        check_channels(self.name, c, 1)
        if x.shape[1] and x.size == x.shape[1]:
            with gil: raise ValueError(f"batch_norm: x is {lay.shape_tuple(x)}, one element for each channel; train "
                                       f"mode needs at least two, because their variance is 0")
        c.n_out = 2
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        shape[0], shape[1] = 2, x.shape[1]
        c.y[1].layout, c.y[1].dtype = lay.dense(2, shape), c.x[0].dtype
        c.workspace_bytes = 0
        for i in range(1, c.n_in): c.workspace_bytes += capacity(&c.x[i])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Channels job
        cdef char* workspace = c.workspace
        if c.y[0].layout.size == 0:
            memset(c.y[1].data, 0, c.y[1].layout.size * itemsize(c.y[1].dtype))
            return 0
        self.prepare(c, &job, &workspace)
        job.eps, job.training, job.stats = (<Epsilon>c.attributes).eps, True, c.y[1].data
        kernels.batch_norm(&job)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return batch_backward(self, b, stage, True)

    cdef object formula(self, c, int i, g):
        g = by_channel(g[0])
        if i == 2: return sum(g, (0, 2))
        weighted = (<Context>c).b.node.n_in > 1
        if i == 0 and not g.size:                   # there is no mean
            return reshape(g * expand_dims(c.input(1), 1) if weighted else g, c.shape(0))
        x = by_channel(c.input(0))
        z = x - mean(x, (0, 2), True)
        rate = rsqrt(mean(square(z), (0, 2), True) + c.attributes.eps)
        z = z * rate
        if i == 1: return sum(g * z, (0, 2))
        if weighted: rate = rate * expand_dims(c.input(1), 1)
        return reshape(rate * (g - mean(g, (0, 2), True) - z * mean(g * z, (0, 2), True)), c.shape(0))


cdef class BatchNormPredict(ChannelNorm):
    """y = z weight + bias, z = (x - running_mean) rate, rate = 1 / sqrt(running_var + eps)        dweight = sum g z
    dx = g weight rate        dbias = sum g

    batch_norm in predict mode. Backward keeps the running means and the rates (copies, in a hidden output), for dweight
    x and for dx weight."""
    operands = "x running_mean running_var weight? bias?"
    reads = {"x": "weight statistics", "weight": "x statistics"}
    no_gradient = "running_mean running_var"
    traits = "promotes promotes_to_float fused differentiable mode_dependent"

    def __cinit__(self):
        self.first = 3

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t shape[2]
        check_channels("batch_norm", c, 3)
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        shape[0], shape[1] = 2, x.shape[1]
        c.workspace_bytes = 0
        if c.wanted & ~input_bit(4):
            hide(c, lay.dense(2, shape), c.x[0].dtype)
        else: c.workspace_bytes = (2 * x.shape[1] * itemsize(c.x[0].dtype) + 63) // 64 * 64
        for i in range(1, c.n_in): c.workspace_bytes += capacity(&c.x[i])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Channels job
        cdef char* workspace = c.workspace
        cdef char* stats = workspace
        if c.hidden: stats = c.y[1].data
        else: workspace += (2 * c.x[0].layout.shape[1] * itemsize(c.x[0].dtype) + 63) // 64 * 64
        self.prepare(c, &job, &workspace)
        job.eps, job.stats = (<Epsilon>c.attributes).eps, stats
        kernels.running_stats(&job, dense(&c.x[1], &workspace), dense(&c.x[2], &workspace))
        if c.y[0].layout.size: kernels.batch_norm(&job)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return batch_backward(self, b, stage, False)

    cdef object formula(self, c, int i, g):
        g = by_channel(g)
        if i == 4: return sum(g, (0, 2))
        average, rate = c.output(1).detach()
        if i == 3: return sum(g * ((by_channel(c.input(0)) - expand_dims(average, 1)) * expand_dims(rate, 1)), (0, 2))
        if (<Context>c).b.node.n_in > 3: rate = rate * c.input(3)
        return reshape(g * expand_dims(rate, 1), c.shape(0)) if i == 0 else None


cdef int batch_backward(ChannelNorm op, BackwardCall* b, int stage, bint training) except -1 nogil:
    cdef Channels job = op.prepare_backward(b, stage, (<Epsilon>b.attributes).eps)
    cdef int w = op.first, i
    job.training = training
    if b.n_in > w and b.want[w]: job.dw = b.dx[w].data
    if b.n_in > w + 1 and b.want[w + 1]: job.db = b.dx[w + 1].data
    if b.y.size:
        kernels.batch_norm_grad(&job)
        return 0
    for i in range(w, b.n_in):
        if b.want[i]: memset(b.dx[i].data, 0, b.dx[i].layout.size * itemsize(b.dtype))


cdef Operator GROUP_NORM = GroupNorm(), INSTANCE_NORM = InstanceNorm()
cdef Operator BATCH_NORM = BatchNorm(), BATCH_NORM_PREDICT = BatchNormPredict()
OPERATORS = {o.name: o for o in (GROUP_NORM, INSTANCE_NORM, BATCH_NORM, BATCH_NORM_PREDICT)}


# ---- functions -------------------------------------------------------------------------------------------------------

cdef object affine(Operator op, list xs, weight, bias, attributes):
    """op of xs and those of weight and bias that are not None. The weight of a bias alone is ones."""
    cdef Tensor t = <Tensor>xs[0]
    if weight is None and bias is not None and t.layout.ndim > 1:
        weight = ones(t.shape[1], DTYPES[t.dtype] if is_floating(t.dtype) else None)
    if weight is not None: xs.append(weight)
    if bias is not None: xs.append(bias)
    return apply_list(op, xs, attributes)


def group_norm(x: Data, num_groups: int, weight: Data | None = None, bias: Data | None = None,
               eps: float = 1e-5) -> Tensor:
    """Normalize `x` (n, channels, ...) to mean 0 and variance 1 over groups of adjacent channels in each sample, then
    multiply each channel by its `weight` and add its `bias` (None: there is none). `eps` is added to the variance.

    Wu and He, https://arxiv.org/abs/1803.08494. Raises ValueError if the channels are not a multiple of num_groups, for
    a weight or a bias of another shape, or for an eps that is not finite; TypeError if num_groups is not an
    integer or eps not a number."""
    cdef Groups a = Groups.__new__(Groups)
    a.groups = lay.read_integer("group_norm", "num_groups", num_groups, 1, 0x7fffffff, False)
    a.eps = read_eps("group_norm", eps)
    return affine(GROUP_NORM, [ensure_tensor(x)], weight, bias, a)


def instance_norm(x: Data, weight: Data | None = None, bias: Data | None = None, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of each sample of `x` (n, channels, ...) to mean 0 and variance 1, then multiply it by its
    `weight` and add its `bias` (None: there is none). `eps` is added to the variance. It is group_norm with a group for
    each channel.

    Ulyanov and others, https://arxiv.org/abs/1607.08022. Raises ValueError for a weight or a bias of another shape, if
    channels have one element, or for an eps that is not finite; TypeError if eps is not a number."""
    cdef Groups a = Groups.__new__(Groups)
    a.eps = read_eps("instance_norm", eps)
    return affine(INSTANCE_NORM, [ensure_tensor(x)], weight, bias, a)


@composed
def local_response_norm(x: Data, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """y = x / (k + alpha m)^beta, where m is the mean of x^2 over `size` channels of `x` (n, channels, ...): size // 2
    before each channel, itself, and (size - 1) // 2 behind it. Channels beyond the first and the last one are zeros.

    Krizhevsky, Sutskever and Hinton 2012, whose alpha multiplies a sum: it is alpha / size of here and of PyTorch.
    Composed of other operators. Integers are converted to the default dtype. Raises ValueError for fewer than 3
    dimensions or a size below 1, TypeError for a size that is no integer."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 3:
        raise ValueError(f"local_response_norm: x must have at least 3 dimensions, (n, channels, ...), got {t.shape}")
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"local_response_norm: size must be an int, got {described(size)}")
    if size < 1: raise ValueError(f"local_response_norm: size must be at least 1, got {described(size)}")
    if not t.layout.size: return mul(t, 1.0)
    n, channels = t.shape[:2]
    squares = reshape(square(t), (n, 1, channels, -1))
    means = avg_pool2d(squares, (size, 1), 1, (size // 2, 0))[:, :, :channels]      # (of an even size, one is too many)
    return div(t, power(add(mul(reshape(means, t.shape), alpha), k), beta))


def batch_norm(x: Data, running_mean: Tensor | None = None, running_var: Tensor | None = None,
               weight: Data | None = None, bias: Data | None = None, training: bool | None = None,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of `x` (n, channels, ...), then multiply it by its `weight` and add its `bias` (None:
    there is none). `eps` is added to the variance.

    In train mode each channel is normalized to mean 0 and variance 1 over the batch. running_mean and running_var, if
    they are not None, move by the factor `momentum` towards the mean and the unbiased variance of the batch; they are
    written in place, also outside record(), after everything that can fail. In predict mode they are the mean and the
    variance of each channel. `training` selects the mode; None: that of the thread.

    Ioffe and Szegedy, https://arxiv.org/abs/1502.03167. Raises ValueError for statistics, a weight or a bias of another
    shape, a momentum or an eps that is not finite; in predict mode if there are no statistics; in train mode if
    channels have one element, or if the statistics share memory with each other, x, weight or bias. Raises
    TypeError if the statistics are not floating-point tensors, momentum or eps is not a number, or training is not
    a bool."""
    cdef Tensor t = ensure_tensor(x)
    cdef bint train
    if training is not None and training is not True and training is not False:
        raise TypeError(f"batch_norm: training must be True, False or None (the mode of the thread), got "
                        f"{described(training)}")
    train = in_train_mode(flags()) if training is None else training
    read_eps("batch_norm", eps)
    if isinstance(momentum, bool) or not isinstance(momentum, (int, float)):
        raise TypeError(f"batch_norm: momentum must be a number, got {described(momentum)}")
    if not -DBL_MAX <= momentum <= DBL_MAX:
        raise ValueError(f"batch_norm: momentum is {described(momentum)}; wanted a finite number")
    if weight is not None: weight = ensure_tensor(weight)
    if bias is not None: bias = ensure_tensor(bias)
    running = [r for r in (running_mean, running_var) if r is not None]
    if len(running) == 1: raise ValueError("batch_norm: pass both of running_mean and running_var, or neither")
    if not train and not running:
        raise ValueError("batch_norm: in predict mode wanted running_mean and running_var, got None; pass them, or "
                         "training=True for the statistics of the batch")
    for name, r in zip(("running_mean", "running_var"), running): check_running(name, r, t, train)
    if not train: return predicted(t, running_mean, running_var, weight, bias, eps)
    if running: check_all_apart(running_mean, running_var, t, weight, bias)
    y, stats = affine(BATCH_NORM, [t], weight, bias, Epsilon(eps))
    if running and t.layout.size: move_running(running_mean, running_var, stats, momentum)
    return y


def batch_norm_predict(x: Data, running_mean: Tensor, running_var: Tensor, weight: Data | None = None,
                       bias: Data | None = None, eps: float = 1e-5) -> Tensor:
    """batch_norm in predict mode. The statistics are constants: they have no gradients."""
    cdef Tensor t = ensure_tensor(x)
    read_eps("batch_norm", eps)
    check_statistic("running_mean", running_mean, t)
    check_statistic("running_var", running_var, t)
    return predicted(t, running_mean, running_var, weight, bias, eps)


cdef object predicted(Tensor t, running_mean, running_var, weight, bias, eps):
    """batch_norm_predict() of statistics that have been checked."""
    dtype = DTYPES[t.dtype] if is_floating(t.dtype) else None
    running = [r if dtype is None or r.dtype == dtype else r.astype(dtype) for r in (running_mean, running_var)]
    return affine(BATCH_NORM_PREDICT, [t, *running], weight, bias, Epsilon(eps))


def batch_norm_with_statistics(x: Data, weight: Data | None = None, bias: Data | None = None,
                               eps: float = 1e-5) -> tuple[Tensor, Tensor]:
    """batch_norm in train mode without running statistics: the result, and the statistics of the batch."""
    return affine(BATCH_NORM, [ensure_tensor(x)], weight, bias, Epsilon(read_eps("batch_norm", eps)))
