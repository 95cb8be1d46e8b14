"""Solvers, which other libraries call optimizers. A solver has a rule (cygrad/ops/rules.pyx), whose kernel updates a
parameter and its states in place. The states are allocated when the parameters are set, so an update allocates nothing,
except workspace for row-sparse gradients and copies of gradients that are not contiguous.

What can fail runs before the first write: an update changes all parameters or none. The solvers are in solvers.py."""

cimport cython
from cpython.object cimport PyObject_GenericSetAttr

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libc.string cimport memset

from copyreg import __newobj__
from warnings import warn

from cygrad.core.graph.around cimport changed
from cygrad.core.graph.calls cimport calls_of, note
from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.graph.packed cimport will_write
from cygrad.core.graph.tensor cimport Leaf, Tensor, array_of, data_of, is_variable, node_of
from cygrad.core.store.buffer cimport WORKSPACE, Buffer, allocate, drop
from cygrad.core.graph.effects cimport use_solver
from cygrad.core.graph.trace cimport lists_calls, refuse_trace, traces
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Array
from cygrad.kernels.driver cimport gather
from cygrad.kernels.update cimport Update, run
from cygrad.memory.log cimport begin_update, end_update
from cygrad.ops.rules cimport Rule
from cygrad.optim cimport gradients
from cygrad.optim.gradients cimport is_traced, reached, run_slice
from cygrad.optim.parameters cimport (
    Group, SolverParameter, bound, check_distinct, check_function, check_parameter, checked_states, group_from, number,
    pair, parameter_of,
)

from cygrad.core.errors import described, module_of
from cygrad.ops.rules import OPERATORS
from cygrad.optim import files
from cygrad.optim.answers import SOLVERS, of_solver
from cygrad.optim.fusing import FusedUpdates, refuse_fused, refuse_half
from cygrad.optim.groups import ParameterGroup, SolverState, each_group, is_parameters, removed, solver_text
from cygrad.optim.parameters import ASSIGNED, CHECKS, NUMBERS, not_negative


