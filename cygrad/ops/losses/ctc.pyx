"""ctc_loss: the connectionist temporal classification loss."""

from libc.stdint cimport int64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, saved
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply2
from cygrad.kernels.losses cimport ctc as kernels
from cygrad.kernels.array cimport INT64, Array, Layout, itemsize, real
from cygrad.kernels.by_dtype cimport call, element, number, put_number
from cygrad.kernels.losses.ctc cimport Ctc
from cygrad.kernels.driver cimport gather as copy_elements
from cygrad.kernels.threads cimport threads_for
from cygrad.ops.losses.classes cimport (
    capacity, dense, gradient_capacity, gradient_rows, padded, read_input, reduce_rows,
)
from cygrad.ops.losses.loss cimport MEAN, NONE, read_reduction

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError, described
from cygrad.core.interop.creation import arange, full
from cygrad.core.interop.numpy import tensor
from cygrad.ops.elementwise.compare import equal, where
from cygrad.ops.elementwise.functions import exp
from cygrad.ops.shapes.index import gather, scatter_add
from cygrad.ops.shapes.join import concat, stack
from cygrad.ops.shapes.shape import broadcast_to, copy, expand_dims, reshape
from cygrad.ops.reductions.softmax import logsumexp

LOW = -1e30                 # takes the place of -inf in the formula, because derivatives at -inf are NaN


cdef struct Options:        # the attributes, for kernels
    int kind                # the reduction
    int64_t blank
    bint zero_infinity
    Py_ssize_t longest

cdef class Alignment(Attributes):
    """The attributes of ctc_loss. `longest` is the length of the longest target."""
    cdef readonly str reduction
    cdef readonly int64_t blank
    cdef readonly bint zero_infinity
    cdef readonly Py_ssize_t longest
    cdef Options options

    def __cinit__(self, str reduction, blank, bint zero_infinity, longest):
        self.reduction, self.blank, self.zero_infinity, self.longest = reduction, blank, zero_infinity, longest
        self.options = Options(("none", "mean", "sum").index(reduction), blank, zero_infinity, longest)


cdef Ctc job_of(const Array* x, const Array* labels, const Options* a) noexcept nogil:
    """The job. The labels begin with the lengths of the inputs, the lengths of the targets, and their starts."""
    cdef Ctc c
    cdef Py_ssize_t n = x.layout.shape[1]
    c.dtype, c.steps, c.samples, c.classes, c.longest = x.dtype, x.layout.shape[0], n, x.layout.shape[2], a.longest
    c.input_lengths = <const int64_t*>labels.data
    c.target_lengths, c.starts, c.targets = c.input_lengths + n, c.input_lengths + 2 * n, c.input_lengths + 3 * n
    c.n_targets = labels.layout.size - 3 * n
    c.blank, c.zero_infinity, c.part = a.blank, a.zero_infinity, 0
    c.x = c.g = NULL
    c.loss = c.dx = c.workspace = NULL
    return c


cdef size_t parts_bytes(const Ctc* c, bint backward) noexcept nogil:
    """Bytes of workspace for a part on each thread. A step of a state costs as much as 16 plain elements."""
    cdef Py_ssize_t parts = threads_for(16 * c.steps * c.samples * (2 * c.longest + 1))
    return min(parts, c.samples) * kernels.part_bytes(c, backward)


cdef double share_of(const Ctc* c, Py_ssize_t i, int reduction) noexcept nogil:
    """What the loss of sample i is divided by before the sum: for a mean, the length of its target."""
    return max(c.target_lengths[i], <int64_t>1) if reduction == MEAN else 1


cdef inline void divide(real* y, double n) noexcept nogil:
    y[0] /= <real>n


