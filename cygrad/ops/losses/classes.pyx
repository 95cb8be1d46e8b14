"""What losses over classes share: their attributes, labels and weights, and the base class of their operators."""

from libc.stdint cimport int64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator, hide
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.buffer cimport EXTERNAL
from cygrad.core.execute.run cimport apply2, apply3
from cygrad.kernels.losses cimport entropy as kernels
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, UINT64, Array, Layout, is_floating, is_real, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.losses.entropy cimport Entropy
from cygrad.kernels.reductions.reduce cimport sum_into
from cygrad.kernels.reductions.rows cimport MIN_COLUMNS
from cygrad.ops.losses.loss cimport MEAN, NONE, Reduced, read_reduction
from cygrad.ops.reductions.reduce cimport Spread, over, scale

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError, described
from cygrad.ops.elementwise.compare import not_equal, where
from cygrad.ops.shapes.index import one_hot, take
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import astype, expand_dims, permute, reshape


# ---- arguments -------------------------------------------------------------------------------------------------------

cdef class LossOptions(Attributes):
    """The attributes of losses over classes. `axis` is that of the classes; `chunk` is used by linear_cross_entropy; 0:
    the shapes determine it."""

    def __cinit__(self, str reduction, ignore_index, label_smoothing, int axis, Py_ssize_t chunk):
        self.reduction, self.ignore_index, self.label_smoothing = reduction, ignore_index, label_smoothing
        self.axis, self.chunk = axis, chunk
        self.options = Options(("none", "mean", "sum").index(reduction), axis, ignore_index, label_smoothing, chunk)

    cdef dict keywords(self):
        return self.fields() | {"chunk": self.chunk or None}


cdef dict USUAL = {(reduction, axis): LossOptions(reduction, -100, 0, axis, 0) for reduction in ("none", "mean", "sum")
                   for axis in (0, 1)}


cdef LossOptions classes_of(str name, reduction, ignore_index, label_smoothing, int axis, Py_ssize_t chunk):
    """The attributes. Raises TypeError or ValueError for an argument that has the wrong type or value."""
    cdef Reduced how = read_reduction(name, reduction)
    if type(ignore_index) is int and ignore_index == -100 and type(label_smoothing) is float and label_smoothing == 0:
        if axis <= 1 and chunk == 0: return <LossOptions>USUAL[(how.reduction, axis)]
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, (int, np.integer)):
        raise TypeError(f"{name}: ignore_index must be an integer, got {described(ignore_index)}")
    if not -0x8000000000000000 <= ignore_index <= 0x7fffffffffffffff:
        raise ValueError(f"{name}: ignore_index is {described(ignore_index)}; it must fit into 64 bits")
    if isinstance(label_smoothing, bool) or not isinstance(label_smoothing, (int, float, np.floating)):
        raise TypeError(f"{name}: label_smoothing must be a number, got {described(label_smoothing)}")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{name}: label_smoothing is {label_smoothing}; it must be from 0 to 1")
    return LossOptions(how.reduction, ignore_index, label_smoothing, axis, chunk)


cdef Tensor read_input(str name, x):
    cdef Tensor t = ensure_tensor(x)
    if not is_real(t.dtype): raise TypeError(f"{name}: x is {DTYPES[t.dtype]}; wanted a floating dtype")
    if t.layout.ndim == 0: raise ValueError(f"{name}: x is (); wanted (n, classes, ...) or (classes,)")
    return t


cdef int check_classes(str name, str what, Tensor x, Py_ssize_t classes) except -1:
    """Raise ValueError if there are no classes."""
    if classes == 0: raise ValueError(f"{name}: {what} is {x.shape}, which has no classes; wanted at least one")


cdef bint fits(const Layout* x, const Layout* rows, int axis) noexcept nogil:
    """Whether `rows` has the shape of x without the axis of the classes."""
    cdef int d
    if rows.ndim != x.ndim - 1: return False
    for d in range(rows.ndim):
        if rows.shape[d] != x.shape[d if d < axis else d + 1]: return False
    return True