cdef int refuse_change(Solver solver, str what) except -1:
    """Raise RuntimeError if the program that becomes a net would change the solver itself, or its updates are fused."""
    if lists_calls(): refuse_trace(f"{what} of a solver")
    refuse_fused(solver, what)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Solver:
    """The base class of solvers (optimizers). Each can be created in two spellings:

        solver = Adam(alpha=0.001)                  # nnabla's: settings, then set_parameters()
        solver.set_parameters(parameters)
        solver = Adam(parameters, lr=0.001, betas=(0.9, 0.999), weight_decay=0.01)      # PyTorch's
        solver = Sgd([{"params": some, "lr": 0.01}, {"params": others}], lr=0.1)        # with groups

    set_parameters() lists what `parameters` can be. A pickled solver contains its parameters, their states and their
    numbers of updates. If a model and its solver are in one pickle, they share the same tensors after loading.

    A subclass sets `rule`, the name of a rule in cygrad.ops.rules, and `settings`, the names of the constructor's
    arguments, the learning rate first, whose default is `default`. With `row_sparse`, a gradient may be a
    GradientSlice."""

    cdef readonly double lr
    cdef Rule the_rule
    cdef dict parameters, given     # by name: the parameters; the settings but the learning rate
    cdef Group base                 # the group of parameters that have no other
    cdef list groups                # those in use
    cdef double pending             # the decay of the next update, where the rule has one; -1: that of the group
    cdef bint fuses                 # the rule has a decay of its own
    cdef str refuses                # the name of a solver that takes no GradientSlice, else None
    cdef public object fused        # the FusedUpdates that are on, or None
    cdef object __weakref__

    rule = ""
    settings = ("lr",)
    default = 1e-3
    row_sparse = False

    def __cinit__(self, *given, **named):
        self.parameters, self.groups, self.given, self.pending = {}, [], {}, -1
        self.base = Group.__new__(Group)
        self.refuses = None if self.row_sparse else type(self).__name__
        answer = None                               # (a subclass elsewhere may take more)
        if module_of(type(self)).startswith("cygrad."): answer = of_solver(type(self), given, named)
        if answer is not None: raise TypeError(answer)

    def _start(self, first, dict settings, *, params=None, betas=None, weight_decay=None, **rate):
        """Set the settings of a constructor. `first` is its first argument: the learning rate, or the parameters."""
        if lists_calls(): refuse_trace("making a solver")
        cdef Rule rule = OPERATORS[self._rule(settings)]
        cdef Group base = self.base
        cdef int i
        name = type(self).settings[0]
        if is_parameters(first): params, first = first, self.default
        for key in (name, "lr"):
            if key in rate: name, first = key, rate.pop(key)
        if rate: raise TypeError(f"{type(self).__name__} takes no {', '.join(rate)}")
        if betas is not None: settings["beta1"], settings["beta2"] = pair(betas)
        called = {"beta1": "betas[0]", "beta2": "betas[1]"} if betas is not None else {}
        settings = {key: CHECKS[key](called.get(key, key), value) for key, value in settings.items()}
        base.lr = base.first_lr = not_negative(name, first)
        base.lr_mult = base.wd_mult = 1
        fuses = "wd" in rule.settings and settings.get("weight_decouple", True)
        base.decay_at = rule.settings.index("wd" if fuses else "weight_decay")
        base.first_at = rule.settings.index("first_lr") if "first_lr" in rule.settings else -1
        base.converts = fuses and (base.first_at >= 0 or settings.get("fixed_decay", False))
        for i, key in enumerate(rule.settings): base.value[i] = settings.get(key, 0)
        if fuses: base.decay = settings.get("wd", 0)
        if base.decay and base.lr: base.weight_decay = base.decay / base.lr if base.converts else base.decay
        if weight_decay is not None:
            base.set_decay(not_negative("weight_decay", weight_decay))
            if fuses and "wd" in settings: settings["wd"] = base.decay
        base.refresh(-1)
        self.the_rule, self.fuses, self.lr, self.given, self.groups = rule, fuses, base.lr, settings, [base]
        if params is not None: self.set_parameters(params)

    def __repr__(self):
        return solver_text(self, self.given)

    def _rule(self, settings):
        """The name of the rule for these settings."""
        if not self.rule:
            raise NotImplementedError(f"{type(self).__name__} has no rule; a solver names its rule, a row of "
                                      f"cygrad.ops.rules")
        return self.rule

    def __getattr__(self, name):
        if name in self.given: return self.given[name]
        advice = f": {SOLVERS[name]}" if name in SOLVERS else ""
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{advice}")

    def __setattr__(self, name, value):
        if name == "lr": raise AttributeError("the lr of a solver is not assigned: call set_learning_rate(lr)")
        PyObject_GenericSetAttr(self, name, value)

    # ---- parameters

    def set_parameters(self, parameters, reset=True, retain_state=False):
        """Set the parameters: a dict of names and variables, an iterable of variables, which are named by position, or
        of pairs (name, variable), one variable, or a list of groups (see add_param_group). With reset=False the other
        parameters stay, and a variable replaces the one of its name; with retain_state=True too it takes over that
        one's state and number of updates, else both start anew. Raises TypeError for other arguments, ValueError for a
        tensor that is not a variable, is read-only, is not contiguous, occurs twice or shares memory with another one,
        or whose shape or dtype differs from that of a retained state; then nothing has changed."""
        cdef dict made = {} if reset else dict(self.parameters)
        cdef list groups = [] if reset else list(self.groups)
        cdef Group group
        refuse_change(self, "set_parameters()")
        for names, settings in each_group("set_parameters", parameters, len(made)):
            group = self.base if settings is None else group_from(self.base, self.lr, self.pending, settings)
            if group not in groups: groups.append(group)
            self.add_to("set_parameters", made, names, group, retain_state, reset)
        check_distinct("set_parameters", made)
        self.parameters, self.groups = made, groups
        changed()

    def add_param_group(self, param_group):
        """Add parameters with their own settings, a dict: "params", as in set_parameters, and optionally "lr",
        "weight_decay", as in PyTorch, "lr_mult" and "wd_mult", which multiply the rate and the decay of the solver.
        set_learning_rate() keeps the ratio of the group's rate to the solver's. Raises as set_parameters does; then
        nothing has changed."""
        cdef dict made = dict(self.parameters)
        refuse_change(self, "add_param_group()")
        if not isinstance(param_group, dict):
            raise TypeError(f"add_param_group takes a dict with \"params\", got {type(param_group).__name__}")
        [(names, settings)] = each_group("add_param_group", [param_group], len(made))
        group = group_from(self.base, self.lr, self.pending, settings)
        for name in names:
            if name in made: raise ValueError(f"add_param_group: there is a parameter {name!r} already")
        self.add_to("add_param_group", made, names, group, False, False)
        check_distinct("add_param_group", made)
        self.parameters = made
        self.groups.append(group)
        changed()

    cdef int add_to(self, str who, dict made, dict names, Group group, bint retain, bint reset) except -1:
        """Add checked parameters to `made`, with states of zeros or, to retain them, those of the old ones."""
        for name, v in names.items():
            check_parameter(who, name, v)
            if reset and name in made: raise ValueError(f"{who}: two groups have a parameter {name!r}")
            made[name] = parameter_of(name, <Tensor>v, group, made.get(name), retain, len(state_names(self)))

    def get_parameters(self):
        """The parameters, as a dict by name."""
        return {name: (<SolverParameter>p).tensor for name, p in self.parameters.items()}

    def remove_parameters(self, keys):
        """Remove the parameters of these names, a list or one name, and their states. Other names are ignored. Raises
        TypeError for what is not a string."""
        refuse_change(self, "remove_parameters()")
        names = removed(keys)
        self.parameters = {name: p for name, p in self.parameters.items() if name not in names}
        changed()

    def clear_parameters(self):
        """Remove all parameters and their states, and all groups."""
        refuse_change(self, "clear_parameters()")
        self.parameters, self.groups = {}, [self.base]
        changed()

    @property
    def param_groups(self):
        """The groups of parameters, as in PyTorch: each is a mapping with "params", "lr", "lr_mult", "weight_decay"
        and "wd_mult". All but "params" can be assigned."""
        return [ParameterGroup(self, group, [name for name, p in self.parameters.items()
                                             if (<SolverParameter>p).group is group]) for group in self.groups]

    def _read_group(self, Group group):
        return {"lr": group.lr, "lr_mult": group.lr_mult, "weight_decay": group.weight_decay, "wd_mult": group.wd_mult}

    def _write_group(self, Group group, key, value):
        """Assign to a group of param_groups."""
        cdef double x
        refuse_trace("an assignment to param_groups")
        refuse_half(self, "an assignment to param_groups")
        if key not in ASSIGNED:
            raise ValueError(f"a group has {', '.join(ASSIGNED)} to assign, not {described(key)}")
        x = not_negative(key, value)
        if key == "weight_decay": group.set_decay(x)
        elif key == "wd_mult": group.wd_mult = x
        elif key == "lr_mult": group.set_rate(self.lr * x, x)
        elif self.groups == [group] and group is self.base: self.set_learning_rate(x)
        else: group.set_rate(x, x / self.lr if self.lr else group.lr_mult)
        group.refresh(self.pending)

    # ---- the learning rate and the update

    cdef list every_group(self):
        return self.groups if self.base in self.groups else [self.base, *self.groups]

    cdef int set_pending(self, double decay) except -1:
        """Set the decay of the next update; -1: that of the groups."""
        cdef Group group
        self.pending = decay
        for group in self.every_group(): group.refresh(decay)

    def learning_rate(self):
        """The learning rate."""
        return self.lr

    def set_learning_rate(self, lr):
        """Set the learning rate from the next update on. Groups with a rate of their own keep its ratio to this one.
        Raises TypeError unless it is a number, ValueError unless it is finite and at least 0."""
        cdef Group group
        cdef double rate = not_negative("lr", lr)
        refuse_trace("set_learning_rate()")
        refuse_half(self, "set_learning_rate")
        cdef list groups = self.every_group()
        for group in groups:
            if not rate * group.lr_mult < INFINITY:
                raise ValueError(f"set_learning_rate: {rate:g} times a group's lr_mult {group.lr_mult:g} is not finite")
            group.check_rate(rate * group.lr_mult, group.lr_mult)
        self.lr = rate
        for group in groups:
            group.set_rate(rate * group.lr_mult, group.lr_mult)
            group.refresh(self.pending)

    def zero_grad(self):
        """Set every parameter's gradient to zeros, and drop a fused weight_decay() that waits for an update. update()
        skips a parameter until a backward pass has reached it again."""
        cdef Tensor x
        if self.fused is not None: self.fused.drop_sums()
        cdef list calls = calls_of(flags())         # the calls of a program that becomes a net
        cdef Py_ssize_t n = len(calls) if calls is not None else 0
        for p in self.parameters.values():
            x = (<SolverParameter>p).tensor
            if is_variable(x): x.zero_grad()        # (not if it is frozen)
        if calls is not None:
            del calls[n:]
            note("zero_grad", ([x for x in self.get_parameters().values() if is_variable(x)], "zeros", self))
        use_solver(self)
        if self.fuses and self.fused is None: self._drop_decay()

    def _drop_decay(self):
        """Drop a fused weight_decay() that waits for an update."""
        if is_traced(self, {}, "_drop_decay", None, ()): return
        if self.pending >= 0: self.set_pending(-1)
        if self.fused is not None: self.fused.rate = 0.0

    def update(self, update_pre_hook=None, update_post_hook=None):
        """Apply the update rule to every parameter that a backward pass has reached, or whose .grad was assigned, since
        the last update or zero_grad(); warns if there is none. A write to a gradient in place, x.grad[...] = g, does
        not count: set fresh_grad = True on its variable. The hooks are called without arguments before and after the
        update of each of them. Raises RuntimeError if there are no parameters or if a gradient is incomplete, TypeError
        for a GradientSlice unless the solver takes them and for a hook that is not a function; then nothing has
        changed. What a hook raises arrives with a note that lists the parameters that were updated before."""
        cdef list ready
        cdef size_t workspace_bytes = 0
        if update_pre_hook is not None: check_function("update", "update_pre_hook", update_pre_hook)
        if update_post_hook is not None: check_function("update", "update_post_hook", update_post_hook)
        if not self.parameters:
            raise RuntimeError("update: this solver has no parameters; call set_parameters() first")
        if self.the_rule is None: self._rule({})
        if self.fused is not None:                  # (backward has done it, unless it accumulated)
            if update_pre_hook is not None or update_post_hook is not None: refuse_fused(self, "update with hooks")
            if not self.fused.end("update") and not traces(): return self.fused.passed()
            if self.fused.rate and not traces(): gradients.decay(self.parameters, self.fused.rate)
        if is_traced(self, self.parameters, "update", self.refuses, (update_pre_hook, update_post_hook)): return
        ready = reached(self.parameters, "update", self.refuses, &workspace_bytes)
        for p, _ in ready: will_write(flags(), (<SolverParameter>p).tensor.buffer)
        if not ready and self.fused is None:
            warn("update: no backward pass has reached a parameter since the last update or zero_grad(), so nothing "
                 "has changed; if you wrote to a gradient in place, set fresh_grad = True on its variable", UserWarning,
                 1)
        elif update_pre_hook is None and update_post_hook is None: self.apply(ready, workspace_bytes)
        else: self.apply_with_hooks(ready, update_pre_hook, update_post_hook)
        if self.pending >= 0 or self.fused is not None: self._drop_decay()     # weight_decay() holds for one update

    cdef int apply(self, list ready, size_t workspace_bytes) except -1:
        """Update the parameters of reached(). `workspace_bytes` are for row-sparse gradients."""
        cdef SolverParameter p
        cdef Update u
        cdef Group group = None
        cdef Buffer* workspace = allocate(workspace_bytes, WORKSPACE) if workspace_bytes else NULL
        cdef Tensor w
        cdef uint64_t t = 0
        memset(&u, 0, sizeof(u))
        u.kernel = self.the_rule.kernel
        begin_update()
        for p, gradient in ready:
            w = p.tensor
            p.t += 1
            if p.t != t or p.group is not group:    # (two powers cost as much as the update of 100 elements)
                t, group = p.t, p.group
                self.the_rule.coefficients(group.value, group.lr, <double>t, u.c)
            u.dtype, u.n, u.w = w.dtype, w.layout.size, data_of(w)
            for i in range(self.the_rule.n_states): u.s[i] = data_of(<Tensor>p.states[i])
            if type(gradient) is GradientSlice: run_slice(&u, w, <GradientSlice>gradient, workspace.data)
            else:
                u.g = data_of(<Tensor>gradient)
                run(&u)
            w.buffer.version += 1
            (<Leaf>node_of(w)).fresh = False
        end_update()
        if workspace != NULL: drop(workspace)

    cdef int apply_with_hooks(self, list ready, before, after) except -1:
        """Update the parameters one by one. A hook may change gradients, parameters and settings."""
        cdef SolverParameter p
        cdef size_t workspace_bytes
        cdef list done = []
        cdef dict names = {id(p): name for name, p in self.parameters.items()}
        try:
            for pair in ready:
                p = pair[0]
                if before is not None: before()
                name = names[id(p)]
                if self.parameters.get(name) is not p: continue
                now = reached({name: p}, "update", self.refuses, &workspace_bytes)
                if not now: continue                # the hook has zeroed its gradient
                self.apply(now, workspace_bytes)
                done.append(name)
                if after is not None: after()
        except BaseException as e:
            e.add_note(f"update: a hook failed, or a check after it; updated before: "
                       f"{', '.join(map(repr, done)) or 'no parameter'}")
            raise

    def fuse_into_backward(self):
        """Let each backward pass update the parameters itself: as soon as the gradient of a parameter is complete it
        goes into the update, and its memory is free again. `.grad` stays as it was, and update() then does nothing.

            with solver.fuse_into_backward(): loss.backward()       # updates, too

        Without `with`, it stays on until close() of what it returns. Where a weight of linear, matmul, a convolution or
        an embedding is used once, Sgd, SgdW, Momentum and Nesterov need no memory: the product is added to the
        parameter or its state. Rules without norms take gradients in parts of at most 1 MiB. Several contributions are
        summed first, for Momentum and SgdW in the state. Updates agree with those of update() within rounding;
        weight_decay(rate) before a pass is part of them. In a scope accumulate() passes only sum, for update().

        RuntimeError refuses before anything runs what needs all gradients: clipping, scaling, checks, other parameters,
        update() with hooks, retain_graph, create_graph, DynamicLossScalingUpdater, an Updater with comm or checks.
        Hooks for a complete .grad are not called. Each pass in a GradientCollector updates. A pass that fails has a
        note with what has moved, the last perhaps in part. Raises RuntimeError without parameters, and if it is on."""
        if not self.parameters:
            raise RuntimeError("fuse_into_backward: this solver has no parameters; call set_parameters() first")
        if self.the_rule is None: self._rule({})
        refuse_fused(self, "fuse_into_backward")
        refuse_trace("fuse_into_backward()")
        self.fused = FusedUpdates(self, self.get_parameters(), self.the_rule)
        return self.fused

    def _parameter(self, name): return self.parameters[name]

    def step(self, closure=None):
        """update() under PyTorch's name. `closure` is called first, without arguments, and its result is returned.
        Raises TypeError if it is not a function."""
        if closure is not None: check_function("step", "closure", closure, "; after a backward pass call step()")
        loss = closure() if closure is not None else None
        self.update()
        return loss

    # ---- gradients

    def weight_decay(self, rate):
        """g += rate w for every parameter that a backward pass has reached. A rule with a decay of its own
        (weight_decay_is_fused) uses `rate` instead in the next update. Of a GradientSlice, the rows that are present
        decay. Raises TypeError or ValueError unless the rate is a number of at least 0, RuntimeError for an incomplete
        gradient, InplaceError for one with a graph; then nothing has changed."""
        cdef double value = not_negative("rate", rate)
        if self.fused is not None:                  # (of the next backward pass)
            refuse_half(self, "weight_decay")
            if is_traced(self, {}, "weight_decay", None, (rate,)): return
            if self.fuses: self.set_pending(value)
            else: self.fused.rate = value
            return
        written = {} if self.fuses else self.parameters     # (the parameters whose gradients change now)
        if is_traced(self, written, "weight_decay", None, (rate,)): return
        if not self.fuses:
            gradients.decay(self.parameters, value)
            return
        reached(self.parameters, "weight_decay", None, NULL)
        self.set_pending(value)

    def weight_decay_is_fused(self):
        """Whether weight_decay() sets the decay of the next update, instead of changing the gradients."""
        return bool(self.fuses)

    def clip_grad_by_norm(self, clip_norm):
        """g *= clip_norm / max(clip_norm, |g|) for each parameter by itself, |g| being its Euclidean norm. Rows of a
        GradientSlice with equal indices are summed first. Raises TypeError or ValueError unless the bound is a number
        greater than 0, else as weight_decay does."""
        refuse_fused(self, "clip_grad_by_norm")
        if is_traced(self, self.parameters, "clip_grad_by_norm", None, (clip_norm,)): return
        gradients.clip_by_norm(self.parameters, bound("clip_norm", clip_norm))

    def clip_grad_by_global_norm(self, clip_norm):
        """g *= clip_norm / max(clip_norm, norm), where `norm` is that of all gradients together, which is returned.
        Raises as clip_grad_by_norm does."""
        refuse_fused(self, "clip_grad_by_global_norm")
        if is_traced(self, self.parameters, "clip_grad_by_global_norm", None, (clip_norm,)): return None
        return gradients.clip_by_global_norm(self.parameters, bound("clip_norm", clip_norm))

    def clip_grad_by_value(self, clip_value):
        """g = clip(g, -clip_value, clip_value), element by element. Raises as clip_grad_by_norm does."""
        refuse_fused(self, "clip_grad_by_value")
        if is_traced(self, self.parameters, "clip_grad_by_value", None, (clip_value,)): return
        gradients.clip_by_value(self.parameters, bound("clip_value", clip_value))

    def scale_grad(self, scale):
        """g *= scale. Raises TypeError unless it is a number, else as weight_decay does."""
        refuse_fused(self, "scale_grad")
        if is_traced(self, self.parameters, "scale_grad", None, (scale,)): return
        gradients.scale(self.parameters, number("scale", scale))

    def check_inf_grad(self):
        """Whether a gradient has an infinite element. Only parameters that a backward pass has reached count."""
        refuse_fused(self, "check_inf_grad")
        return gradients.check(self.parameters, "check_inf_grad")[0]

    def check_nan_grad(self):
        """Whether a gradient has a NaN. Only parameters that a backward pass has reached count."""
        refuse_fused(self, "check_nan_grad")
        return gradients.check(self.parameters, "check_nan_grad")[1]

    def check_inf_or_nan_grad(self):
        """Whether a gradient has an infinite element or a NaN. Only parameters that a backward pass has reached count.
        """
        refuse_fused(self, "check_inf_or_nan_grad")
        return any(gradients.check(self.parameters, "check_inf_or_nan_grad"))

    # ---- states

    def get_states(self):
        """By name of the parameter, a SolverState: `pstate`, its states by name, and `t`, the number of its updates.
        The tensors are the solver's own; copy() them to keep their values."""
        return {name: SolverState(dict(zip(state_names(self), (<SolverParameter>p).states, strict=True)),
                                  (<SolverParameter>p).t) for name, p in self.parameters.items()}

    def set_states(self, states):
        """Copy the states from what get_states() returns, or from pairs (pstate, t). Raises RuntimeError if the solver
        has no parameters, ValueError or TypeError unless there is a state of the same shape and dtype for each
        parameter and no other; then nothing has changed."""
        cdef SolverParameter p
        cdef Tensor own, new
        cdef Array a
        if not self.parameters:
            raise RuntimeError("set_states: this solver has no parameters; call set_parameters() first")
        refuse_trace("set_states()")
        refuse_half(self, "set_states")
        checked = checked_states(state_names(self), self.get_states(), states)
        for pstate, _ in checked.values():
            for given in pstate.values(): data_of(<Tensor>given)
        for name, (pstate, t) in checked.items():
            p = self.parameters[name]
            for own, new in zip(p.states, pstate.values(), strict=True):
                a = array_of(new)
                if a.data != own.buffer.data: gather(own.buffer.data, &a, 0, own.layout.size)
            p.t = t

    def state_dict(self):
        """As in PyTorch: "state", which by name of the parameter has its states and "step", the number of its updates,
        and "param_groups", with the names of the parameters, rates and decays; also "solver", the name of the class,
        "settings", the other arguments of the constructor, "lr", and "base", the rates and decays of a parameter
        without a group. The tensors are the solver's own."""
        refuse_half(self, "state_dict")
        return files.state_dict(self)

    def load_state_dict(self, state_dict):
        """Set states, numbers of updates, rates and decays from what state_dict() returned, so that the next updates
        are those of the saved solver, bit for bit. A fused weight_decay() that waits for an update is dropped. Raises
        ValueError unless class, names, groups and all settings that cannot be assigned (betas, eps, momentum, ...) are
        those of the solver, else as set_states does; then nothing has changed."""
        refuse_trace("load_state_dict() of a solver")
        refuse_half(self, "load_state_dict")
        files.load_state_dict(self, state_dict)

    def save_states(self, path):
        """Write what state_dict() returns to a .safetensors or .npz file. Raises ValueError for another suffix."""
        files.save(self, path)

    def load_states(self, path):
        """load_state_dict() from a file of save_states(); raises as that does."""
        files.load(self, path)

    def _saved(self):
        """What can be assigned, and the settings, for files.py."""
        return {"lr": self.lr, "settings": dict(self.given), "base": dict(zip(NUMBERS, self.base.numbers())),
                "groups": [dict(zip(NUMBERS, (<Group>g).numbers())) for g in self.groups]}

    def _assign(self, double lr, base, list groups, dict given):
        """Set what _saved() returned, checked."""
        self.lr, self.given = lr, given
        self.base.assign(base)
        for group, numbers in zip(self.groups, groups, strict=True): (<Group>group).assign(numbers)
        self.set_pending(-1)

    # ---- pickling

    def __reduce__(self):
        return __newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        cdef SolverParameter p
        cdef dict parameters = {}
        cdef list groups = [self.base, *[g for g in self.groups if g is not self.base]]
        refuse_half(self, "a pickle")
        for name, p in self.parameters.items():
            parameters[name] = p.tensor, dict(zip(state_names(self), p.states, strict=True)), p.t
        return {
            "settings": {type(self).settings[0]: self.lr, **self.given},
            "parameters": parameters,
            "groups": [(<Group>h).numbers() for h in groups],
            "group_of": {name: groups.index((<SolverParameter>q).group) for name, q in self.parameters.items()},
            "uses_base": self.base in self.groups,
            "pending": self.pending,
            "attributes": dict(getattr(self, "__dict__", ())),          # a subclass written in Python has them
        }

    def __setstate__(self, state):
        """Set the parameters of a pickle, with copies of its states. Raises TypeError or ValueError if they do not
        fit. Pickles of version 0.1 have no groups."""
        settings = dict(state["settings"])
        wanted = type(self).settings
        if settings.keys() != set(wanted):
            raise ValueError(f"a pickled {type(self).__name__} must have the settings {', '.join(wanted)}; this one "
                             f"has {', '.join(map(str, settings))}")
        twin = type(self).__new__(type(self))
        Solver._start(twin, settings.pop(wanted[0]), settings)
        Solver._restore(twin, state)
        for name, value in state["attributes"].items(): setattr(self, name, value)
        self._take(twin)

    def _restore(self, state):
        """Set groups, parameters and states from a pickle."""
        cdef Group g
        cdef list groups = []
        for numbers in state.get("groups", ()):     # the first is the base
            g = self.base.copy()
            g.assign(numbers)
            groups.append(g)
        if groups: self.base = groups[0]
        self.groups = ([self.base] if state.get("uses_base", True) else []) + groups[1:]
        groups = groups or [self.base]
        self.set_pending(state.get("pending", -1))
        if not state["parameters"]: return
        made = {}
        for name, (tensor, _, _) in state["parameters"].items():
            g = groups[state.get("group_of", {}).get(name, 0)]
            self.add_to("a pickled solver", made, {name: tensor}, g, False, False)
        check_distinct("a pickled solver", made)
        self.parameters = made
        self.set_states({name: (states, t) for name, (_, states, t) in state["parameters"].items()})

    def _take(self, Solver twin):
        self.the_rule, self.lr, self.given = twin.the_rule, twin.lr, twin.given
        self.base, self.groups, self.fuses = twin.base, twin.groups, twin.fuses
        self.pending, self.parameters = twin.pending, twin.parameters
        changed()


cdef tuple state_names(Solver s):
    return s.the_rule.states if s.the_rule is not None else ()