cdef class CtcLoss(Operator):
    """y = mean of -log sum over alignments of product e^x        dx = -g (probability of the symbol at the step)

    Backward keeps x and the labels. It computes the forward sums again, in a workspace of steps * (2 * longest target
    + 5) elements on each thread. The formula computes both sums step by step from operators."""
    traits = "fused differentiable"
    row, operands, functions = "ctc_loss_packed", "log_probs packed", {
        "ctc_loss": "log_probs targets input_lengths target_lengths"}
    no_gradient, reads = "packed targets input_lengths target_lengths", "log_probs packed"

    cdef int check(self, const Array* x, const Array* labels, const Options* a, bint kept) except -1 nogil:
        """Raise an error for labels or lengths that the kernels cannot use: ValueError in forward, InplaceError in
        backward (kept). A replay may read others than the function saw, and NumPy may have changed those that were
        kept."""
        cdef Ctc k = job_of(x, labels, a)
        cdef Py_ssize_t i, n = k.samples, at
        cdef bint fits = 0 <= a.blank < k.classes
        for i in range(n):
            fits = fits and 0 <= k.input_lengths[i] <= k.steps and 0 <= k.target_lengths[i] <= k.longest
            fits = fits and 0 <= k.starts[i] <= k.n_targets - k.target_lengths[i]
        for at in range(k.n_targets): fits = fits and 0 <= k.targets[at] < k.classes
        if fits: return 0
        with gil:
            what = (f"ctc_loss: a length, a start, a label or the blank is out of range for log_probs of shape "
                    f"{lay.shape_tuple(x.layout)} and targets of up to {a.longest} labels")
            if kept: raise InplaceError(f"{what}; it was modified since forward; pass a copy()")
            raise ValueError(what)

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Options a = (<Alignment>c.attributes).options
        cdef Ctc k = job_of(&c.x[0], &c.x[1], &a)
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = lay.dense(1, &k.samples) if a.kind == NONE else lay.incref(lay.SCALAR)
        c.workspace_bytes = padded(k.samples * itemsize(k.dtype)) + capacity(&c.x[0]) + parts_bytes(&k, False)
        c.work = 16 * k.steps * k.samples * (2 * k.longest + 1)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Options a = (<Alignment>c.attributes).options
        cdef Ctc k = job_of(&c.x[0], &c.x[1], &a)
        cdef char* workspace = c.workspace + padded(k.samples * itemsize(k.dtype))
        cdef Layout rows
        cdef Py_ssize_t step = 1
        self.check(&c.x[0], &c.x[1], &a, False)
        k.x = dense(&c.x[0], &workspace)
        k.loss = c.y[0].data if a.kind == NONE else c.workspace
        start(&k, workspace, c.workspace_bytes - (workspace - c.workspace), False)
        kernels.ctc(&k)
        if a.kind == NONE: return 0
        for i in range(k.samples):
            call(k.dtype, divide[float], divide[double], element(k.dtype, k.loss, i), share_of(&k, i, a.kind))
        rows = c.x[1].layout[0]                     # number of samples; labels are one-dimensional
        rows.shape, rows.strides, rows.size, rows.dense, rows.offset = &k.samples, &step, k.samples, True, 0
        return reduce_rows(c, a.kind, &rows, k.loss, k.samples)

    cdef tuple call_of(self, operands, arguments):
        return range(2) if operands[1] == "packed" else None, None

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Options a = (<Alignment>b.attributes).options
        cdef Array x = saved(b, 0), labels = saved(b, 1)
        cdef Ctc k = job_of(&x, &labels, &a)
        cdef Stage* s = add_stage(b, 1)
        s.workspace_bytes = padded(k.samples * itemsize(b.dtype)) + capacity(&x) + gradient_capacity(&b.g[0], a.kind)
        s.workspace_bytes += parts_bytes(&k, True)
        b.work = 32 * k.steps * k.samples * (2 * k.longest + 1)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Options a = (<Alignment>b.attributes).options
        cdef Array x = saved(b, 0), labels = saved(b, 1)
        cdef Ctc k = job_of(&x, &labels, &a)
        cdef char* workspace = b.workspace + padded(k.samples * itemsize(b.dtype))
        cdef Py_ssize_t i, step = 0
        cdef const char* g
        cdef double divisor
        self.check(&x, &labels, &a, True)
        k.x, g = dense(&x, &workspace), gradient_rows(&b.g[0], a.kind, &workspace, &step)
        for i in range(k.samples):
            divisor = share_of(&k, i, a.kind) * (k.samples if a.kind == MEAN else 1)
            put_number(k.dtype, b.workspace, i, number(k.dtype, g, i * step) / divisor)
        k.g, k.dx = b.workspace, b.dx[0].data
        start(&k, workspace, b.stages[stage].workspace_bytes - (workspace - b.workspace), True)
        kernels.ctc(&k)

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        if not x.size: return c.locally_constant(full(x.shape, 0, dtype=x.dtype))
        return gradient_of(x, values_of(c.input(1)), c.attributes, g)