cdef Tensor read_labels_of(str name, Tensor x, labels, int axis, str wanted):
    """The labels as an int64 tensor that the operator may save. `wanted` describes the shapes in messages."""
    cdef Tensor l = ensure_tensor(labels)
    if is_floating(l.dtype) or l.dtype == BOOL:
        raise TypeError(f"{name}: the target is {DTYPES[l.dtype]} of shape {l.shape} for x {x.shape}; wanted {wanted}")
    if not fits(x.layout, l.layout, axis):
        raise ValueError(f"{name}: x is {x.shape} and the target is {l.shape}; wanted {wanted}")
    if l.dtype == UINT64 and l.layout.size and int(l.max()) > 0x7fffffffffffffff:
        raise IndexError(f"{name}: the label {int(l.max())} is not a class")
    if l.dtype != INT64: l = l.astype(DTYPES[INT64])
    if not l.layout.dense or l.buffer.flags & EXTERNAL: l = l.copy()     # (the caller may overwrite external memory)
    return l


cdef Tensor read_weight(str name, Tensor x, int axis, weight):
    """The weight of each class, as a constant of the dtype of x that the operator may save."""
    cdef Tensor w
    if isinstance(weight, str):
        raise TypeError(f"{name}: weight is {weight!r}; pass the reduction by name, as reduction={weight!r}")
    w = ensure_tensor(weight)
    if w.requires_grad:
        raise ValueError(f"{name}: weight requires a gradient, but the loss has none for it; pass weight.detach()")
    if w.layout.ndim != 1 or w.layout.shape[0] != x.layout.shape[axis]:
        raise ValueError(f"{name}: weight is {w.shape}; wanted a number for each of the {x.layout.shape[axis]} classes")
    if w.dtype != x.dtype: w = w.astype(DTYPES[x.dtype])
    if not w.layout.dense or w.buffer.flags & EXTERNAL: w = w.copy()
    return w


cdef int check_labels(Operator op, const Array* labels, Py_ssize_t classes, const Array* weight, int64_t ignored,
                      bint kept, double* total) except -1 nogil:
    """Raise an error for a label that is not a class: IndexError in forward, InplaceError in backward (kept). `total`
    receives the sum of the weights (NULL: ones) of all labels that are not ignored."""
    cdef const int64_t* l = <const int64_t*>labels.data
    cdef Py_ssize_t bad = kernels.read_labels(labels.layout.size, classes, l, ignored, weight.dtype if weight else 0,
                                              weight.data if weight else NULL, total)
    return 0 if bad < 0 else refuse_label(op, labels, bad, classes, kept)


cdef int refuse_label(Operator op, const Array* labels, Py_ssize_t bad, Py_ssize_t classes,
                      bint kept) except -1 with gil:
    label = (<const int64_t*>labels.data)[bad]
    at = [int(i) for i in np.unravel_index(bad, lay.shape_tuple(labels.layout))] if labels.layout.ndim else []
    at = f"index {at[0]}" if len(at) == 1 else f"index {tuple(at)}"
    if kept:                                        # (written since through NumPy, which changes no version)
        raise InplaceError(f"{op.name}: label {label} at {at} was a class in forward but is not one now: the labels "
                           f"were modified since; pass a copy()")
    raise IndexError(f"{op.name}: label {label} at {at} is not a class; there are {classes} classes, from 0 to "
                     f"{classes - 1}")


# ---- shared parts of operators ---------------------------------------------------------------------------------------

cdef size_t padded(size_t nbytes) noexcept nogil:
    return (nbytes + 63) // 64 * 64


cdef size_t capacity(const Array* x) noexcept nogil:
    """Bytes of workspace that dense() needs."""
    return 0 if x.layout.dense else padded(x.layout.size * itemsize(x.dtype))


cdef const char* dense(const Array* x, char** workspace) noexcept nogil:
    """Row-major memory of x: its own, or a copy in the workspace, whose pointer is advanced."""
    cdef char* copy = workspace[0]
    if x.layout.dense: return x.data
    gather(copy, x, 0, x.layout.size)
    workspace[0] += capacity(x)
    return copy


cdef int reduce_rows(Call* c, int reduction, const Layout* rows, const char* values, double divisor) except -1 nogil:
    """Write the sum or the mean of the values of the rows to the result."""
    cdef Array all
    cdef Spread y
    if reduction == NONE: return 0
    all.data, all.layout, all.dtype = <char*>values, rows, c.y[0].dtype
    over(&y, &c.y[0], rows, NULL)
    sum_into(&all, &y.array)
    return scale(&c.y[0], &c.y[0], divisor) if reduction == MEAN else 0


cdef size_t gradient_capacity(const Array* g, int reduction) noexcept nogil:
    """Bytes of workspace that gradient_rows() needs."""
    return 0 if reduction != NONE or g.layout.ndim == 1 else capacity(g)


