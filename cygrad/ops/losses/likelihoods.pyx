"""Losses that are negative log-likelihoods of elements: divergences, Gaussian, Poisson, binary cross-entropy."""

from cygrad.core.execute.run cimport apply2, apply3, apply_list
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store cimport layout as lay
from cygrad.kernels.losses.criteria cimport T, V, W, X
from cygrad.ops.losses.criteria cimport (
    Criterion, Settings, operand_like, over_elements, pair, positive, settings, widened_to,
)

from cygrad.ops.elementwise.compare import clip, equal, greater, less, maximum, where
from cygrad.ops.elementwise.elementwise import neg
from cygrad.ops.elementwise.functions import exp, log, sigmoid, softplus
from cygrad.ops.losses.loss import bce_with_logits
from cygrad.ops.shapes.shape import expand_dims

cdef double HALF_LOG_2_PI = 0.91893853320467274178


# ---- operators -------------------------------------------------------------------------------------------------------

cdef class KlDiv(Criterion):
    """y = mean of t (log t - x)        dx = -g t / n        dt = g (log t + 1 - x) / n

    The value is 0 where t is 0, and dt is -g x / n there. If the target is a logarithm: y = mean of e^t (t - x),
    dx = -g e^t / n, dt = g e^t (t - x + 1) / n."""
    variants, second = (("kl", "kl_dx", "kl_dt"), ("kl_log", "kl_log_dx", "kl_log_dt")), ("log_target", True)

    cdef object formula(self, c, int i, g):
        t = c.input(1)
        g = over_elements(c, g, t.shape)
        if c.attributes.variant: return g * exp(t) * (t - c.input(0) + 1) if i else neg(g * exp(t))
        if i == 0: return neg(g * t)
        none = equal(t, 0)
        return g * (where(none, 0, log(where(none, 1, t)) + 1) - c.input(0))


cdef class GaussianNllLoss(Criterion):
    """y = mean of (log v + d^2 / v) / 2, d = x - t        dx = g d / (n v)        dt = -dx
            dv = g (1 - d^2 / v) / (2 n v)

    v is the variance, at least eps; dv is the same below eps, as in PyTorch."""
    operands, numbers = "x target var", "eps full?"
    variants = (("gaussian", "gaussian_dx", "gaussian_dt", "gaussian_dv"),)

    cdef int refuse(self, Call* c) except -1:
        raise ValueError("gaussian_nll_loss: var has an element below 0; a variance must be at least 0")

    cdef object formula(self, c, int i, g):
        d, v = c.input(0) - c.input(1), c.input(2)
        eps = c.attributes.numbers[0]
        v = where(less(v, eps), v + (eps - v).detach(), v)      # eps, with the derivative of v
        g = over_elements(c, g, d.shape)
        if i == 2: return 0.5 * g * (1 - d * d / v) / v
        return (g if i == 0 else neg(g)) * d / v


cdef class PoissonNllLoss(Criterion):
    """y = mean of (e^x - t x)        dx = g (e^x - t) / n        dt = -g x / n

    If x is the rate and not its logarithm: y = mean of (x - t log(x + eps)), dx = g (1 - t / (x + eps)) / n,
    dt = -g log(x + eps) / n. If `full`, the value has t log t - t + log(2 pi t) / 2 more where t > 1, and dt / g has
    (log t + 1 / (2 t)) / n more."""
    numbers = "eps full?"
    variants, second = (("poisson", "poisson_dx", "poisson_dt"), ("rate", "rate_dx", "rate_dt")), ("log_input", False)

    cdef object formula(self, c, int i, g):
        x, t = c.input(0), c.input(1)
        g = over_elements(c, g, x.shape)
        eps, full = c.attributes.numbers
        if i == 0: return g * (1 - t / (x + eps) if c.attributes.variant else exp(x) - t)
        slope = neg(log(x + eps) if c.attributes.variant else x)
        if full:
            large = greater(t, 1)
            u = where(large, t, 1)
            slope = slope + where(large, log(u) + 0.5 / u, 0)
        return g * slope


cdef class BinaryCrossEntropy(Criterion):
    """y = -mean of w (t log x + (1 - t) log(1 - x))        dx = g w (x - t) / (x (1 - x)) / n
            dt = g w (log(1 - x) - log x) / n        dw = -g (t log x + (1 - t) log(1 - x)) / n

    Logarithms are at least -100 and x (1 - x) in dx is at least 1e-12, as in PyTorch. Its dt is infinite at 0 and 1."""
    operands = "x target weight?"
    variants = (("bce", "bce_dx", "bce_dt", "bce_dw"),)

    cdef int refuse(self, Call* c) except -1:
        raise ValueError("binary_cross_entropy: x has an element outside of 0 to 1; wanted probabilities "
                         "(binary_cross_entropy_with_logits takes logits)")

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        g = over_elements(c, g, x.shape)
        if i == 2: return g * binary_cross_entropy(x, c.input(1), None, "none")
        if len(c.attributes.operands) == 3: g = g * c.input(2)
        if i == 0: return g * (x - c.input(1)) / maximum((1 - x) * x, 1e-12)
        return g * (clip(log(1 - x), -100) - clip(log(x), -100))


