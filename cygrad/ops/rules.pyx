"""The rules by which solvers update parameters, as operators, so that a net can capture an update.

The inputs are the parameter w, its gradient g, the learning rate lr (of size 1, float32 or float64), the number t of
this update of the parameter (of size 1, int64; the first is 1), and the states. The outputs are the new w and the new
states. The settings are attributes. A solver (cygrad/optim) runs the same kernel in place, with the coefficients from
here. Names and formulas follow nnabla. No rule has a gradient.

`weight_decay` adds weight_decay w to g, as in PyTorch. `wd` is the decay of a rule that has its own."""

from libc.math cimport pow as power
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from cygrad.core.execute.run cimport apply_list
from cygrad.core.graph.operator cimport Call
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store cimport layout as lay
from cygrad.kernels.array cimport INT64, is_real, itemsize
from cygrad.kernels.by_dtype cimport number
from cygrad.kernels.driver cimport gather
from cygrad.kernels.update cimport L2, Update, kernel, run

import numpy as np

from inspect import Parameter, Signature

import cygrad.kernels.rules  # no-cython-lint: registers its loops

from cygrad.core.dtypes import DTYPES
from cygrad.core.interop.numpy import asarray

cdef enum:
    FIRST_STATE = 4         # input 4 is the first state, after w, g, lr and t


cdef class RuleSettings(Attributes):
    """The settings of a rule, in the order of Rule.settings."""

    def __cinit__(self, tuple values):
        self.values = values
        for i in range(len(values)): self.value[i] = values[i]


