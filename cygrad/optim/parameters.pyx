"""The parameters of a solver, their groups, and checks of what a user passes."""

from libc.math cimport INFINITY
from libc.string cimport memset

from cygrad.core.graph.construct cimport fresh
from cygrad.core.graph.tensor cimport Tensor, data_of, node_of
from cygrad.core.graph.waiting cimport WaitingTensor, zeros_of
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OPTIMIZER, READONLY
from cygrad.kernels.array cimport itemsize

from collections.abc import Mapping

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described, type_name
from cygrad.optim.settings import runs


NUMBERS = ("lr", "first_lr", "lr_mult", "decay", "weight_decay", "wd_mult")     # a group has and saves them
ASSIGNED = ("lr", "weight_decay", "lr_mult", "wd_mult")                         # what a user can assign


cdef class Group:
    cdef Group copy(self):
        """A group with the same settings."""
        cdef Group group = Group.__new__(Group)
        group.decay_at, group.first_at, group.converts = self.decay_at, self.first_at, self.converts
        for i in range(MAX_SETTINGS): group.value[i] = self.value[i]
        group.assign(self.numbers())
        return group

    cdef tuple numbers(self):
        """The values of NUMBERS."""
        return self.lr, self.first_lr, self.lr_mult, self.decay, self.weight_decay, self.wd_mult

    cdef int assign(self, numbers) except -1:
        """Set what numbers() returned."""
        self.lr, self.first_lr, self.lr_mult, self.decay, self.weight_decay, self.wd_mult = numbers

    cdef int set_decay(self, double weight_decay) except -1:
        self.decay = product(weight_decay, self.first_lr) if self.converts else weight_decay
        self.weight_decay = weight_decay

    cdef int check_rate(self, double lr, double lr_mult) except -1:
        """Raise ValueError if the group cannot have this rate."""
        if not lr < INFINITY or not lr_mult < INFINITY:
            raise ValueError("a group cannot have this rate: it, or its ratio to the rate of the solver, is not finite")
        if not self.first_lr and self.converts: product(self.weight_decay, lr)

    cdef int set_rate(self, double lr, double lr_mult) except -1:
        self.check_rate(lr, lr_mult)
        self.lr, self.lr_mult = lr, lr_mult
        if not self.first_lr:                       # decays and bounds refer to the first rate above 0
            self.first_lr = lr
            if self.converts and self.weight_decay: self.set_decay(self.weight_decay)

    cdef int refresh(self, double pending) except -1:
        """Write what can change into the settings of the rule. `pending` takes the place of the decay, unless it is
        negative."""
        self.value[self.decay_at] = (pending if pending >= 0 else self.decay) * self.wd_mult
        if self.first_at >= 0: self.value[self.first_at] = self.first_lr


cdef double product(double weight_decay, double first_lr) except -1:
    """The decay for a first rate. Raises ValueError if it is not finite."""
    if not weight_decay * first_lr < INFINITY:
        raise ValueError(f"weight_decay {weight_decay:g} times the first rate {first_lr:g} is not finite; give a "
                         f"smaller one of them")
    return weight_decay * first_lr


cdef Group group_from(Group base, double solver_lr, double pending, dict settings):
    """A new group with the settings of a dict, those of `base` for the others."""
    cdef Group group = base.copy()
    cdef double lr, mult
    for key in settings:
        if key not in ASSIGNED:
            raise ValueError(f"a group takes params, {', '.join(ASSIGNED)}, got {described(key)}; make a second solver "
                             f"for other settings")
    mult = not_negative("lr_mult", settings.get("lr_mult", 1))
    lr = not_negative("lr", settings.get("lr", solver_lr)) * mult
    if solver_lr: mult = lr / solver_lr if "lr" in settings else mult
    elif lr: raise ValueError(f"a group cannot have lr {lr} in a solver whose rate is 0: set_learning_rate() keeps the "
                              f"ratio of the two")
    group.first_lr = lr
    group.set_rate(lr, mult)
    if group.converts: group.set_decay(group.weight_decay)
    if "weight_decay" in settings: group.set_decay(not_negative("weight_decay", settings["weight_decay"]))
    group.wd_mult = not_negative("wd_mult", settings.get("wd_mult", 1))
    group.refresh(pending)
    return group


