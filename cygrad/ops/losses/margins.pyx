"""Losses with a margin: hinge embeddings, rankings, triplets, classes. All but hinge_embedding_loss are made of other
operators; their docstrings say what backward keeps."""

from cygrad.core.execute.composed cimport check_broadcast
from cygrad.core.execute.run cimport apply2
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.kernels.array cimport BOOL, INT64, UINT64, is_floating
from cygrad.kernels.losses.criteria cimport T, X
from cygrad.ops.losses.criteria cimport Settings, Signed, number, operand_like, pair, reduced, settings
from cygrad.ops.reductions.summaries cimport floating

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.ops.elementwise.compare import clip, equal, logical_and, logical_not, minimum, where
from cygrad.ops.losses.distances import pairwise_distance
from cygrad.ops.elementwise.elementwise import sqrt, square
from cygrad.ops.elementwise.functions import relu
from cygrad.ops.shapes.index import gather, one_hot, take
from cygrad.ops.losses.likelihoods import binary_cross_entropy_with_logits
from cygrad.ops.reductions.minmax import max, min
from cygrad.ops.reductions.reduce import any, mean, sum
from cygrad.ops.reductions.scan import cumsum
from cygrad.ops.shapes.shape import expand_dims, reshape


# ---- hinge embedding -------------------------------------------------------------------------------------------------

cdef class HingeEmbeddingLoss(Signed):
    """y = mean of (x where t = 1, max(0, margin - x) where t = -1)        dx = g / n, -g / n or 0

    Backward keeps two bits for each element."""
    numbers, no_gradient = "margin", "target"
    variants, sign = (("hinge",),), "hinge_sign"


cdef Operator HINGE_EMBEDDING_LOSS = HingeEmbeddingLoss()
OPERATORS = {HINGE_EMBEDDING_LOSS.name: HINGE_EMBEDDING_LOSS}


