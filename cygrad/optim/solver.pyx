"""Solvers, which other libraries call optimizers. An update rule is one fused in-place kernel over (parameter,
gradient, states), and a solver is a class of a few lines. The states are allocated when the parameters are set, so an
update allocates nothing, except workspace for a row-sparse gradient.

Names, defaults and rules follow nnabla. In Adam, eps is added after the bias correction is factored out."""

cimport cython

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from copyreg import __newobj__

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.gradient_slice cimport GradientSlice, check_range
from cygrad.core.graph.tensor cimport Leaf, Tensor, array_of, data_of, is_variable, node_of
from cygrad.core.store.buffer cimport OPTIMIZER, READONLY, WORKSPACE, Buffer, allocate, drop
from cygrad.core.thread_state cimport flags
from cygrad.core.source cimport refuse_capture
from cygrad.core.graph.construct cimport fresh
from cygrad.kernels cimport update
from cygrad.kernels.array cimport Array
from cygrad.kernels.driver cimport gather
from cygrad.kernels.grouping cimport Groups, group, group_bytes
from cygrad.memory.log cimport begin_update, end_update

from cygrad.core.dtypes import DTYPES

from cygrad.core.answers import SOLVERS, attributes, of_solver
from cygrad.core.errors import described
from cygrad.core.late_bound import bind_methods