cdef class BinaryCrossEntropyWithLogits(Criterion):
    """y = mean of w ((1 - t) x + (1 + (u - 1) t) l), l = log(1 + e^-x)        dx = g w (1 - t - (1 + (u - 1) t) s) / n
            dt = g w ((u - 1) l - x) / n        dw = g ((1 - t) x + (1 + (u - 1) t) l) / n        du = g w t l / n

    with s = 1 / (1 + e^x), the weight w and the weight u of positive targets. Without both weights the operator is
    bce_with_logits."""
    operands = "x target weight? pos_weight?"
    functions = {"bce_with_pos_weight": "x target pos_weight"}
    variants = (("logits", "logits_dx", "logits_dt", "logits_dw", "logits_du"),)

    cdef tuple row_of(self, attributes):
        row, arguments = Criterion.row_of(self, attributes)
        return "bce_with_pos_weight" if attributes.operands == (X, T, W) else row, arguments

    cdef object formula(self, c, int i, g):
        given = {k: position for position, k in enumerate(c.attributes.operands)}
        g = over_elements(c, g, c.shape(i))
        slot = c.attributes.operands[i]
        w = c.input(given[V]) if V in given and slot != V else 1
        u = c.input(given[W]) if W in given and slot != W else 1
        x = c.input(0)
        if slot == V:
            return g * binary_cross_entropy_with_logits(x, c.input(1), None, "none", u if W in given else None)
        g = g * w
        if slot == T: return g * ((u - 1) * softplus(neg(x)) - x)
        t = c.input(1)
        if slot == W: return g * t * softplus(neg(x))
        return g * (1 - t - (1 + (u - 1) * t) * sigmoid(neg(x)))


cdef class SoftMarginLoss(Criterion):
    """y = mean of log(1 + e^(-t x))        dx = -g t / (1 + e^(t x)) / n        dt = -g x / (1 + e^(t x)) / n"""
    variants = (("soft_margin", "soft_margin_dx", "soft_margin_dt"),)

    cdef object formula(self, c, int i, g):
        z = c.input(i)
        other = c.input(1 - i)
        return neg(over_elements(c, g, z.shape)) * other * sigmoid(neg(z * other))


cdef Operator KL_DIV = KlDiv(), GAUSSIAN_NLL_LOSS = GaussianNllLoss(), POISSON_NLL_LOSS = PoissonNllLoss()
cdef Operator BINARY_CROSS_ENTROPY = BinaryCrossEntropy(), SOFT_MARGIN_LOSS = SoftMarginLoss()
cdef Operator BINARY_CROSS_ENTROPY_WITH_LOGITS = BinaryCrossEntropyWithLogits()
OPERATORS = {o.name: o for o in (KL_DIV, GAUSSIAN_NLL_LOSS, POISSON_NLL_LOSS, BINARY_CROSS_ENTROPY,
                                 BINARY_CROSS_ENTROPY_WITH_LOGITS, SOFT_MARGIN_LOSS)}


# ---- functions -------------------------------------------------------------------------------------------------------