def hinge_embedding_loss(x: Data, target: Data, margin: float = 1.0,
                         reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """x where target is 1 and max(0, margin - x) where it is -1, with broadcasting; their sum for another target, as in
    PyTorch. Reduced to the "mean", the "sum", or with "none" one value for each element. The target has no gradient.
    The derivative at x = margin is -1."""
    cdef double m = number("hinge_embedding_loss", "margin", margin)
    cdef Settings how = settings("hinge_embedding_loss", reduction, 0, (m,), (X, T))
    s, t = pair("hinge_embedding_loss", x, target)
    return apply2(HINGE_EMBEDDING_LOSS, s, t.detach(), how)


# ---- pairs and triplets ----------------------------------------------------------------------------------------------

cdef object hinge(z):
    """max(z, 0), whose derivative at 0 is 1, as in PyTorch."""
    return clip(z, 0)


@composed
def margin_ranking_loss(x1: Data, x2: Data, target: Data, margin: float = 0.0,
                        reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """max(0, margin - target (x1 - x2)) with broadcasting: target 1 says that x1 should be larger, -1 that x2 should.
    The derivative of max is 1 where both are equal. Backward keeps the target, the difference if the target has a
    gradient, and one bit for each element."""
    cdef str name = "margin_ranking_loss"
    cdef Tensor s = floating(x1), t = operand_like(x2, s), y = operand_like(target, s)
    cdef double m = number(name, "margin", margin)
    settings(name, reduction, 0, (), ())
    check_broadcast(name, s, t, y)
    return reduced(hinge(m - y * (s - t)), name, reduction)


@composed
def triplet_margin_loss(anchor: Data, positive: Data, negative: Data, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False,
                        reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with d = pairwise_distance(..., p, eps) along the last
    axis. If `swap`, the smaller of d(anchor, negative) and d(positive, negative) is used. Backward keeps the
    differences and the distances. Raises ValueError for margin <= 0. Balntas et al.,
    https://bmva-archive.org.uk/bmvc/2016/papers/paper119/"""
    cdef double m = number("triplet_margin_loss", "margin", margin)
    if not m > 0: raise ValueError(f"triplet_margin_loss: margin is {margin}; it must be above 0")
    settings("triplet_margin_loss", reduction, 0, (), ())
    cdef Tensor a = floating(anchor), b = floating(positive), c = floating(negative)
    if not a.layout.ndim == b.layout.ndim == c.layout.ndim:
        raise ValueError(f"triplet_margin_loss: anchor is {a.shape}, positive is {b.shape} and negative is {c.shape}; "
                         f"they must have as many dimensions")
    check_broadcast("triplet_margin_loss", a, b, c)
    near, far = pairwise_distance(a, b, p, eps), pairwise_distance(a, c, p, eps)
    if swap: far = minimum(far, pairwise_distance(b, c, p, eps))
    return reduced(hinge(near - far + m), "triplet_margin_loss", reduction)


@composed
def cosine_embedding_loss(x1: Data, x2: Data, target: Data, margin: float = 0.0,
                          reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, else 0, for the cosine of the rows of x1 and x2,
    of shape (n, features) with a target (n,), or of two vectors with a single target. Squared norms are 1e-12 larger,
    as in PyTorch. Backward keeps x1, x2 and a few numbers for each row. Raises ValueError for other shapes."""
    cdef Tensor s = floating(x1), t = operand_like(x2, s), y = ensure_tensor(target)
    cdef int a = y.layout.ndim
    cdef double m = number("cosine_embedding_loss", "margin", margin)
    settings("cosine_embedding_loss", reduction, 0, (), ())
    if a > 1 or s.layout.ndim != a + 1 or t.layout.ndim != a + 1:
        raise ValueError(f"cosine_embedding_loss: x1 is {s.shape}, x2 is {t.shape} and target is {y.shape}; wanted x1 "
                         f"and x2 (n, features) and target (n,), or (features,) and a single target")
    check_broadcast("cosine_embedding_loss", s, t, expand_dims(y, a))
    squares = (sum(square(s), a) + 1e-12) * (sum(square(t), a) + 1e-12)
    cosine = sum(s * t, a) / sqrt(squares)
    values = where(equal(y, 1), 1 - cosine, where(equal(y, -1), hinge(cosine - m), 0))
    return reduced(values, "cosine_embedding_loss", reduction)


# ---- classes ---------------------------------------------------------------------------------------------------------

cdef tuple rows_of(str name, x, target, bint many):
    """x as (n, classes) and the integer labels as (n,), or as (n, classes) if `many`, and whether x was one row."""
    cdef Tensor s = floating(x), l = ensure_tensor(target)
    cdef bint one = s.layout.ndim == 1
    if is_floating(l.dtype) or l.dtype == BOOL:
        raise TypeError(f"{name}: the target is {DTYPES[l.dtype]}; wanted integers")
    shapes = ((s.shape, (1, *s.shape)) if many else ((), (1,))) if one else (s.shape if many else s.shape[:1],)
    if s.layout.ndim not in (1, 2) or l.shape not in shapes:
        labels = "(n, classes)" if many else "(n,)"
        raise ValueError(f"{name}: x is {s.shape} and target is {l.shape}; wanted x (n, classes) and target {labels}, "
                         f"or one row of them")
    if l.dtype == UINT64 and l.size and (wrong := int(max(l))) >= 1 << 63:      # (it would wrap)
        raise IndexError(f"{name}: label {wrong} is not a class; the classes are 0 to {s.shape[-1] - 1}")
    if l.dtype != INT64: l = l.astype(DTYPES[INT64])
    n = 1 if one else s.shape[0]
    shape = (n, s.shape[-1])
    return reshape(s, shape), reshape(l, shape if many else (n,)), one


@composed
def multi_margin_loss(x: Data, target: Data, p: Literal[1, 2] = 1, margin: float = 1.0, weight: Data | None = None,
                      reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The sum over the classes i other than the label y of max(0, margin - x[y] + x[i])^p, divided by the number of
    classes, for `x` (n, classes) and `target` (n,), or one row and a single label. `weight` (classes,) multiplies the
    value of each row by weight[y]. The derivative of max is 0 where both are equal.

    Backward keeps two bits for each element, for p = 2 the values too. Raises IndexError for a label that is not a
    class, and ValueError for another p."""
    cdef str name = "multi_margin_loss"
    cdef double m = number(name, "margin", margin)
    settings(name, reduction, 0, (), ())
    if isinstance(p, bool) or p not in (1, 2): raise ValueError(f"{name}: p is {described(p)}; it must be 1 or 2")
    s, l, one = rows_of(name, x, target, False)
    z = where(one_hot(l, s.shape[1], "bool"), 0, relu(s - gather(s, 1, expand_dims(l, 1)) + m))
    values = mean(z * z if p == 2 else z, 1)
    if weight is not None:
        w = operand_like(weight, s)
        if w.shape != s.shape[1:]:
            raise ValueError(f"{name}: weight has shape {w.shape}; it must have a number for each of the {s.shape[1]} "
                             f"classes")
        values = values * take(w, l, 0)
    return reduced(values[0] if one else values, name, reduction)


@composed
def multilabel_margin_loss(x: Data, target: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The sum over the labels y of a row and the classes i that are none of its labels of max(0, 1 - x[y] + x[i]),
    divided by the number of classes, for `x` (n, classes) and the labels `target` of the same shape, or one row. The
    labels of a row end before the first -1; what follows it is not used, but must be a class or -1. The derivative of
    max is 0 where both are equal.

    It computes an array (n, labels, classes), with the largest number of labels of a row, and backward keeps two bits
    for each of its elements. Raises IndexError for a label that is not a class."""
    cdef str name = "multilabel_margin_loss"
    settings(name, reduction, 0, (), ())
    s, l, one = rows_of(name, x, target, True)
    n, classes = s.shape
    for wrong in (int(min(l)), int(max(l))) if l.size else ():
        if not -1 <= wrong < classes:
            raise IndexError(f"{name}: label {wrong} is not a class; the classes are 0 to {classes - 1}, and -1 ends "
                             f"the labels of a row")
    used = equal(cumsum(l < 0, 1), 0)               # up to the first -1
    longest = int(max(sum(used, 1))) if n and classes else 0
    used, l = used[:, :longest], l[:, :longest]
    end = where(used, l, classes)                   # one more class for what is no label
    labels = one_hot(reshape(end, (-1,)), classes + 1, "bool").reshape((n, longest, classes + 1))[..., :classes]
    others = logical_and(logical_not(any(labels, 1, True)), expand_dims(used, 2))
    of_label = expand_dims(gather(s, 1, where(used, l, 0)), 2)
    z = where(others, relu(expand_dims(s, 1) - of_label + 1), 0)
    values = sum(z, (1, 2)) / classes if classes else sum(s, 1)
    return reduced(values[0] if one else values, name, reduction)


@composed
def multilabel_soft_margin_loss(x: Data, target: Data, weight: Data | None = None,
                                reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """binary_cross_entropy_with_logits(x, target, weight) averaged over the last axis, the classes; then the "mean" or
    "sum" of that, or with "none" one value for each row. Backward keeps what that operator keeps."""
    cdef Tensor s = floating(x)
    settings("multilabel_soft_margin_loss", reduction, 0, (), ())
    if s.layout.ndim == 0:
        raise ValueError("multilabel_soft_margin_loss: x has no dimensions; the last is that of the classes")
    if reduction == "mean": return binary_cross_entropy_with_logits(s, target, weight)
    if reduction == "none": return mean(binary_cross_entropy_with_logits(s, target, weight, "none"), -1)
    return binary_cross_entropy_with_logits(s, target, weight, "sum") / s.shape[-1]