cdef class Parameter:
    """A parameter of a solver: the variable, its states, and the number of updates."""
    cdef Tensor tensor
    cdef list states
    cdef uint64_t t


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Solver:
    """The base class of solvers (optimizers). `states` lists the names of the states that a solver stores for each
    parameter; a state has the parameter's shape and dtype and is zeros at first. `step` is the update rule, `rate` the
    solver's name for the learning rate, and `settings` lists the arguments of the constructor. `row_sparse` says
    that a gradient may be a GradientSlice. A pickled solver contains its parameters, their states and their numbers of
    updates. If a model and its solver are in one pickle, they share the same tensors after loading."""
    cdef readonly double lr
    cdef dict parameters

    states = ()
    rate = "lr"
    settings = ("lr",)
    row_sparse = False

    def __cinit__(self, *given, **named):
        self.parameters = {}
        name = type(self).__name__
        ours = type(self).__module__ == __name__    # (a subclass elsewhere may take more)
        answer = of_solver(name, given, named, (*dict.fromkeys((self.rate, *self.settings)),) if ours else None)
        if answer is not None: raise TypeError(answer)
        if self.rate != "lr" and "lr" in named and (given or self.rate in named):
            raise TypeError(f"{name}: lr is another name for {self.rate}; give one of them")

    def set_parameters(self, parameters):
        """Replace the parameters with `parameters`: a dict of names and variables, an iterable of variables, which are
        named by position, or one variable. Raises TypeError for other arguments, ValueError for a tensor that is not a
        variable, is read-only, is not contiguous or occurs twice; then nothing has changed."""
        cdef Tensor x
        cdef Parameter p
        if isinstance(parameters, Tensor): parameters = [parameters]
        if not hasattr(parameters, "__iter__"):
            raise TypeError(f"set_parameters takes a dict of names and variables, or a list of variables, got "
                            f"{type(parameters).__name__}")
        if not hasattr(parameters, "items"):
            parameters = {str(i): v for i, v in enumerate(parameters)}
        names = {}
        for name, v in parameters.items():
            if not isinstance(v, Tensor):
                raise TypeError(f"set_parameters: {name!r} must be a tensor, got {type(v).__name__}")
            x = <Tensor>v
            if not is_variable(x):
                raise ValueError(f"set_parameters: {name!r}, of shape {x.shape}, is not a variable; call "
                                 f"attach_grad() or requires_grad_() on it first")
            if x.buffer.flags & READONLY:
                raise ValueError(f"set_parameters: {name!r}, of shape {x.shape}, has read-only memory and cannot be "
                                 f"updated; use a copy()")
            if not x.layout.dense:
                raise ValueError(f"set_parameters: {name!r}, of shape {x.shape}, is not contiguous; use a copy()")
            if id(v) in names:
                raise ValueError(f"set_parameters: {name!r} is the same tensor as {names[id(v)]!r}; a tensor is "
                                 f"updated once, so list it once")
            names[id(v)] = name
        made = {}
        for name, v in parameters.items():
            p = Parameter.__new__(Parameter)
            p.tensor = <Tensor>v
            p.states = [zeros(p.tensor) for _ in self.states]
            made[name] = p
        self.parameters = made

    def get_parameters(self):
        """The parameters, as a dict by name."""
        return {name: (<Parameter>p).tensor for name, p in self.parameters.items()}

    def zero_grad(self):
        """Set every parameter's gradient to zeros. update() skips a parameter until a backward pass has
        reached it again."""
        for p in self.parameters.values(): (<Parameter>p).tensor.zero_grad()

    def learning_rate(self):
        """The learning rate."""
        return self.lr

    def set_learning_rate(self, lr):
        """Set the learning rate from the next update on. Raises TypeError unless it is a number, ValueError unless it
        is finite and at least 0."""
        self.lr = not_negative("lr", lr)

    def update(self):
        """Apply the update rule to every parameter that a backward pass has reached since the last update or
        zero_grad(). Raises RuntimeError if there are no parameters or if a gradient is incomplete; then nothing has
        changed."""
        cdef Parameter p
        cdef Tensor w, g
        cdef GradientSlice rows
        cdef size_t workspace_bytes = 0
        cdef Buffer* workspace = NULL
        cdef Leaf leaf
        cdef list ready = []
        if flags().capture != NULL: refuse_capture("an update of a solver")
        if not self.parameters:
            raise RuntimeError("update: this solver has no parameters; call set_parameters() first")
        for name, p in self.parameters.items():     # everything that can fail runs before the first write
            w = p.tensor
            if not is_variable(w): continue
            leaf = <Leaf>node_of(w)
            if leaf.incomplete:
                raise RuntimeError(
                    f"update: the gradient of {name!r} is incomplete: a backward pass failed, or the gradient was "
                    f"zeroed or assigned by a hook, after some of its contributions had been added; call zero_grad() "
                    f"and run the backward pass again, or assign a gradient")
            if not leaf.fresh or (leaf.grad is None and leaf.rows is None): continue
            if leaf.rows is not None:
                if not self.row_sparse:
                    raise TypeError(f"update: the gradient of {name!r} is a GradientSlice, and {type(self).__name__} "
                                    f"takes only tensors; assign its to_dense(), or use embedding() with sparse=False "
                                    f"and attach_grad() without stype")
                rows = <GradientSlice>leaf.rows
                data_of(w)
                check_range(rows, w.layout.shape[0])
                if not rows.values.layout.dense or not rows.indices.layout.dense: rows = rows.copy()
                workspace_bytes = max(workspace_bytes, group_bytes(rows.indices.layout.size))
                ready.append((p, rows))
                continue
            g = leaf.grad
            if not g.layout.dense: g = g.copy()
            data_of(w)
            data_of(g)                              # (allocates zeros that have no memory yet)
            ready.append((p, g))
        if workspace_bytes: workspace = allocate(workspace_bytes, WORKSPACE)
        begin_update()
        try:
            for p, gradient in ready:
                p.t += 1
                if type(gradient) is GradientSlice: self.step_rows(p, <GradientSlice>gradient, workspace.data)
                else: self.step(p, data_of(p.tensor), data_of(<Tensor>gradient))
                p.tensor.buffer.version += 1
                (<Leaf>node_of(p.tensor)).fresh = False
        finally:
            end_update()
            if workspace != NULL: drop(workspace)

    cdef int step(self, Parameter p, char* w, const char* g) except -1:
        raise NotImplementedError(f"{type(self).__name__} has no step; a solver implements step in Cython")

    cdef int step_rows(self, Parameter p, GradientSlice g, char* workspace) except -1:
        """Update the rows of a row-sparse gradient; solvers with `row_sparse` have it. `workspace` is for group()."""
        raise NotImplementedError(f"{type(self).__name__} has no step_rows")

    def __reduce__(self):
        return __newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        cdef Parameter p
        cdef dict parameters = {}
        for name, p in self.parameters.items():
            parameters[name] = p.tensor, dict(zip(self.states, p.states, strict=True)), p.t
        return {
            "settings": {self.rate if name == "lr" else name: getattr(self, name) for name in self.settings},
            "parameters": parameters,
            "attributes": dict(getattr(self, "__dict__", ())),          # of a subclass written in Python
        }

    def __setstate__(self, state):
        """Set the parameters of a pickle, with copies of its states. Raises TypeError or ValueError if they do not
        fit."""
        cdef Parameter p
        cdef dict made
        Solver.set_parameters(self, {name: tensor for name, (tensor, _, _) in state["parameters"].items()})
        made, self.parameters = self.parameters, {}
        for name, (_, states, t) in state["parameters"].items():
            p = made[name]
            if states.keys() != set(self.states):
                raise ValueError(f"a pickled {type(self).__name__} must have {', '.join(self.states) or 'no states'} "
                                 f"for each parameter; for {name!r} this one has {', '.join(states) or 'none'}")
            for own, key in zip(p.states, self.states, strict=True): copy_state(name, key, own, states[key])
            p.t = t
        self._take_settings(**state["settings"])
        for name, value in state["attributes"].items(): setattr(self, name, value)
        self.parameters = made

    def _take_settings(self, lr):
        """The arguments of a solver, checked."""
        self.lr = not_negative("lr", lr)