def kl_div(x: Data, target: Data, reduction: Literal["mean", "sum", "none", "batchmean"] = "mean",
           log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of the distribution `target` from the one whose logarithms are `x`:
    target (log target - x), with broadcasting. If `log_target`, the target has logarithms too. Reduced to the "mean",
    the "sum" or "batchmean" (the sum divided by the first size), which is the divergence for rows of distributions.

    A target of 0 contributes 0 for every x, also for -inf, where PyTorch has NaN; its gradient there is that of
    -target x. A negative target gives NaN."""
    cdef Settings how = settings("kl_div", reduction, 1 if log_target else 0, (), (X, T))
    s, t = pair("kl_div", x, target)
    if reduction == "batchmean" and s.ndim == 0:
        raise ValueError("kl_div: x has no dimensions; \"batchmean\" needs a first dimension to divide by")
    return apply2(KL_DIV, s, t, how)


def gaussian_nll_loss(x: Data, target: Data, var: Data, full: bool = False, eps: float = 1e-6,
                      reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The negative log-likelihood of `target` under normal distributions with the means `x` and the variances `var`:
    (log var + (x - target)^2 / var) / 2, and if `full` log(2 pi) / 2 more. A variance below `eps` counts as eps, and
    its gradient is that at eps. `var` is a number, broadcasts to x, or has the shape of x without the last dimension.
    All three have gradients. Raises ValueError for a variance below 0."""
    cdef double e = positive("gaussian_nll_loss", "eps", eps, True)
    cdef Settings how = settings("gaussian_nll_loss", reduction, 0, (e, HALF_LOG_2_PI if full else 0.0), (X, T, V))
    cdef Tensor s, t, v
    s, t = pair("gaussian_nll_loss", x, target)
    v = operand_like(var, s)
    if v.layout.ndim and v.shape != s.shape and v.shape == s.shape[:-1]: v = expand_dims(v, -1)
    return apply3(GAUSSIAN_NLL_LOSS, s, t, widened_to("gaussian_nll_loss", "var", v, s), how)


def poisson_nll_loss(x: Data, target: Data, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The negative log-likelihood of the counts `target` under Poisson distributions whose rates have the logarithms
    `x`: e^x - target x, with broadcasting. If not `log_input`, x has the rates: x - target log(x + eps). If `full`,
    Stirling's approximation of log target! is added where target > 1."""
    cdef double e = positive("poisson_nll_loss", "eps", eps, True)
    cdef Settings how = settings("poisson_nll_loss", reduction, 0 if log_input else 1, (e, 1.0 if full else 0.0),
                                 (X, T))
    s, t = pair("poisson_nll_loss", x, target)
    return apply2(POISSON_NLL_LOSS, s, t, how)


cdef tuple equal_shapes(str name, x, target):
    """x and the target. Raises ValueError if their shapes differ."""
    cdef Tensor s = ensure_tensor(x), t = operand_like(target, s)
    if not lay.same_shape(s.layout, t.layout):
        raise ValueError(f"{name}: x is {s.shape} and target is {t.shape}; the shapes must be equal")
    return s, t


def binary_cross_entropy(x: Data, target: Data, weight: Data | None = None,
                         reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The binary cross-entropy of the probabilities `x` with `target` of the same shape, from 0 to 1:
    -weight (target log x + (1 - target) log(1 - x)), where logarithms are at least -100. `weight` broadcasts to x; the
    "mean" divides by the number of elements. All three have gradients. Raises ValueError for an x outside of 0 to 1."""
    s, t = equal_shapes("binary_cross_entropy", x, target)
    if weight is None:
        return apply2(BINARY_CROSS_ENTROPY, s, t, settings("binary_cross_entropy", reduction, 0, (), (X, T)))
    w = widened_to("binary_cross_entropy", "weight", operand_like(weight, s), s)
    return apply3(BINARY_CROSS_ENTROPY, s, t, w, settings("binary_cross_entropy", reduction, 0, (), (X, T, V)))


def binary_cross_entropy_with_logits(x: Data, target: Data, weight: Data | None = None,
                                     reduction: Literal["mean", "sum", "none"] = "mean",
                                     pos_weight: Data | None = None) -> Tensor:
    """bce_with_logits(x, target) with weights that broadcast to x: `weight` multiplies each value, and `pos_weight` the
    part of it for target = 1. The "mean" divides by the number of elements. All four have gradients."""
    cdef str name = "binary_cross_entropy_with_logits"
    settings(name, reduction, 0, (), ())
    s, t = equal_shapes(name, x, target)
    if weight is None and pos_weight is None: return bce_with_logits(s, t, reduction)
    given, operands = [s, t], [X, T]
    for what, v, k in (("weight", weight, V), ("pos_weight", pos_weight, W)):
        if v is None: continue
        given.append(widened_to(name, what, operand_like(v, s), s))
        operands.append(k)
    return apply_list(BINARY_CROSS_ENTROPY_WITH_LOGITS, given, settings(name, reduction, 0, (), tuple(operands)))


def soft_margin_loss(x: Data, target: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """log(1 + e^(-target x)) with broadcasting, for targets of 1 and -1: the "mean", the "sum", or with "none" one
    value for each element. Computed without overflow."""
    cdef Settings how = settings("soft_margin_loss", reduction, 0, (), (X, T))
    s, t = pair("soft_margin_loss", x, target)
    return apply2(SOFT_MARGIN_LOSS, s, t, how)


def bce_with_pos_weight(x: Data, target: Data, pos_weight: Data,
                        reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """binary_cross_entropy_with_logits() with `pos_weight` alone."""
    return binary_cross_entropy_with_logits(x, target, None, reduction, pos_weight)
