"""linear_cross_entropy: the cross-entropy of x weight' + bias, without the whole matrix of logits."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport ADDING, BackwardCall, Call, Operator, Stage, add_stage, adds, factor, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply3, apply_list
from cygrad.kernels.losses cimport entropy as kernels
from cygrad.kernels.array cimport Array, Layout, is_real, itemsize
from cygrad.kernels.linalg.blas cimport biased_gemm, check_sizes, gemm, scaled_gemm
from cygrad.kernels.by_dtype cimport number, put_number
from cygrad.kernels.driver cimport gather
from cygrad.kernels.losses.entropy cimport Entropy
from cygrad.ops.losses.classes cimport (
    LossOptions, Options, capacity, check_classes, check_labels, classes_of, dense, gradient_capacity, gradient_rows,
    padded, read_input, read_labels_of, reduce_rows, row_gradient, targets_of,
)
from cygrad.ops.losses.loss cimport MEAN, NONE

import math

from cygrad.core.errors import described
from cygrad.ops.linalg.linalg import linear, matmul
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import expand_dims, reshape, transpose
from cygrad.ops.reductions.softmax import softmax


cdef enum:
    LABELS, X, W, BIAS      # the inputs

cdef enum:                  # the default chunk: 1 / PARTS of the rows, so the workspace is 1 / PARTS of the logits,
    PARTS = 16
    MOST_ROWS = 256         # but no more rows, since larger products are not faster,
    LEAST_BYTES = 64 << 10  # and at least the rows whose logits take this: products of few rows are slower

cdef struct Chunks:         # the operands of the products; the rows of x are processed `step` at a time
    int dtype
    Py_ssize_t rows, step, classes, width
    const Array* x
    const char* w
    const char* bias        # NULL: none
    char* packed            # memory for `step` rows of x, if x is not dense
    char* logits            # memory for `step` rows


cdef Chunks chunks_of(const Array* x, const Array* w, const Array* bias, Py_ssize_t step,
                      char** workspace) noexcept nogil:
    """The operands, with memory in the workspace, whose pointer is advanced. `step`: the argument `chunk`, or 0."""
    cdef Chunks k
    k.dtype, k.x, k.classes, k.width = x.dtype, x, w.layout.shape[0], w.layout.shape[1]
    k.rows = rows_of(x.layout)
    k.step = step_of(x, w, step)
    k.w, k.bias = dense(w, workspace), NULL
    if bias != NULL: k.bias = dense(bias, workspace)
    k.packed = workspace[0]
    if not x.layout.dense: workspace[0] += padded(k.step * k.width * itemsize(k.dtype))
    k.logits = workspace[0]
    workspace[0] += padded(k.step * k.classes * itemsize(k.dtype))
    return k


cdef size_t chunk_bytes(const Array* x, const Array* w, const Array* bias, Py_ssize_t step) noexcept nogil:
    """Bytes of workspace that chunks_of() needs."""
    cdef Py_ssize_t n = step_of(x, w, step)
    cdef size_t nbytes = capacity(w) + padded(n * w.layout.shape[0] * itemsize(x.dtype))
    if not x.layout.dense: nbytes += padded(n * w.layout.shape[1] * itemsize(x.dtype))
    return nbytes if bias == NULL else nbytes + capacity(bias)


cdef Py_ssize_t rows_of(const Layout* x) noexcept nogil:
    cdef Py_ssize_t n = 1
    for d in range(x.ndim - 1): n *= x.shape[d]
    return n


cdef Py_ssize_t step_of(const Array* x, const Array* w, Py_ssize_t step) noexcept nogil:
    """The number of rows in a chunk."""
    cdef Py_ssize_t rows = rows_of(x.layout), least
    if step == 0:
        least = LEAST_BYTES // max(w.layout.shape[0] * itemsize(x.dtype), 1)
        step = max(min(rows // PARTS, MOST_ROWS), least, 1)
    return min(step, rows)


cdef const char* logits_of(const Chunks* k, Py_ssize_t row, Py_ssize_t n) except NULL nogil:
    """Compute the logits of n rows from `row` on. Returns these rows of x."""
    cdef int size = itemsize(k.dtype)
    cdef const char* x = k.x.data + row * k.width * size
    if not k.x.layout.dense:
        gather(k.packed, k.x, row * k.width, n * k.width)
        x = k.packed
    biased_gemm(k.dtype, False, True, n, k.classes, k.width, 1, x, k.width, k.w, k.width, 0, k.logits, k.classes,
                k.bias)
    return x


cdef Py_ssize_t work_of(const Array* x, const Array* w) noexcept nogil:
    return rows_of(x.layout) * w.layout.shape[0] // 8 * w.layout.shape[1]


cdef class LinearCrossEntropy(Operator):
    """y = mean of (log sum e^z - z[label]), z = x w' + b
    dx = d w        dw = d' x        db = sum of d over rows,        d = g (softmax(z) - onehot(label)) / n

    Backward keeps x, w, b, the labels and log sum e^(z - max) of each row (a hidden output). It computes the logits z
    again, a chunk of rows at a time. The formula builds z and d whole."""
    operands, no_gradient = "target x weight bias?", "target"
    hidden, reads = "logs", "target x weight bias logs"
    traits = "promotes fused differentiable joint_formula"

    def __cinit__(self):
        self.n_unpromoted = 1

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Options a = (<LossOptions>c.attributes).options
        cdef const Layout* labels = c.x[LABELS].layout
        c.n_out, c.hidden = 2, 1
        c.y[0].dtype = c.y[1].dtype = c.x[X].dtype
        c.y[0].layout = lay.dense_like(labels) if a.kind == NONE else lay.incref(lay.SCALAR)
        c.y[1].layout = lay.dense(1, &labels.size)
        check_sizes(step_of(&c.x[X], &c.x[W], a.chunk), c.x[W].layout.shape[0], c.x[W].layout.shape[1])
        c.workspace_bytes = 0 if a.kind == NONE else padded(labels.size * itemsize(c.x[X].dtype))
        c.workspace_bytes += chunk_bytes(&c.x[X], &c.x[W], &c.x[BIAS] if c.n_in == 4 else NULL, a.chunk)
        c.work = work_of(&c.x[X], &c.x[W])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Options a = (<LossOptions>c.attributes).options
        cdef char* workspace = c.workspace
        cdef char* values = c.y[0].data if a.kind == NONE else workspace
        cdef int size = itemsize(c.y[0].dtype)
        cdef Py_ssize_t row = 0
        cdef double total
        cdef Entropy e
        cdef Chunks k
        check_labels(self, &c.x[LABELS], c.x[W].layout.shape[0], NULL, a.ignored, False, &total)
        if a.kind != NONE: workspace += padded(c.x[LABELS].layout.size * size)
        k = chunks_of(&c.x[X], &c.x[W], &c.x[BIAS] if c.n_in == 4 else NULL, a.chunk, &workspace)
        fill(&e, &k, &a)
        while row < k.rows:
            e.outer = min(k.step, k.rows - row)
            logits_of(&k, row, e.outer)
            e.labels = <const int64_t*>c.x[LABELS].data + row
            e.loss, e.logs = values + row * size, c.y[1].data + row * size
            kernels.cross_entropy(&e)
            row += e.outer
        return reduce_rows(c, a.kind, c.x[LABELS].layout, values, total)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """One stage for all gradients. gemm() can add those of x and w directly to a variable's .grad. dx may overwrite
        x, because the rows of a chunk are read before they are written."""
        cdef Options a = (<LossOptions>b.attributes).options
        cdef Stage* s = add_stage(b, (1 << X) | (1 << W) | (1 << BIAS if b.n_in == 4 else 0))
        cdef Array x = saved(b, X), w = saved(b, W), bias
        if b.n_in == 4: bias = saved(b, BIAS)
        s.writes, s.multiplies = ADDING, 1 << W
        if b.want[X] and x.layout.dense: s.donated_saved = 1 << X
        s.workspace_bytes = gradient_capacity(&b.g[0], a.kind)
        s.workspace_bytes += chunk_bytes(&x, &w, &bias if b.n_in == 4 else NULL, a.chunk)
        if b.n_in == 4 and b.want[BIAS]: s.workspace_bytes += padded(w.layout.shape[0] * 8)
        b.work = max(b.work, 3 * work_of(&x, &w))

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Options a = (<LossOptions>b.attributes).options
        cdef Array labels = saved(b, LABELS), x = saved(b, X), w = saved(b, W), bias
        cdef char* workspace = b.workspace
        cdef double* sums = NULL
        cdef int size = itemsize(b.dtype)
        cdef Py_ssize_t row = 0
        cdef const char* xs
        cdef const char* g
        cdef double total
        cdef Entropy e
        cdef Chunks k
        if b.n_in == 4: bias = saved(b, BIAS)
        check_labels(self, &labels, w.layout.shape[0], NULL, a.ignored, True, &total)
        if b.n_in == 4 and b.want[BIAS]:
            sums = <double*>workspace
            workspace += padded(w.layout.shape[0] * 8)
            memset(sums, 0, w.layout.shape[0] * 8)
        k = chunks_of(&x, &w, &bias if b.n_in == 4 else NULL, a.chunk, &workspace)
        g = gradient_rows(&b.g[0], a.kind, &workspace, &e.g_step)
        fill(&e, &k, &a)
        e.scale = 1 / total if a.kind == MEAN else 1
        if k.rows == 0 and b.want[W] and not adds(b, W): memset(b.dx[W].data, 0, w.layout.size * size)
        while row < k.rows:
            e.outer = min(k.step, k.rows - row)
            xs = logits_of(&k, row, e.outer)
            e.labels, e.logs = <const int64_t*>labels.data + row, saved(b, OWN | 1).data + row * size
            e.g = g + row * e.g_step * size
            kernels.cross_entropy_grad(&e)
            if b.want[W]: scaled_gemm(k.dtype, True, False, k.classes, k.width, e.outer, factor(b, W), k.logits,
                                      k.classes, xs, k.width, row > 0 or adds(b, W), b.dx[W].data, k.width)
            if sums != NULL: kernels.add_rows(k.dtype, e.outer, k.classes, k.logits, sums)
            if b.want[X]: gemm(k.dtype, False, False, e.outer, k.width, k.classes, k.logits, k.classes, k.w, k.width,
                               adds(b, X), b.dx[X].data + row * k.width * size, k.width)
            row += e.outer
        if sums != NULL: put_sums(&b.dx[BIAS], sums, adds(b, BIAS))

    cdef object formula(self, c, int i, g):
        a = c.attributes
        labels, x, w = c.input(LABELS), c.input(X), c.input(W)
        has_bias = (<Context>c).b.node.n_in == 4
        z = linear(x, w, c.input(BIAS)) if has_bias else linear(x, w)
        t = targets_of(a, labels, None, w.shape[0], x.dtype)
        d = expand_dims(row_gradient(a, g, labels, None), -1) * (softmax(z) * sum(t, -1, True) - t)
        n = math.prod(labels.shape)
        rows = reshape(d, (n, w.shape[0]))
        dx = matmul(d, w) if c.wants(X) else None
        dw = matmul(transpose(rows), reshape(x, (n, x.shape[-1]))) if c.wants(W) else None
        return (None, dx, dw, sum(rows, 0) if c.wants(BIAS) else None) if has_bias else (None, dx, dw)


cdef void fill(Entropy* e, const Chunks* k, const Options* a) noexcept nogil:
    """What is the same for all chunks. The gradient of the logits overwrites them."""
    e.dtype, e.classes, e.inner, e.x, e.target, e.weight = k.dtype, k.classes, 1, k.logits, NULL, NULL
    e.ignored, e.smoothing, e.dx, e.dtarget = a.ignored, a.smoothing, k.logits, NULL


cdef void put_sums(const Array* y, const double* sums, bint to_add) noexcept nogil:
    """y = sums, or y += sums"""
    for j in range(y.layout.size):
        put_number(y.dtype, y.data, j, sums[j] + (number(y.dtype, y.data, j) if to_add else 0))


cdef Operator LINEAR_CROSS_ENTROPY = LinearCrossEntropy()
OPERATORS = {o.name: o for o in (LINEAR_CROSS_ENTROPY,)}


def linear_cross_entropy(x: Data, weight: Data, target: Data, bias: Data | None = None, *, ignore_index: int = -100,
                         reduction: Literal["mean", "sum", "none"] = "mean", label_smoothing: float = 0.0,
                         chunk: int | None = None) -> Tensor:
    """cross_entropy(linear(x, weight, bias), target), of `x` (..., n), `weight` (classes, n), `target` (...) with
    integers from 0 to classes - 1, and `bias` (classes,).

    The logits (..., classes) are computed for `chunk` rows at a time, in forward and again in backward, and are never
    whole. Both passes need a workspace of chunk * classes elements. The default is a sixteenth of the rows, but at most
    256, and at least as many as have logits of 64 KiB. Kept for backward, besides x, weight, bias and target, is one
    number for each row. A gradient with create_graph=True builds the logits whole. The other arguments and errors are
    those of cross_entropy."""
    cdef Tensor s = read_input("linear_cross_entropy", x), w = ensure_tensor(weight), b, l
    if not is_real(w.dtype) or w.layout.ndim != 2 or w.layout.shape[1] != s.layout.shape[s.layout.ndim - 1]:
        raise ValueError(f"linear_cross_entropy: x is {s.shape} and weight is {described(w)}; wanted x (..., n) and "
                         f"floating weight (classes, n)")
    check_classes("linear_cross_entropy", "weight", w, w.layout.shape[0])
    l = read_labels_of("linear_cross_entropy", s, target, s.layout.ndim - 1,
                       "integers of the shape of x without its last axis")
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise ValueError(f"linear_cross_entropy: chunk must be an integer of at least 1, got {described(chunk)}")
    chunk = 0 if chunk is None else min(chunk, 0x7fffffffffffffff)
    if bias is None:
        return apply3(LINEAR_CROSS_ENTROPY, l, s, w, classes_of("linear_cross_entropy", reduction, ignore_index,
                                                                label_smoothing, 0, chunk))
    b = ensure_tensor(bias)
    if not is_real(b.dtype) or b.layout.ndim != 1 or b.layout.shape[0] != w.layout.shape[0]:
        raise ValueError(f"linear_cross_entropy: bias is {described(b)} and weight is {w.shape}; wanted floating bias "
                         f"({w.layout.shape[0]},)")
    return apply_list(LINEAR_CROSS_ENTROPY, [l, s, w, b], classes_of("linear_cross_entropy", reduction, ignore_index,
                                                                     label_smoothing, 0, chunk))