cdef int copy_state(name, key, Tensor own, given) except -1:
    """Copy a state from a pickle."""
    cdef Array a
    if not isinstance(given, Tensor) or given.shape != own.shape or given.dtype != DTYPES[own.dtype]:
        got = f"a {given.dtype} tensor of shape {given.shape}" if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"the state {key} of the pickled parameter {name!r} must be a {DTYPES[own.dtype]} tensor of "
                         f"shape {own.shape} like the parameter, got {got}")
    a = array_of(<Tensor>given)
    gather(own.buffer.data, &a, 0, own.layout.size)
    return 0


cdef Tensor zeros(Tensor like):
    cdef Tensor t = fresh(lay.dense_like(like.layout), like.dtype, OPTIMIZER)
    memset(t.buffer.data, 0, t.buffer.nbytes)
    return t


cdef double number(str name, value) except? -1:
    try:
        return value
    except TypeError:
        raise TypeError(f"{name} must be a number, got {described(value)}") from None


cdef double not_negative(str name, value) except? -1:
    if not 0 <= number(name, value) < INFINITY:
        raise ValueError(f"{name} must be at least 0 and finite, got {described(value)}")
    return value


cdef double positive(str name, value) except? -1:
    if not 0 < number(name, value) < INFINITY:
        raise ValueError(f"{name} must be greater than 0 and finite, got {described(value)}")
    return value


cdef double fraction(str name, value) except? -1:
    if not 0 <= number(name, value) < 1:
        raise ValueError(f"{name} must be at least 0 and less than 1, got {described(value)}")
    return value


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Sgd(Solver):
    """w -= lr g

    With a GradientSlice, only its rows are read and written. Rows of equal indices are summed first."""

    row_sparse = True

    @cython.embedsignature.format("c")
    def __init__(self, lr=1e-3):
        self._take_settings(lr)

    cdef int step(self, Parameter p, char* w, const char* g) except -1:
        update.sgd(p.tensor.dtype, p.tensor.layout.size, w, g, self.lr)
        return 0

    cdef int step_rows(self, Parameter p, GradientSlice g, char* workspace) except -1:
        cdef Array w = array_of(p.tensor), index = array_of(g.indices), values = array_of(g.values)
        cdef Py_ssize_t n = index.layout.size
        cdef Groups groups
        if not n: return 0
        group(&groups, <const int64_t*>index.data, n, w.layout.shape[0], workspace)
        update.sgd_rows(w.dtype, &groups, values.layout.size // n, w.data, values.data, self.lr)
        return 0


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Adam(Solver):
    """m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
    w -= alpha sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps)        (Kingma and Ba 2015)

    lr is another name for alpha."""
    cdef readonly double beta1, beta2, eps

    states = ("m", "v")
    rate = "alpha"
    settings = ("lr", "beta1", "beta2", "eps")

    @cython.embedsignature.format("c")
    def __init__(self, alpha=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, lr=None):
        self._take_settings(alpha if lr is None else not_negative("lr", lr), beta1, beta2, eps)

    def _take_settings(self, alpha, beta1, beta2, eps):
        """The arguments of a solver, checked."""
        self.lr = not_negative("alpha", alpha)
        self.beta1, self.beta2 = fraction("beta1", beta1), fraction("beta2", beta2)
        self.eps = positive("eps", eps)

    cdef int step(self, Parameter p, char* w, const char* g) except -1:
        cdef double rate = self.lr * sqrt(1 - self.beta2 ** p.t) / (1 - self.beta1 ** p.t)
        cdef Tensor m = <Tensor>p.states[0], v = <Tensor>p.states[1]
        update.adam(p.tensor.dtype, p.tensor.layout.size, w, g, data_of(m), data_of(v), rate, self.beta1, self.beta2,
                    self.eps)
        return 0


bind_methods(Solver, **attributes("solver", SOLVERS))
