"""Losses and similarities of two tensors: absolute errors, cosines, distances."""

from libc.math cimport isinf, isnan

from cygrad.core.execute.composed cimport check_broadcast
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.execute.run cimport apply2
from cygrad.core.store cimport layout as lay
from cygrad.ops.losses.criteria cimport (
    Criterion, Settings, Signed, number, operand_like, over_elements, pair, positive, settings,
)
from cygrad.ops.reductions.summaries cimport floating

from cygrad.core.execute.composed import composed
from cygrad.ops.elementwise.compare import clip
from cygrad.ops.elementwise.elementwise import sub
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.reductions.statistics import norm
from cygrad.ops.shapes.rearrange import broadcast_arrays


# ---- absolute errors -------------------------------------------------------------------------------------------------

cdef class L1Loss(Signed):
    """y = mean of |x - t|        dx = g sign(x - t) / n        dt = -dx

    Backward keeps two bits for each element: whether x is above t, below, or neither."""
    variants, sign = (("l1",),), "l1_sign"


cdef class SmoothL1Loss(Criterion):
    """y = mean of (d^2 / (2 beta) where |d| < beta, else |d| - beta / 2), d = x - t        dt = -dx
            dx = g clip(d / beta, -1, 1) / n"""
    variants = (("smooth_l1", "smooth_l1_dx", "smooth_l1_dt"),)
    numbers = "beta"

    cdef object formula(self, c, int i, g):
        d = c.input(i) - c.input(1 - i)
        return over_elements(c, g, d.shape) * clip(d / c.attributes.numbers[0], -1, 1)


cdef class HuberLoss(Criterion):
    """y = mean of (d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2)), d = x - t        dt = -dx
            dx = g clip(d, -delta, delta) / n"""
    variants = (("huber", "huber_dx", "huber_dt"),)
    numbers = "delta"

    cdef object formula(self, c, int i, g):
        d = c.input(i) - c.input(1 - i)
        delta = c.attributes.numbers[0]
        return over_elements(c, g, d.shape) * clip(d, -delta, delta)


cdef Operator L1_LOSS = L1Loss(), SMOOTH_L1_LOSS = SmoothL1Loss(), HUBER_LOSS = HuberLoss()
OPERATORS = {o.name: o for o in (L1_LOSS, SMOOTH_L1_LOSS, HUBER_LOSS)}


def l1_loss(x: Data, target: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The absolute error |x - target|, with broadcasting: its "mean", its "sum", or with "none" one value for each
    element. The gradient is 0 where the two are equal."""
    cdef Settings how = settings("l1_loss", reduction, 0, (), (0, 1))
    s, t = pair("l1_loss", x, target)
    return apply2(L1_LOSS, s, t, how)


def smooth_l1_loss(x: Data, target: Data, reduction: Literal["mean", "sum", "none"] = "mean",
                   beta: float = 1.0) -> Tensor:
    """The squared error (x - target)^2 / (2 beta) where |x - target| < beta, else the absolute error minus beta / 2,
    with broadcasting; reduced as in l1_loss. With beta = 0 it is l1_loss. Raises ValueError for beta < 0.
    Girshick, https://arxiv.org/abs/1504.08083"""
    cdef double b = positive("smooth_l1_loss", "beta", beta, True)
    cdef Settings how = settings("smooth_l1_loss", reduction, 0, (b,) if b else (), (0, 1))
    s, t = pair("smooth_l1_loss", x, target)
    return apply2(SMOOTH_L1_LOSS if b else L1_LOSS, s, t, how)


def huber_loss(x: Data, target: Data, reduction: Literal["mean", "sum", "none"] = "mean",
               delta: float = 1.0) -> Tensor:
    """Half of the squared error where |x - target| <= delta, else delta (|x - target| - delta / 2), with broadcasting;
    reduced as in l1_loss. Raises ValueError for delta <= 0. Huber, https://doi.org/10.1214/aoms/1177703732"""
    cdef double d = positive("huber_loss", "delta", delta)
    cdef Settings how = settings("huber_loss", reduction, 0, (d,), (0, 1))
    s, t = pair("huber_loss", x, target)
    return apply2(HUBER_LOSS, s, t, how)


# ---- similarities, made of operators ---------------------------------------------------------------------------------

@composed
def cosine_similarity(x1: Data, x2: Data, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `axis` of their common shape: x1 . x2 / (|x1| |x2|), where each
    norm is at least eps. Below eps the derivative of a norm is 0. Backward keeps x1, x2 and six numbers for each
    cosine. Sums of products and squares must not overflow."""
    cdef Tensor s = floating(x1), t = operand_like(x2, s)
    eps = positive("cosine_similarity", "eps", eps, True)
    check_broadcast("cosine_similarity", s, t)
    if s.shape != t.shape: s, t = broadcast_arrays(s, t)
    cdef int a = lay.read_axis(axis, s.layout.ndim)
    return sum(s * t, a) / clip(norm(s, 2, a), eps) / clip(norm(t, 2, a), eps)


@composed
def pairwise_distance(x1: Data, x2: Data, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis, with broadcasting. Backward keeps the difference and the
    distances."""
    cdef Tensor d
    cdef double order = number("pairwise_distance", "p", p), e = number("pairwise_distance", "eps", eps)
    d = sub(floating(x1), x2)
    if isnan(order) or isinf(order) and d.layout.ndim and d.shape[-1] == 0:
        raise ValueError(f"pairwise_distance: p is {p} and x1 - x2 has shape {d.shape}; p must be a number, and the "
                         f"last size at least 1 if it is infinite")
    return norm(d + e, order, -1, keepdims)