cdef void start(Ctc* k, char* workspace, size_t nbytes, bint backward) noexcept nogil:
    """Divide the samples into as many parts as the workspace has memory for."""
    cdef Py_ssize_t parts = max(<Py_ssize_t>1, <Py_ssize_t>(nbytes // kernels.part_bytes(k, backward)))
    k.workspace, k.part = workspace, max(<Py_ssize_t>1, (k.samples + parts - 1) // parts)


# ---- the formula -----------------------------------------------------------------------------------------------------

cdef object values_of(Tensor labels):
    """The labels as a NumPy array. They do not change: no one else holds this tensor. So a replay may capture them,
    which it refuses for numpy()."""
    cdef Array a
    cdef int64_t[::1] values = np.empty(labels.layout.size, "int64")
    a.data, a.layout, a.dtype = labels.buffer.data + labels.layout.offset * 8, labels.layout, labels.dtype
    if a.layout.size: copy_elements(<char*>&values[0], &a, 0, a.layout.size)
    return np.asarray(values)


cdef object gradient_of(x, labels, Alignment a, g):
    """-g e^(alpha + beta - z) of each state, added up for each symbol; z = log sum e^(alpha + beta)."""
    steps, n, _ = x.shape
    inputs, lengths, starts, targets = labels[:n], labels[n:2 * n], labels[2 * n:3 * n], labels[3 * n:]
    symbols = np.full((n, 2 * a.longest + 1), a.blank)
    for k in range(n): symbols[k, 1:2 * lengths[k]:2] = targets[starts[k]:starts[k] + lengths[k]]
    state = np.arange(symbols.shape[1])
    skips = np.zeros(symbols.shape, bool)
    skips[:, 2:] = (state[2:] % 2 == 1) & (symbols[:, 2:] != symbols[:, :-2])
    last = 2 * lengths[:, None]
    step = reshape(arange(steps), (steps, 1, 1))        # (tensors where there are steps, because their memory counts)
    inside = (step < tensor(inputs[:, None])) & tensor(state <= last)   # (steps, n, states)
    end = equal(step, tensor(inputs[:, None] - 1)) & tensor((state <= last) & (state >= last - 1))
    index = copy(broadcast_to(tensor(symbols), inside.shape))
    e = gather(x, 2, index)
    alpha = sums_of(e, [inside[0] & tensor(state < 2)] + [None] * (steps - 1), skips, range(steps))
    beta = sums_of(e, [end[t] for t in range(steps)], skips, range(steps - 1, -1, -1))
    z = logsumexp(where(end, alpha, LOW), (0, 2), True)                 # (1, n, 1)
    if a.reduction == "none": g = reshape(g, (1, n, 1))
    elif a.reduction == "mean": g = g / (n * np.maximum(lengths, 1)[None, :, None]).astype(str(x.dtype))
    impossible = z < LOW / 2
    g = where(impossible, 0 if a.zero_infinity else np.nan, g)
    terms = where(inside, exp(where(inside, alpha + beta - z, 0)) * g, 0)
    return -scatter_add(full(x.shape, 0, dtype=x.dtype), 2, index, terms)


cdef object sums_of(e, list begin, skips, steps):
    """alpha (steps ascending) or beta (descending) of each step, (steps, n, states). `begin` has for each step the
    states where paths begin (None: nowhere)."""
    cdef list found = [None] * len(begin)
    forward = steps.step > 0
    narrow = full((e.shape[1], min(2, e.shape[2])), LOW, dtype=e.dtype)
    if not forward: skips = np.concatenate([skips[:, 2:], np.zeros((len(skips), min(2, skips.shape[1])), bool)], 1)
    v = None
    for t in steps:
        if v is None: sums = full(e.shape[1:], LOW, dtype=e.dtype)
        else:
            if not forward: v = v + e[t + 1]
            one, two = shifted(v, narrow, 1, forward), shifted(v, narrow, 2, forward)
            sums = logsumexp(stack([v, one, where(skips, two, LOW)]), 0)
        if begin[t] is not None: sums = where(begin[t], 0, sums)
        v = found[t] = sums + e[t] if forward else sums
    return stack(found)


cdef object shifted(v, narrow, int by, bint forward):
    """v with its states moved up (or down) by 1 or 2."""
    by = min(by, v.shape[1])
    return concat([narrow[:, :by], v[:, :v.shape[1] - by]], 1) if forward else concat([v[:, by:], narrow[:, :by]], 1)


# ---- the function ----------------------------------------------------------------------------------------------------

cdef Operator CTC_LOSS = CtcLoss()
OPERATORS = {o.name: o for o in (CTC_LOSS,)}


cdef object integers_of(str what, value):
    """An argument as an array of int64."""
    array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"ctc_loss: {what} must be integers, got {described(value)}")
    return array.astype("int64")


cdef object lengths_of(str what, value, Py_ssize_t n, Py_ssize_t most, str of):
    """Lengths as an array (n,). Raises ValueError for a length below 0 or above `most`."""
    lengths = integers_of(what, value)
    if lengths.size != n or lengths.ndim > 1:
        raise ValueError(f"ctc_loss: {what} has shape {lengths.shape}; wanted one length for each of the {n} samples")
    lengths = lengths.reshape(n)
    bad = np.flatnonzero((lengths < 0) | (lengths > most))
    if bad.size:
        raise ValueError(f"ctc_loss: {what}[{bad[0]}] is {lengths[bad[0]]}; it must be from 0 to {most}, {of}")
    return lengths


cdef object targets_of(targets, lengths, Py_ssize_t classes):
    """All labels in a row. Raises IndexError for a label that is not a class."""
    labels = integers_of("targets", targets)
    if labels.ndim == 2 and len(labels) == len(lengths):
        inside = np.arange(labels.shape[1]) < lengths[:, None]
    elif labels.ndim == 1 and labels.size == lengths.sum():
        inside = np.ones(labels.size, bool)
    else:
        raise ValueError(f"ctc_loss: targets has shape {labels.shape}; wanted ({len(lengths)}, longest target), or "
                         f"({lengths.sum()},) for all targets in a row, which is the sum of target_lengths")
    bad = np.argwhere(inside & ((labels < 0) | (labels >= classes)))
    if len(bad):
        at = tuple(bad[0].tolist())
        raise IndexError(f"ctc_loss: label {labels[at]} at index {at[0] if len(at) == 1 else at} is not a class; there "
                         f"are {classes} classes, from 0 to {classes - 1}")
    return labels[inside]


def ctc_loss(log_probs: Data, targets: Data, input_lengths: Data, target_lengths: Data, blank: int = 0,
             reduction: Literal["mean", "sum", "none"] = "mean", zero_infinity: bool = False) -> Tensor:
    """The connectionist temporal classification loss: minus the logarithm of the sum of the probabilities of all
    alignments of a sequence with its target. (Graves et al., Connectionist Temporal Classification, ICML 2006)

    `log_probs` (steps, samples, classes), or (steps, classes) for one sample, are logarithms of probabilities, as
    log_softmax gives. `targets` are integers from 0 to classes - 1, (samples, longest target), or (sum of
    target_lengths,) for all targets in a row. `input_lengths` and `target_lengths` have one length for each sample.
    "mean" divides the loss of each sample by the length of its target (at least 1), then takes the mean. A target that
    is too long for its input has the loss inf and the gradient NaN, or with `zero_infinity` 0 and 0.

    The gradient is the derivative with respect to log_probs. PyTorch's differs from it by a term e^log_probs, which
    vanishes in the gradient of log_softmax. A gradient with create_graph=True takes a number of operators in proportion
    to the steps. Raises IndexError for a label that is not a class, ValueError for a length that is out of range."""
    cdef Tensor x = read_input("ctc_loss", log_probs)
    how = read_reduction("ctc_loss", reduction).reduction
    cdef bint single = x.layout.ndim == 2
    if x.layout.ndim not in (2, 3):
        raise ValueError(f"ctc_loss: log_probs is {x.shape}; wanted (steps, samples, classes) or (steps, classes)")
    if single: x = expand_dims(x, 1)
    steps, n, classes = x.shape
    if classes == 0:
        raise ValueError(f"ctc_loss: log_probs is {x.shape[:1] + x.shape[1 + single:]}; wanted at least one class, the "
                         f"blank")
    if isinstance(blank, bool) or not isinstance(blank, int) or not 0 <= blank < classes:
        raise ValueError(f"ctc_loss: blank must be an integer from 0 to {classes - 1}, got {described(blank)}")
    inputs = lengths_of("input_lengths", input_lengths, n, steps, "the steps of log_probs")
    shape = targets.shape if isinstance(targets, Tensor) else np.shape(targets)
    most = shape[1] if len(shape) == 2 else int(np.prod(shape))
    lengths = lengths_of("target_lengths", target_lengths, n, most, "the size of targets")
    labels = targets_of(targets, lengths, classes)
    packed = tensor(np.concatenate([inputs, lengths, np.cumsum(lengths) - lengths, labels]))
    y = apply2(CTC_LOSS, x, packed, Alignment(how, blank, zero_infinity, int(lengths.max(initial=0))))
    return reshape(y, ()) if single and how == "none" else y


def ctc_loss_packed(log_probs: Data, packed: Data, blank: int = 0, reduction: Literal["mean", "sum", "none"] = "mean",
                    zero_infinity: bool = False, longest: int = 0) -> Tensor:
    """ctc_loss of `log_probs` (steps, samples, classes). `packed` has, in int64, the lengths of the inputs, the lengths
    of the targets, where each target starts, and all labels; `longest` is the length of the longest target."""
    cdef Tensor x = read_input("ctc_loss", log_probs), p = ensure_tensor(packed)
    how = read_reduction("ctc_loss", reduction).reduction
    if x.layout.ndim != 3 or p.dtype != INT64 or p.layout.ndim != 1 or p.layout.size < 3 * x.shape[1] \
            or not p.layout.dense:
        raise ValueError(f"ctc_loss: log_probs is {x.shape} and packed {DTYPES[p.dtype]} of shape {p.shape}; wanted "
                         f"(steps, samples, classes), and int64 with 3 numbers for each sample and the labels")
    blank = lay.read_integer("ctc_loss", "blank", blank, 0, x.shape[2] - 1, False)
    longest = lay.read_integer("ctc_loss", "longest", longest, 0, p.layout.size - 3 * x.shape[1], False)
    return apply2(CTC_LOSS, x, p, Alignment(how, blank, bool(zero_infinity), longest))
