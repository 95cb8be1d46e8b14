"""Losses over classes: cross_entropy, with labels or probabilities, and nll_loss.

The classes are along axis 1 of x, or along axis 0 if x has one dimension. A row is one place of the other axes."""

from libc.stdint cimport int64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.kernels.losses cimport entropy as kernels
from cygrad.kernels.array cimport Array, is_floating
from cygrad.kernels.driver cimport gather
from cygrad.kernels.losses.entropy cimport Entropy
from cygrad.ops.losses.classes cimport (
    ClassLoss, LossOptions, Options, along_classes, apply, capacity, check_classes, check_labels, classes_last,
    classes_of, dense, few_columns, gradient_capacity, gradient_rows, has_weight, read_input, read_labels_of,
    read_weight, reduce_rows, row_gradient, split, targets_of,
)
from cygrad.ops.losses.loss cimport MEAN, NONE

from cygrad.core.dtypes import DTYPES
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import expand_dims, reshape
from cygrad.ops.reductions.softmax import log_softmax, softmax


# ---- cross_entropy with labels ---------------------------------------------------------------------------------------

cdef class CrossEntropy(ClassLoss):
    """y = mean of w[label] (log sum e^x - x[label])        dx = g w[label] (softmax(x) - onehot(label)) / sum w[label]

    With smoothing s, t = w ((1 - s) onehot(label) + s / classes) takes the place of w[label] onehot(label). Backward
    keeps x, the labels, w, and log sum e^(x - max) of each row (a hidden output)."""
    lanes = "reducing_classes"
    operands, no_gradient = "x target weight?", "target weight"
    functions = {"cross_entropy_along": "x target weight?"}
    hidden, reads = "logs", "x target weight logs"

    cdef int infer(self, Call* c) except -1 nogil:
        ClassLoss.infer(self, c)
        c.workspace_bytes += capacity(&c.x[0])
        return self.hide_logs(c)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Options a = (<LossOptions>c.attributes).options
        cdef char* workspace = c.workspace
        cdef Entropy e
        cdef double total
        split(c.x[0].layout, a.axis, &e)
        check_labels(self, &c.x[1], e.classes, &c.x[2] if c.n_in == 3 else NULL, a.ignored, False, &total)
        e.dtype, e.x, e.labels, e.target = c.y[0].dtype, dense(&c.x[0], &workspace), <const int64_t*>c.x[1].data, NULL
        e.loss = c.y[0].data if a.kind == NONE else workspace
        e.weight = c.x[2].data if c.n_in == 3 else NULL
        e.ignored, e.smoothing, e.logs = a.ignored, a.smoothing, c.y[1].data
        kernels.cross_entropy(&e)
        return reduce_rows(c, a.kind, c.x[1].layout, e.loss, total)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.donated_saved = 1
        s.workspace_bytes = gradient_capacity(&b.g[0], (<LossOptions>b.attributes).options.kind)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Options a = (<LossOptions>b.attributes).options
        cdef Array x = saved(b, 0), labels = saved(b, 1), w
        cdef char* workspace = b.workspace
        cdef Entropy e
        cdef double total
        split(x.layout, a.axis, &e)
        e.weight = NULL
        if b.n_in == 3:
            w = saved(b, 2)
            e.weight = w.data
        check_labels(self, &labels, e.classes, &w if b.n_in == 3 else NULL, a.ignored, True, &total)
        e.x = x.data
        if not x.layout.dense:
            gather(b.dx[0].data, &x, 0, x.layout.size)
            e.x = b.dx[0].data
        e.dtype, e.labels, e.target, e.ignored = b.dtype, <const int64_t*>labels.data, NULL, a.ignored
        e.smoothing, e.logs, e.dx, e.dtarget = a.smoothing, saved(b, OWN | 1).data, b.dx[0].data, NULL
        e.g = gradient_rows(&b.g[0], a.kind, &workspace, &e.g_step)
        e.scale = 1 / total if a.kind == MEAN else 1
        kernels.cross_entropy_grad(&e)

    cdef object formula(self, c, int i, g):
        x, labels, a = c.input(0), c.input(1), c.attributes
        w = c.input(2) if has_weight(c) else None
        t = along_classes(targets_of(a, labels, w, x.shape[a.axis], x.dtype), a.axis)
        f = expand_dims(row_gradient(a, g, labels, w), a.axis)
        return f * (softmax(x, a.axis) * sum(t, a.axis, True) - t)