cdef class SolverParameter:
    pass


cdef int check_parameter(str who, name, v) except -1:
    """Raise TypeError or ValueError, in the name of the method `who`, unless `v` can be a parameter."""
    cdef Tensor x
    if not isinstance(name, str):
        raise TypeError(f"{who}: the names must be strings, got {described(name)}")
    if not isinstance(v, Tensor):
        raise TypeError(f"{who}: {name!r} must be a tensor, got {described(v)}")
    x = <Tensor>v
    node = node_of(x)
    if node is None or node.op is not None:         # (a frozen parameter has a node: it was a variable)
        raise ValueError(f"{who}: {name!r}, of shape {x.shape}, is not a variable; call attach_grad() or "
                         f"requires_grad_() on it first")
    if x.buffer.flags & READONLY:
        raise ValueError(f"{who}: {name!r}, of shape {x.shape}, has read-only memory and cannot be updated; "
                         f"use a copy()")
    if not x.layout.dense:
        raise ValueError(f"{who}: {name!r}, of shape {x.shape}, is not contiguous; use a copy()")


cdef int check_distinct(str who, dict made) except -1:
    """Raise ValueError if a tensor occurs twice, or memory in two tensors. Parameters are contiguous, so each is one
    range of addresses."""
    cdef dict names = {}
    cdef list ranges = []
    cdef Tensor x
    cdef size_t start, end = 0
    for name, p in made.items():
        x = (<SolverParameter>p).tensor
        if id(x) in names:
            raise ValueError(f"{who}: {name!r} is the same tensor as {names[id(x)]!r}; a tensor is updated once, so "
                             f"list it once")
        names[id(x)] = name
        if type(x) is not Tensor or not x.layout.size: continue     # (freed meanwhile, waiting, or empty)
        start = <size_t>data_of(x)
        ranges.append((start, start + x.layout.size * itemsize(x.dtype), id(x)))
    ranges.sort()
    for start, stop, key in ranges:
        if start < end:
            first, second = sorted((names[before], names[key]), key=[*made].index)
            raise ValueError(f"{who}: {second!r} shares memory with {first!r}, and an update would change it twice; "
                             f"list one of them, or use a copy()")
        end, before = stop, key


cdef SolverParameter parameter_of(str name, Tensor v, Group group, SolverParameter old, bint retain, int n_states):
    """A parameter with states of zeros, or, to retain them, those of `old`, which has the name so far, or is None. Its
    group remains that of `old`."""
    cdef SolverParameter p = SolverParameter.__new__(SolverParameter)
    p.tensor, p.group = v, group if old is None else old.group
    if old is None or not retain:
        p.states = [zeros(v) for _ in range(n_states)]
        return p
    if old.tensor.dtype != v.dtype or not lay.same_shape(old.tensor.layout, v.layout):
        raise ValueError(f"set_parameters: {name!r} is {DTYPES[v.dtype]} {v.shape}, and the state to retain is "
                         f"{DTYPES[old.tensor.dtype]} {old.tensor.shape}; pass retain_state=False")
    p.states, p.t = old.states, old.t
    return p


cdef Tensor zeros(Tensor like):
    cdef Tensor t
    if type(like) is WaitingTensor: return zeros_of(like, OPTIMIZER)        # (which get memory when `like` does)
    t = fresh(lay.dense_like(like.layout), like.dtype, OPTIMIZER)
    memset(t.buffer.data, 0, t.buffer.nbytes)
    return t


# ---- checks of states ------------------------------------------------------------------------------------------------