cdef class Rule(Operator):
    """The base of all rules. A rule has a kernel, coefficients() and

        state_names     the names of the states of a parameter
        defaults        the settings, in the order of their values, with those of the public function"""
    state_names, defaults = "", {}

    def __cinit__(self, str name):
        cls = type(self)
        self.name, self.kernel = name + "_update", kernel(name)
        self.states, self.settings = tuple(cls.state_names.split()), tuple(cls.defaults)
        self.n_states = <int>len(self.states)

    @property
    def operands(self):
        return " ".join(("w", "g", "lr", "t", *self.states))

    @property
    def outputs(self):
        return " ".join(("w", *self.states))

    cdef tuple row_of(self, attributes):
        return self.row, dict(zip(self.settings, attributes.values, strict=True))

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        """Write the coefficients of the kernel for the settings a, the learning rate and the number of the update. They
        are zeros before. By default the rule has one setting and weight_decay."""
        c[0], c[1], c[L2] = lr, a[0], a[1]

    cdef int infer(self, Call* c) except -1 nogil:
        with gil: check_inputs(self, c)
        c.n_out = c.n_in - FIRST_STATE + 1
        for i in range(c.n_out):
            c.y[i].layout, c.y[i].dtype = lay.dense_like(c.x[0].layout), c.x[0].dtype
        if not c.x[1].layout.dense: c.workspace_bytes = c.x[1].layout.size * itemsize(c.x[1].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Update u
        cdef double lr
        cdef Py_ssize_t n = c.x[0].layout.size
        cdef int i, k
        memset(&u, 0, sizeof(u))
        u.kernel, u.dtype, u.n, u.w = self.kernel, c.x[0].dtype, n, c.y[0].data
        lr = number(c.x[2].dtype, c.x[2].data, 0)
        self.coefficients((<RuleSettings>c.attributes).value, lr, <double>(<int64_t*>c.x[3].data)[0], u.c)
        for i in range(c.n_out):
            k = FIRST_STATE - 1 + i if i else 0
            if i: u.s[i - 1] = c.y[i].data
            if c.y[i].data != c.x[k].data or not c.x[k].layout.dense: gather(c.y[i].data, &c.x[k], 0, n)
        u.g = c.x[1].data
        if not c.x[1].layout.dense:
            gather(c.workspace, &c.x[1], 0, n)
            u.g = c.workspace
        run(&u)


cdef int check_inputs(Rule rule, const Call* c) except -1:
    """Raise TypeError or ValueError unless w, g and the states have one shape and one floating dtype, and lr and t are
    one number each."""
    cdef bint dtypes, shapes
    if c.n_in != FIRST_STATE + len(rule.states):
        raise ValueError(f"{rule.name} has the inputs {', '.join(rule.operands.split())}, got {c.n_in}")
    dtypes = is_real(c.x[0].dtype) and is_real(c.x[2].dtype) and c.x[3].dtype == INT64
    shapes = c.x[2].layout.size == 1 and c.x[3].layout.size == 1
    for i in range(c.n_in):
        if i == 2 or i == 3: continue
        dtypes = dtypes and c.x[i].dtype == c.x[0].dtype
        shapes = shapes and lay.same_shape(c.x[i].layout, c.x[0].layout)
    if dtypes and shapes: return 0
    given = [f"{name} {DTYPES[c.x[i].dtype]} {lay.shape_tuple(c.x[i].layout)}"
             for i, name in enumerate(rule.operands.split())]
    raise (ValueError if dtypes else TypeError)(
        f"{rule.name}: {', '.join(('w', 'g', *rule.states))} must have the same shape and floating dtype, lr must be "
        f"one floating number and t one int64; got {', '.join(given)}")


# ---- momentum --------------------------------------------------------------------------------------------------------

cdef class SgdUpdate(Rule):
    """w = w - lr g        no gradient"""
    state_names, defaults = "", dict(weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[L2] = lr, a[0]


cdef class SgdWUpdate(Rule):
    """v = momentum v + lr g, w = w - v - lr / first_lr wd w        no gradient"""
    state_names, defaults = "v", dict(momentum=0.9, wd=1e-4, first_lr=1e-3)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2] = lr, a[0], ratio(lr, a[2]) * a[1]


cdef class MomentumUpdate(Rule):
    """v = momentum v + lr g, w = w - v        no gradient"""
    state_names, defaults = "v", dict(momentum=0.9, weight_decay=0.0)


cdef class NesterovUpdate(Rule):
    """v = momentum u - lr g, w = w + (1 + momentum) v - momentum u        no gradient

    u is the old v."""
    state_names, defaults = "v", dict(momentum=0.9, weight_decay=0.0)


cdef class LarsUpdate(Rule):
    """v = momentum v + local lr (g + wd w), w = w - v        no gradient

    local = coefficient |w| / (|g| + wd |w|), and 1 where |w| < eps; eps is added to a smaller divisor."""
    state_names, defaults = "v", dict(momentum=0.9, coefficient=0.001, eps=1e-6, wd=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2], c[3], c[4] = lr, a[0], a[3], a[1], a[2]


# ---- squares of gradients --------------------------------------------------------------------------------------------

cdef class AdagradUpdate(Rule):
    """v = v + g^2, w = w - lr g / (sqrt(v) + eps)        no gradient"""
    state_names, defaults = "v", dict(eps=1e-8, weight_decay=0.0)


cdef class FtrlUpdate(Rule):
    """v = v + g^2, z = z + g - (sqrt(v) - sqrt(u)) / lr w, w = lr (sign(z) lamda1 - z) / (beta + sqrt(v) + lr wd)
    no gradient

    u is the old v. w = 0 where |z| <= lamda1. With lr = 0 nothing changes."""
    state_names, defaults = "z v", dict(lamda1=0.01, beta=1.0, wd=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2], c[3] = lr, a[0], a[1], a[2]


cdef class AdadeltaUpdate(Rule):
    """v = decay v + (1 - decay) g^2, w = w - lr d, u = decay u + (1 - decay) d^2        no gradient

    d = sqrt((u + eps) / (v + eps)) g."""
    state_names, defaults = "v u", dict(decay=0.95, eps=1e-6, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2], c[3], c[L2] = lr, a[0], 1 - a[0], a[1], a[2]


cdef class RMSpropUpdate(Rule):
    """v = decay v + (1 - decay) g^2, w = w - lr g / (sqrt(v) + eps)        no gradient"""
    state_names, defaults = "v", dict(decay=0.9, eps=1e-8, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2], c[3], c[L2] = lr, a[0], 1 - a[0], a[1], a[2]


cdef class RMSpropGravesUpdate(Rule):
    """v = decay v + (1 - decay) g^2, m = decay m + (1 - decay) g, w = w + d        no gradient

    d = momentum d - lr g / sqrt(v - m^2 + eps), where rounding does not make v - m^2 negative."""
    state_names, defaults = "v m d", dict(decay=0.95, momentum=0.9, eps=1e-4, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2], c[3], c[4], c[L2] = lr, a[0], 1 - a[0], a[1], a[2], a[3]


# ---- Adam and its family ---------------------------------------------------------------------------------------------

cdef inline void means(const double* a, double* c) noexcept nogil:
    """The coefficients of the running means, and eps: beta1, beta2 and eps are the first settings."""
    c[1], c[2], c[3], c[4], c[5] = a[0], 1 - a[0], a[1], 1 - a[1], a[2]

cdef inline double ratio(double lr, double first_lr) noexcept nogil:
    """lr / first_lr, by which decays and bounds follow a schedule."""
    return lr / first_lr if first_lr else 0

cdef inline double corrected(const double* a, double t) noexcept nogil:
    """sqrt(1 - beta2^t) / (1 - beta1^t)"""
    return sqrt(1 - power(a[1], t)) / (1 - power(a[0], t))


cdef class AdamUpdate(Rule):
    """m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w = w - rate m / (sqrt(v) + eps)        no gradient

    rate = lr sqrt(1 - beta2^t) / (1 - beta1^t)"""
    state_names, defaults = "m v", dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        c[0], c[L2] = lr * corrected(a, t), a[3]


cdef class AdamWUpdate(Rule):
    """w = w - rate m / (sqrt(v) + eps) - lr / first_lr wd w        no gradient

    m, v and rate are those of adam_update."""
    state_names, defaults = "m v", dict(beta1=0.9, beta2=0.999, eps=1e-8, wd=1e-4, first_lr=1e-3)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        c[0], c[6] = lr * corrected(a, t), ratio(lr, a[4]) * a[3]


cdef class AdamaxUpdate(Rule):
    """m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g|), w = w - lr / (1 - beta1^t) m / (u + eps)        no gradient
    """
    state_names, defaults = "m u", dict(beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        c[0], c[L2] = lr / (1 - power(a[0], t)), a[3]


cdef class AMSGRADUpdate(Rule):
    """v_max = max(v_max, v), w = w - rate m / (sqrt(v_max) + eps)        no gradient

    m and v are those of adam_update; rate = lr, or that of adam_update with bias_correction."""
    state_names, defaults = "m v v_max", dict(beta1=0.9, beta2=0.999, eps=1e-8, bias_correction=False, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        c[0], c[L2] = lr * corrected(a, t) if a[3] else lr, a[4]


cdef inline void bounds(double final_lr, double gamma, double t, double* c) noexcept nogil:
    c[6], c[7] = final_lr * (1 - 1 / (gamma * t + 1)), final_lr * (1 + 1 / (gamma * t))


cdef class AdaBoundUpdate(Rule):
    """w = w - clip(rate / (sqrt(v) + eps), low, high) m        no gradient

    m, v and rate are those of adam_update. low = f (1 - 1 / (gamma t + 1)), high = f (1 + 1 / (gamma t)),
    f = final_lr lr / first_lr."""
    state_names = "m v"
    defaults = dict(beta1=0.9, beta2=0.999, eps=1e-8, final_lr=0.1, gamma=0.001, first_lr=1e-3, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        bounds(a[3] * ratio(lr, a[5]), a[4], t, c)
        c[0], c[L2] = lr * corrected(a, t), a[6]


cdef class AMSBoundUpdate(Rule):
    """v_max = max(v_max, v), w = w - clip(rate / (sqrt(v_max) + eps), low, high) m        no gradient

    low and high are those of adabound_update, all else as in amsgrad_update."""
    state_names = "m v v_max"
    defaults = dict(beta1=0.9, beta2=0.999, eps=1e-8, final_lr=0.1, gamma=0.001, bias_correction=False, first_lr=1e-3,
                    weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        bounds(a[3] * ratio(lr, a[6]), a[4], t, c)
        c[0], c[L2] = lr * corrected(a, t) if a[5] else lr, a[7]


cdef class Belief(Rule):
    """The base of AdaBelief with and without amsgrad."""

    defaults = dict(beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, fixed_decay=False, rectify=False, weight_decay=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        cdef double q = 2 / (1 - a[1]) - 1, beta = power(a[1], t), p = q - 2 * t * beta / (1 - beta)
        means(a, c)
        c[0], c[6], c[7], c[8] = lr / (1 - power(a[0], t)), a[3] if a[4] else a[3] * lr, 1, 1 / (1 - beta)
        c[L2] = a[6]
        if not a[5]: return
        if p <= 4: c[0], c[7] = lr, 0
        else: c[0] *= sqrt((p - 4) * (p - 2) * q / ((q - 4) * (q - 2) * p))


cdef class AdaBeliefUpdate(Belief):
    """v = beta2 v + (1 - beta2) (g - m)^2 + eps, w = w - wd lr w - rate m / (sqrt(rate2 v) + eps)        no gradient

    m is that of adam_update; rate = lr / (1 - beta1^t), rate2 = 1 / (1 - beta2^t). With `fixed_decay`, wd stands for
    wd lr. With `rectify`, rate is multiplied by r = sqrt((p - 4) (p - 2) q / ((q - 4) (q - 2) p)),
    q = 2 / (1 - beta2) - 1, p = q - 2 t beta2^t / (1 - beta2^t), and where p <= 4 the step is lr m."""
    state_names = "m v"


cdef class AdaBeliefMaxUpdate(Belief):
    """v_max = max(v_max, v) + eps, w = w - wd lr w - rate m / (sqrt(rate2 v_max) + eps)        no gradient

    v = beta2 v + (1 - beta2) (g - m)^2. All else as in adabelief_update."""
    state_names = "m v v_max"


cdef class LambUpdate(Rule):
    """w = w - lr clip(|w|, gamma_l, gamma_u) / |r| r, r = m / (sqrt(v) + eps) + wd w        no gradient

    m and v are those of adam_update; with bias_correction, r has m / (1 - beta1^t) and v / (1 - beta2^t). Where
    |r| <= eps the step is lr r."""
    state_names = "m v"
    defaults = dict(beta1=0.9, beta2=0.999, eps=1e-6, gamma_l=0.0, gamma_u=10.0, bias_correction=False, wd=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        means(a, c)
        c[0], c[6], c[7], c[8], c[9], c[10] = lr, 1, 1, a[6], a[3], a[4]
        if a[5]: c[6], c[7] = 1 / (1 - power(a[0], t)), 1 / (1 - power(a[1], t))


cdef class LionUpdate(Rule):
    """w = w - lr (sign(beta1 m + (1 - beta1) g) + wd w), m = beta2 m + (1 - beta2) g        no gradient"""
    state_names, defaults = "m", dict(beta1=0.9, beta2=0.99, wd=0.0)

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil:
        c[0], c[1], c[2], c[3], c[4], c[5] = lr, a[0], 1 - a[0], a[1], 1 - a[1], a[2]


# ---- public functions ------------------------------------------------------------------------------------------------

OPERATORS = {rule.name: rule for rule in (
    SgdUpdate("sgd"), SgdWUpdate("sgdw"), MomentumUpdate("momentum"), NesterovUpdate("nesterov"), LarsUpdate("lars"),
    AdagradUpdate("adagrad"), FtrlUpdate("ftrl"), AdadeltaUpdate("adadelta"), RMSpropUpdate("rmsprop"),
    RMSpropGravesUpdate("rmsprop_graves"), AdamUpdate("adam"), AdamWUpdate("adamw"), AdamaxUpdate("adamax"),
    AMSGRADUpdate("amsgrad"), AdaBoundUpdate("adabound"), AMSBoundUpdate("amsbound"), AdaBeliefUpdate("adabelief"),
    AdaBeliefMaxUpdate("adabelief_max"), LambUpdate("lamb"), LionUpdate("lion"),
)}


def _function_of(Rule rule, str solver):
    """The public function of a rule. It returns the new w, or a tuple of it and the new states."""
    cdef dict defaults = type(rule).defaults
    names, whole = (*rule.operands.split(), *defaults), ["w", *rule.states]
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(name, Parameter.empty))
                  for name in names]

    def update(*args, **kwargs):
        given = update.__signature__.bind(*args, **kwargs).arguments
        w, g, lr, t, *states = [given[name] for name in names[:FIRST_STATE + len(rule.states)]]
        if not isinstance(lr, Tensor): lr = asarray(np.float64(lr) if isinstance(lr, (int, float)) else lr)
        if not isinstance(t, Tensor): t = asarray(np.int64(t) if isinstance(t, int) else t)
        settings = tuple([given.get(name, value) for name, value in defaults.items()])
        return apply_list(rule, [asarray(w), asarray(g), lr, t, *map(asarray, states)], RuleSettings(settings))

    update.__name__ = update.__qualname__ = rule.name
    update.__doc__ = f"An update by {solver}: the new {' and '.join(filter(None, [', '.join(whole[:-1]), whole[-1]]))}."
    update.__signature__ = Signature(parameters)
    return update


for _rule in OPERATORS.values():
    globals()[_rule.name] = _function_of(_rule, type(_rule).__name__.removesuffix("Update"))