# ---- cross_entropy with probabilities --------------------------------------------------------------------------------

cdef class SoftCrossEntropy(ClassLoss):
    """z = mean of sum t (log sum e^x - x), t = w ((1 - s) y + s / classes)
    dx = g (softmax(x) sum t - t) / rows        dy = g (1 - s) w (log sum e^x - x) / rows

    The sums are over the classes, y are the probabilities and w the weights. Backward keeps x, w, log sum e^(x - max)
    of each row (a hidden output), and for dx also y."""
    lanes, traits = "reducing_probabilities", "promotes fused differentiable"
    operands, no_gradient = "x probabilities weight?", "weight"
    functions = {"soft_cross_entropy_along": "x probabilities weight?"}
    hidden, reads = "logs", {"x": "x probabilities weight logs", "probabilities": "x weight logs"}

    cdef int infer(self, Call* c) except -1 nogil:
        ClassLoss.infer(self, c)
        c.workspace_bytes += capacity(&c.x[0]) + capacity(&c.x[1])
        return self.hide_logs(c)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Options a = (<LossOptions>c.attributes).options
        cdef char* workspace = c.workspace
        cdef Py_ssize_t rows
        cdef Entropy e
        split(c.x[0].layout, a.axis, &e)
        rows = e.outer * e.inner
        e.dtype, e.x, e.target = c.y[0].dtype, dense(&c.x[0], &workspace), dense(&c.x[1], &workspace)
        e.loss = c.y[0].data if a.kind == NONE else workspace
        e.labels, e.weight = NULL, c.x[2].data if c.n_in == 3 else NULL
        e.smoothing, e.logs = a.smoothing, c.y[1].data
        kernels.cross_entropy(&e)
        return reduce_rows(c, a.kind, c.y[1].layout, e.loss, rows)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """One stage for both gradients: the pass over x is shared."""
        cdef Stage* s = add_stage(b, 3)
        cdef Array x = saved(b, 0), y
        s.donated_saved = 1
        s.workspace_bytes = gradient_capacity(&b.g[0], (<LossOptions>b.attributes).options.kind) + capacity(&x)
        if b.want[0]:
            y = saved(b, 1)
            s.workspace_bytes += capacity(&y)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Options a = (<LossOptions>b.attributes).options
        cdef Array x = saved(b, 0), y
        cdef char* workspace = b.workspace
        cdef Entropy e
        split(x.layout, a.axis, &e)
        e.dtype, e.x, e.labels, e.smoothing = b.dtype, dense(&x, &workspace), NULL, a.smoothing
        e.logs, e.dx = saved(b, OWN | 1).data, b.dx[0].data if b.want[0] else NULL
        e.weight = saved(b, 2).data if b.n_in == 3 else NULL
        e.dtarget = b.dx[1].data if b.want[1] else NULL
        e.target = e.x                              # (dtarget does not depend on the probabilities)
        if b.want[0]:
            y = saved(b, 1)
            e.target = dense(&y, &workspace)
        e.g = gradient_rows(&b.g[0], a.kind, &workspace, &e.g_step)
        e.scale = 1.0 / (e.outer * e.inner) if a.kind == MEAN else 1
        kernels.cross_entropy_grad(&e)

    cdef object formula(self, c, int i, g):
        x, a = c.input(0), c.attributes
        w = reshape(c.input(2), (-1,) + (1,) * (x.ndim - 1 - a.axis)) if has_weight(c) else 1
        g = reshape(g, (1,) * x.ndim) if a.reduction != "none" else expand_dims(g, a.axis)
        if a.reduction == "mean": g = g / (x.size // x.shape[a.axis])
        if i == 1: return -(g * (1 - a.label_smoothing) * w) * log_softmax(x, a.axis)
        t = w * ((1 - a.label_smoothing) * c.input(1) + a.label_smoothing / x.shape[a.axis])
        return g * (softmax(x, a.axis) * sum(t, a.axis, True) - t)


# ---- nll_loss --------------------------------------------------------------------------------------------------------

cdef class NllLoss(ClassLoss):
    """y = mean of -w[label] x[label]        dx = -g w[label] onehot(label) / sum of w[label]

    Backward keeps the labels and w."""
    lanes = "reducing_classes"
    operands, no_gradient, reads = "x target weight?", "target weight", "target weight"

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Options a = (<LossOptions>c.attributes).options
        cdef char* values = c.y[0].data if a.kind == NONE else c.workspace
        cdef double total
        check_labels(self, &c.x[1], c.x[0].layout.shape[a.axis], &c.x[2] if c.n_in == 3 else NULL, a.ignored,
                     False, &total)
        kernels.pick(&c.x[0], a.axis, <const int64_t*>c.x[1].data, a.ignored,
                     c.x[2].data if c.n_in == 3 else NULL, values)
        return reduce_rows(c, a.kind, c.x[1].layout, values, total)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.workspace_bytes = gradient_capacity(&b.g[0], (<LossOptions>b.attributes).options.kind)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Options a = (<LossOptions>b.attributes).options
        cdef Array labels = saved(b, 1), w
        cdef char* workspace = b.workspace
        cdef Entropy e
        cdef double total
        split(b.x[0], a.axis, &e)
        e.weight = NULL
        if b.n_in == 3:
            w = saved(b, 2)
            e.weight = w.data
        check_labels(self, &labels, e.classes, &w if b.n_in == 3 else NULL, a.ignored, True, &total)
        e.dtype, e.labels, e.ignored, e.dx = b.dtype, <const int64_t*>labels.data, a.ignored, b.dx[0].data
        e.g = gradient_rows(&b.g[0], a.kind, &workspace, &e.g_step)
        e.scale = 1 / total if a.kind == MEAN else 1
        kernels.place(&e)

    cdef object formula(self, c, int i, g):
        shape, labels, a = c.shape(0), c.input(1), c.attributes
        w = c.input(2) if has_weight(c) else None
        t = along_classes(targets_of(a, labels, w, shape[a.axis], g.dtype), a.axis)
        return c.locally_constant(-expand_dims(row_gradient(a, g, labels, w), a.axis) * t)


cdef Operator CROSS_ENTROPY = CrossEntropy(), SOFT_CROSS_ENTROPY = SoftCrossEntropy(), NLL_LOSS = NllLoss()
OPERATORS = {o.name: o for o in (CROSS_ENTROPY, SOFT_CROSS_ENTROPY, NLL_LOSS)}

cdef str WANTED = "integers of the shape of x without its axis of classes, which is axis 1, or 0 if x has one axis"
cdef str OR_SOFT = WANTED + ", or probabilities of the shape of x"


def cross_entropy(x: Data, target: Data, weight: Data | None = None, ignore_index: int = -100,
                  reduction: Literal["mean", "sum", "none"] = "mean", label_smoothing: float = 0.0) -> Tensor:
    """The cross-entropy of the softmax of `x` (logits) with `target`. The classes are along axis 1 of x (n, classes,
    ...), or along axis 0 of x (classes,). The other axes are the rows.

    `target` has integers from 0 to classes - 1, of the shape of the rows, or probabilities of the shape of x, which may
    have a gradient. `weight` (classes,) multiplies the terms of each class; it is a constant without a gradient. A row
    with the label `ignore_index` has the loss 0 and the gradient 0. `label_smoothing` s replaces the target by 1 - s
    times the target plus s / classes. "mean" divides the sum by the sum of the weights of the labels that count, or
    with probabilities by the number of rows; if all rows are ignored it is NaN, with gradients of 0. "sum" is the sum,
    "none" gives one value for each row. Raises IndexError for a label that is not a class. The definitions are those of
    https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html"""
    cdef Tensor t = read_input("cross_entropy", x), l = ensure_tensor(target)
    cdef int axis = 1 if t.layout.ndim > 1 else 0
    check_classes("cross_entropy", "x", t, t.layout.shape[axis])
    if is_floating(l.dtype) and lay.same_shape(t.layout, l.layout):
        return soft_cross_entropy(t, l, weight, reduction, label_smoothing)
    l = read_labels_of("cross_entropy", t, l, axis, OR_SOFT)
    cdef Tensor w = None if weight is None else read_weight("cross_entropy", t, axis, weight)
    if few_columns(t): t, axis = classes_last(t), t.layout.ndim - 1
    return apply(CROSS_ENTROPY, t, l, w, classes_of("cross_entropy", reduction, ignore_index, label_smoothing, axis, 0))


def soft_cross_entropy(x: Data, probabilities: Data, weight: Data | None = None,
                       reduction: Literal["mean", "sum", "none"] = "mean", label_smoothing: float = 0.0) -> Tensor:
    """cross_entropy with probabilities."""
    cdef Tensor t = read_input("cross_entropy", x), y = read_probabilities(t, probabilities)
    cdef int axis = 1 if t.layout.ndim > 1 else 0
    cdef Tensor w = None if weight is None else read_weight("cross_entropy", t, axis, weight)
    check_classes("cross_entropy", "x", t, t.layout.shape[axis])
    if few_columns(t): t, y, axis = classes_last(t), classes_last(y), t.layout.ndim - 1
    return apply(SOFT_CROSS_ENTROPY, t, y, w, classes_of("cross_entropy", reduction, -100, label_smoothing, axis, 0))


def nll_loss(x: Data, target: Data, weight: Data | None = None, ignore_index: int = -100,
             reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The negative log-likelihood of the labels `target` under `x`, logarithms of probabilities. The classes are along
    axis 1 of x (n, classes, ...), or along axis 0 of x (classes,). The other axes are the rows, and `target` has their
    shape.

    `weight` (classes,) multiplies the values of each class; it is a constant without a gradient. A row with the label
    `ignore_index` has the loss 0 and the gradient 0. "mean" divides the sum by the sum of the weights of the labels
    that count; if all are ignored it is NaN, with a gradient of 0. "sum" is the sum, "none" gives one value for each
    row. Raises IndexError for a label that is not a class. The definitions are those of
    https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html"""
    cdef Tensor t = read_input("nll_loss", x)
    cdef int axis = 1 if t.layout.ndim > 1 else 0
    cdef Tensor l = read_labels_of("nll_loss", t, target, axis, WANTED)
    cdef Tensor w = None if weight is None else read_weight("nll_loss", t, axis, weight)
    return apply(NLL_LOSS, t, l, w, classes_of("nll_loss", reduction, ignore_index, 0.0, axis, 0))


def cross_entropy_along(x: Data, target: Data, weight: Data | None = None, axis: int = -1, ignore_index: int = -100,
                        reduction: Literal["mean", "sum", "none"] = "mean", label_smoothing: float = 0.0) -> Tensor:
    """cross_entropy with integer labels and the classes along `axis`."""
    cdef Tensor t = read_input("cross_entropy", x), w = None
    cdef int a = lay.read_axis(axis, t.layout.ndim)
    check_classes("cross_entropy", "x", t, t.layout.shape[a])
    cdef Tensor l = read_labels_of("cross_entropy", t, target, a, "integers of the shape of x without that axis")
    if weight is not None: w = read_weight("cross_entropy", t, a, weight)
    return apply(CROSS_ENTROPY, t, l, w, classes_of("cross_entropy", reduction, ignore_index, label_smoothing, a, 0))


def soft_cross_entropy_along(x: Data, probabilities: Data, weight: Data | None = None, axis: int = -1,
                             reduction: Literal["mean", "sum", "none"] = "mean",
                             label_smoothing: float = 0.0) -> Tensor:
    """cross_entropy with probabilities and the classes along `axis`."""
    cdef Tensor t = read_input("cross_entropy", x), y = read_probabilities(t, probabilities), w = None
    cdef int a = lay.read_axis(axis, t.layout.ndim)
    check_classes("cross_entropy", "x", t, t.layout.shape[a])
    if weight is not None: w = read_weight("cross_entropy", t, a, weight)
    return apply(SOFT_CROSS_ENTROPY, t, y, w, classes_of("cross_entropy", reduction, -100, label_smoothing, a, 0))


cdef Tensor read_probabilities(Tensor x, probabilities):
    """The target as probabilities. Raises ValueError unless they are floats of the shape of x."""
    cdef Tensor y = ensure_tensor(probabilities)
    if is_floating(y.dtype) and lay.same_shape(x.layout, y.layout): return y
    raise ValueError(f"cross_entropy: x is {x.shape} and the probabilities are {DTYPES[y.dtype]} of shape {y.shape}; "
                     f"wanted floats of the shape of x")