cdef dict checked_states(tuple keys, dict own, given):
    """The states in `given` by name of the parameter, in the order of `own`: (tensors by name of the state, number of
    updates). `keys` are the names of the states. Raises TypeError or ValueError unless they fit those in `own`."""
    if not isinstance(given, Mapping):
        raise TypeError(f"set_states takes a dict of states by name of the parameter, got {type_name(given)}")
    check_names("the states", own, given)
    out = {}
    for name, (mine, _) in own.items():
        try:
            pstate, t = (given[name].pstate, given[name].t) if hasattr(given[name], "pstate") else given[name]
        except (TypeError, ValueError):
            raise TypeError(f"the state of {name!r} must be a SolverState or a pair (states by name, number of "
                            f"updates), got {described(given[name])}") from None
        if not isinstance(pstate, Mapping) or pstate.keys() != set(keys):
            got = (", ".join(map(str, pstate)) or "none") if isinstance(pstate, Mapping) else described(pstate)
            raise ValueError(f"the state of {name!r} must have {', '.join(keys) or 'no tensors'}, got {got}")
        if not isinstance(t, int) or isinstance(t, bool) or not 0 <= t < 2**63:
            raise ValueError(f"the number of updates of {name!r} must be an int of at least 0, got {described(t)}")
        for key in keys:
            v, wanted = pstate[key], mine[key]
            if type(v) is WaitingTensor and type(wanted) is WaitingTensor: continue     # (a pickle: both are zeros)
            if not isinstance(v, Tensor) or v.shape != wanted.shape or v.dtype != wanted.dtype:
                got = f"a {v.dtype} tensor of shape {v.shape}" if isinstance(v, Tensor) else described(v)
                raise ValueError(f"the state {key} of {name!r} must be a {wanted.dtype} tensor of shape "
                                 f"{wanted.shape} like the parameter, got {got}")
        out[name] = {key: pstate[key] for key in keys}, t
    return out


def check_names(what, own, given):
    """Raise ValueError unless both have the same names."""
    missing, extra = [key for key in own if key not in given], [key for key in given if key not in own]
    if missing or extra:
        said = [f"{label} {', '.join(map(repr, names))}" for label, names in (("missing", missing), ("unknown", extra))
                if names]
        raise ValueError(f"{what} must be those of the solver's parameters; {'; '.join(said)}")


cdef int check_function(str owner, str name, f, str advice="") except -1:
    if not callable(f):
        raise TypeError(f"{owner}: {name} must be a function without arguments, got {described(f)}{advice}")
    runs(owner, name, f)


# ---- checks of numbers -----------------------------------------------------------------------------------------------

cdef double number(str name, value) except? -1:
    try:
        return value
    except (TypeError, ValueError):                 # (a tensor or array of several elements raises ValueError)
        raise TypeError(f"{name} must be a number, got {described(value)}") from None
    except OverflowError:
        raise ValueError(f"{name} must be finite, got an int that no float64 can hold") from None


def not_negative(str name, value):
    if not 0 <= number(name, value) < INFINITY:
        raise ValueError(f"{name} must be at least 0 and finite, got {described(value)}")
    return float(value)


def positive(str name, value):
    if not 0 < number(name, value) < INFINITY:
        raise ValueError(f"{name} must be greater than 0 and finite, got {described(value)}")
    return float(value)


def fraction(str name, value):
    if not 0 <= number(name, value) < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1, got {described(value)}")
    return float(value)


def truth(str name, value):
    if not isinstance(value, bool): raise TypeError(f"{name} must be True or False, got {described(value)}")
    return value


cdef double bound(str name, value) except? -1:
    if not number(name, value) > 0: raise ValueError(f"{name} must be greater than 0, got {described(value)}")
    return value


cdef tuple pair(betas):
    try:
        beta1, beta2 = betas
    except (TypeError, ValueError):
        raise TypeError(f"betas must be two numbers, (beta1, beta2), got {described(betas)}") from None
    return beta1, beta2


CHECKS = {
    "beta1": fraction, "beta2": fraction, "decay": fraction, "momentum": fraction, "eps": positive, "wd": not_negative,
    "gamma": positive, "gamma_l": not_negative, "gamma_u": positive, "final_lr": positive, "coefficient": positive,
    "lamda1": not_negative, "beta": not_negative,
    "bias_correction": truth, "amsgrad": truth, "weight_decouple": truth, "fixed_decay": truth, "rectify": truth,
}