cdef const char* gradient_rows(const Array* g, int reduction, char** workspace, Py_ssize_t* step) noexcept nogil:
    """The gradients of the rows, `step` elements apart."""
    step[0] = 0 if reduction != NONE else 1
    if reduction != NONE: return g.data
    if g.layout.ndim != 1: return dense(g, workspace)
    step[0] = g.layout.strides[0]
    return g.data


cdef int split(const Layout* x, int axis, Entropy* e) noexcept nogil:
    """The sizes outer, classes and inner of a shape."""
    e.outer = e.inner = 1
    e.classes = x.shape[axis]
    for d in range(x.ndim):
        if d < axis: e.outer *= x.shape[d]
        if d > axis: e.inner *= x.shape[d]
    return 0


cdef class ClassLoss(Operator):
    """The base of losses over classes: x, labels or probabilities, and optional weights of the classes."""
    traits = "fused differentiable"

    cdef tuple row_of(self, attributes):
        """The row whose name ends with "_along" takes the axis of the classes, if it is neither 0 nor 1."""
        rows = self.row, *self.functions
        return rows[-1 if attributes.axis > 1 else 0], attributes.arguments()

    cdef int infer(self, Call* c) except -1 nogil:
        """The loss, of the shape of the rows unless it is reduced. Its workspace ends with that of the rows."""
        cdef Options a = (<LossOptions>c.attributes).options
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef Py_ssize_t rows = 1
        cdef int d
        for d in range(x.ndim - 1):
            shape[d] = x.shape[d if d < a.axis else d + 1]
            rows *= shape[d]
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = lay.dense(x.ndim - 1, shape) if a.kind == NONE else lay.incref(lay.SCALAR)
        c.workspace_bytes = 0 if a.kind == NONE else rows * itemsize(c.x[0].dtype)

    cdef int hide_logs(self, Call* c) except -1 nogil:
        """Declare a number for each row as hidden output 1."""
        cdef Py_ssize_t rows
        cdef Entropy e
        split(c.x[0].layout, (<LossOptions>c.attributes).options.axis, &e)
        rows = e.outer * e.inner
        hide(c, lay.dense(1, &rows), c.x[0].dtype)


# ---- formulas --------------------------------------------------------------------------------------------------------

cdef bint has_weight(c):
    """Whether the third input, the weights of the classes, was given."""
    return (<Context>c).b.node.n_in == 3


cdef object along_classes(t, int axis):
    """`t`, whose classes are along the last axis, with the classes along `axis`."""
    cdef int last = t.ndim - 1
    if axis == last: return t
    return permute(t, (*range(axis), last, *range(axis, last)))


cdef object targets_of(attributes, labels, weight, Py_ssize_t classes, dtype):
    """t = w ((1 - s) onehot(label) + s / classes) along a new last axis; zeros for labels that are ignored."""
    cdef LossOptions a = attributes
    counts = not_equal(labels, a.ignore_index)
    t = one_hot(where(counts, labels, 0), classes, dtype)
    if a.label_smoothing: t = t * (1 - a.label_smoothing) + a.label_smoothing / classes
    if weight is not None: t = t * weight
    return t * astype(expand_dims(counts, -1), dtype)


cdef object row_gradient(attributes, g, labels, weight):
    """The gradient of each row, of the shape of the labels or of no dimensions and ones for broadcasting."""
    cdef LossOptions a = attributes
    if a.reduction == "none": return g
    if a.reduction == "mean":
        counts = astype(not_equal(labels, a.ignore_index), g.dtype)
        if weight is not None: counts = counts * take(weight, where(counts > 0, labels, 0), 0)
        n = sum(counts)
        g = g / where(n == 0, 1, n)                 # (all labels are ignored: the gradient is 0)
    return reshape(g, (1,) * labels.ndim)


# ---- calls -----------------------------------------------------------------------------------------------------------

cdef object apply(Operator op, Tensor x, Tensor target, Tensor weight, LossOptions attributes):
    return apply2(op, x, target, attributes) if weight is None else apply3(op, x, target, weight, attributes)


cdef int few_columns(Tensor x) noexcept:
    """Whether the dimensions after axis 1 have too few elements for vectors. Then the classes go to the last axis."""
    cdef Py_ssize_t inner = 1
    for d in range(2, x.layout.ndim): inner *= x.layout.shape[d]
    return x.layout.ndim > 2 and inner < MIN_COLUMNS


cdef Tensor classes_last(Tensor x):
    """A view of x with axis 1 as the last."""
    return permute(x, (0, *range(2, x.layout.ndim), 1))
