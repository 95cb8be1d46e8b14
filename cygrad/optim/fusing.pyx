"""Updates that are fused into backward: the gradient of a parameter goes into its update as soon as it is complete, and
its memory is free before the next one is computed. A contribution that a kernel can multiply and add needs no memory:
a rule that is linear in the gradient (kernels/update.pxd) lets the kernel add to the parameter or to a state. Other
rules without norms take a large gradient by ranges of rows."""

cimport cython
from libc.string cimport memset

from cygrad.core.backward.consumer cimport (
    TAKES_PRODUCT, TAKES_ROWS, TAKES_SUMS, TAKES_WHOLE, Consumer, Taking,
)
from cygrad.core.graph.construct cimport copy_plain
from cygrad.core.graph.effects cimport use_solver
from cygrad.core.graph.freed cimport FreedTensor
from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.graph.steps cimport READS, UPDATES, Arrays, elements_in, put, put_array
from cygrad.core.graph.steps cimport Kernel as Call
from cygrad.core.graph.steps cimport call as call_kernel
from cygrad.core.graph.tensor cimport Leaf, Tensor, data_of, is_variable, node_of
from cygrad.core.graph.trace cimport traces
from cygrad.core.store.buffer cimport WORKSPACE, Buffer, allocate, drop
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Array, itemsize
from cygrad.kernels.grouping cimport group_bytes
from cygrad.kernels.update cimport Kernel, Update, is_linear, kernel, run, run_after, run_before
from cygrad.ops.rules cimport Rule
from cygrad.optim.gradients cimport decayed, rows_for, run_by_rows
from cygrad.optim.parameters cimport MAX_SETTINGS, SolverParameter

from contextlib import contextmanager
from weakref import ref

from cygrad.core.backward.deposit import Collected, open_collected
from cygrad.core.backward.hooks import is_consumed, register
from cygrad.core.graph.symbol import place_of


def refuse_fused(solver, str what):
    """Raise RuntimeError for what needs gradients in .grad, or other parameters, while the updates of a solver are
    fused. (Other libraries' solvers have none.)"""
    if getattr(solver, "fused", None) is None: return
    raise RuntimeError(f"{what}: the updates of this solver are fused into backward, so gradients are not stored; "
                       f"close() what fuse_into_backward() returned first")


def refuse_half(solver, str what):
    """Raise RuntimeError for what would change or save half an update of a solver."""
    if solver.fused is not None: solver.fused.refuse_half(what)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class FusedUpdate(Consumer):
    """Takes the gradients of one parameter. What it does with memory are calls of kernels (core/graph/steps), so a
    captured step repeats them; they read the settings of the solver when they run. It must not hold the parameter,
    which holds it."""
    cdef object solver          # a weak reference
    cdef Rule rule
    cdef Update u               # the update that runs
    cdef bint running

    cdef object fused(self):
        """The FusedUpdates that are on, or None."""
        solver = self.solver()
        return None if solver is None else solver.fused

    cdef SolverParameter parameter(self):
        """The parameter, or None if the solver is gone."""
        solver = self.solver()
        return None if solver is None else solver._parameter(self.name)

    # ---- what backward asks and calls

    cdef bint fits(self, Leaf leaf) except -1:
        cdef SolverParameter p = self.parameter()
        return p is not None and node_of(p.tensor) is leaf

    cdef str obstacle(self):
        fused = self.fused()
        if fused is None or not fused.waits or fused.accumulates: return None
        return "fuse_into_backward: the sums of accumulate() wait for update(); call it before the next pass"

    cdef Taking takes(self) except? TAKES_ROWS:
        cdef const Kernel* k = self.rule.kernel
        fused = self.fused()
        if fused is None: return TAKES_WHOLE
        if is_linear(k) and not k.early:
            return TAKES_SUMS if self.begun or not self.sums_in_grad(fused) else TAKES_WHOLE
        if fused.accumulates or k.local_rate != NULL: return TAKES_WHOLE
        return TAKES_PRODUCT if is_linear(k) else TAKES_ROWS

    cdef bint sums_in_grad(self, fused) except -1:
        """Whether the sum of several passes has begun in .grad, for instance with rows."""
        cdef Leaf leaf = <Leaf>node_of(self.parameter().tensor)
        return fused.accumulates and leaf.fresh and (leaf.grad is not None or leaf.rows is not None)

    cdef Buffer* target(self, Array* out) except? NULL:
        cdef SolverParameter p = self.parameter()
        cdef Tensor x = p.tensor if self.rule.kernel.target < 0 else p.states[self.rule.kernel.target]
        out[0] = elements_in(x)
        return x.buffer

    cdef int begin(self, bint by_rows) except -1:
        cdef SolverParameter p = self.parameter()
        cdef Arrays a
        if self.begun: return 0
        a.n = 0
        if self.rule.kernel.early or by_rows: put(&a, p.tensor, UPDATES)
        if self.rule.kernel.target >= 0 and not by_rows: put(&a, <Tensor>p.states[self.rule.kernel.target], UPDATES)
        self.call(start, &a, a.n)
        self.begun = True
        return 0

    cdef int update_rows(self, const Array* rows, Py_ssize_t first) except -1:
        cdef Update u = self.u
        cdef Py_ssize_t offset = rows.layout.size // rows.layout.shape[0] * first * itemsize(u.dtype)
        u.n, u.g = rows.layout.size, rows.data
        u.w += offset
        for i in range(self.rule.n_states): u.s[i] += offset
        run(&u)
        return 0

    cdef bint take(self, gradient) except -1:
        cdef bint sparse = type(gradient) is GradientSlice
        cdef Leaf leaf
        fused = self.fused()
        if fused is None:                           # (closed, or the solver is gone)
            self.begun = self.running = False
            return False
        if gradient is not None:
            leaf = <Leaf>node_of(self.parameter().tensor)
            if sparse and (self.begun or (leaf.grad is not None and not leaf.sparse)):
                gradient, sparse = gradient.to_dense(), False
            if self.begun or (fused.accumulates and not sparse and self.takes() == TAKES_SUMS): self.add(gradient)
            elif fused.accumulates: return False
            else: return self.update(gradient, fused.rate)
        if not fused.accumulates: self.end()
        return True

    cdef int fail(self) except -1:
        return self.end()

    cdef int passed(self) except -1:
        fused = self.fused()
        if fused is not None: fused.passed()
        return 0

    cdef bint update(self, gradient, double rate) except -1:
        """Update the parameter by its whole gradient."""
        cdef SolverParameter p = self.parameter()
        cdef GradientSlice rows
        cdef size_t nbytes = 0
        cdef Arrays a
        a.n = 0
        put(&a, p.tensor, UPDATES)
        if type(gradient) is GradientSlice:
            solver = self.solver()
            refuses = None if solver.row_sparse else type(solver).__name__
            rows = rows_for(<GradientSlice>gradient, p.tensor, self.name, "backward", refuses, &nbytes)
            put(&a, rows.values, READS)
            put(&a, rows.indices, READS)
            self.call(update_by_slice, &a, 1)
            return True
        if rate and self.rule.kernel.local_rate != NULL: gradient = decayed(p, gradient, rate)
        if not (<Tensor>gradient).layout.dense: gradient = copy_plain(<Tensor>gradient)
        put(&a, <Tensor>gradient, READS)
        self.call(update_by_gradient, &a, 1)
        return True

    cdef int add(self, Tensor gradient) except -1:
        """Add a contribution that has memory of its own."""
        cdef Arrays a
        cdef Array target
        cdef Buffer* memory = self.target(&target)
        if not gradient.layout.dense: gradient = copy_plain(gradient)
        self.begin(False)
        a.n = 0
        put_array(&a, target, memory, UPDATES)
        put(&a, gradient, READS)
        return self.call(add_multiple, &a, 1)

    cpdef int end(self) except -1:
        """End the update, if it has begun."""
        cdef SolverParameter p = self.parameter()
        cdef Arrays a
        if not self.begun: return 0
        self.begun = False
        if p is None or type(p.tensor) is FreedTensor:
            self.running = False
            return 0
        a.n = 0
        put(&a, p.tensor, UPDATES)
        return self.call(finish, &a, 1)

    cdef int call(self, Call f, Arrays* a, int writes) except -1:
        if traces(): use_solver(self.solver())
        call_kernel(flags(), "fused update", f, a, writes, NULL, 0, self)
        return 0

    def has_begun(self): return self.begun
    def is_in_pass(self): return self.begun and self.owner != 0

    # ---- what kernels call

    cdef int point(self, SolverParameter p) except -1:
        """Point to the memory of now."""
        self.u.w = data_of(p.tensor)
        for i in range(self.rule.n_states): self.u.s[i] = data_of(<Tensor>p.states[i])
        return 0

    cdef int start(self, bint in_parts) except -1:
        """Begin an update, with the settings of now. in_parts: contributions will be added to the target."""
        cdef Update* u = &self.u
        cdef SolverParameter p = self.parameter()
        cdef double settings[MAX_SETTINGS]
        if self.running: self.finish(True)          # (a run of a program failed)
        memset(u, 0, sizeof(Update))
        u.kernel, u.dtype, u.n = self.rule.kernel, p.tensor.dtype, p.tensor.layout.size
        self.point(p)
        fused = self.fused()
        fused.used = True
        for i in range(MAX_SETTINGS): settings[i] = p.group.value[i]
        if u.kernel.local_rate == NULL: settings[p.group.decay_at] += <double>fused.rate * p.group.wd_mult
        p.t += 1
        self.running = True
        self.rule.coefficients(settings, p.group.lr, <double>p.t, u.c)
        self.multiplier = u.kernel.sign * u.c[0]
        if in_parts and is_linear(u.kernel): run_before(u)
        return 0

    cdef int finish(self, bint in_parts) except -1:
        cdef SolverParameter p = self.parameter()
        if not self.running: return 0
        self.running = False
        if p is None: return 0
        self.point(p)
        if in_parts and is_linear(self.rule.kernel): run_after(&self.u)
        if is_variable(p.tensor): (<Leaf>node_of(p.tensor)).fresh = False
        return 0


cdef int start(Array* a, const void* parameters, object held) except -1:
    """A kernel: what precedes the contributions."""
    return (<FusedUpdate>held).start(True)


cdef int finish(Array* a, const void* parameters, object held) except -1:
    """A kernel: what follows them."""
    return (<FusedUpdate>held).finish(True)


cdef int add_multiple(Array* a, const void* parameters, object held) except -1:
    """A kernel: a[0] += multiplier a[1]"""
    cdef Update u
    memset(&u, 0, sizeof(u))
    u.kernel, u.dtype, u.n, u.w, u.g = kernel("decay"), a[0].dtype, a[0].layout.size, a[0].data, a[1].data
    u.c[0] = (<FusedUpdate>held).multiplier
    run(&u)
    return 0


cdef int update_by_gradient(Array* a, const void* parameters, object held) except -1:
    """A kernel: update the parameter by the gradient a[1]."""
    cdef FusedUpdate f = held
    f.start(False)
    f.u.g = a[1].data
    run(&f.u)
    return f.finish(False)


cdef int update_by_slice(Array* a, const void* parameters, object held) except -1:
    """A kernel: update the parameter a[0] by the rows a[1] of its gradient, whose indices are a[2]."""
    cdef FusedUpdate f = held
    cdef Py_ssize_t n = a[2].layout.size
    cdef Buffer* workspace = allocate(group_bytes(n), WORKSPACE)
    try:
        f.start(False)
        run_by_rows(&f.u, a, workspace.data)
        return f.finish(False)
    finally:
        drop(workspace)


cdef FusedUpdate fused_update(solver, str name, Rule rule):
    cdef FusedUpdate update = FusedUpdate.__new__(FusedUpdate)
    update.name, update.solver, update.rule = name, ref(solver), rule
    return update


cdef bint has_norms(Rule rule) noexcept:
    return rule.kernel.local_rate != NULL


class FusedUpdates:
    """What Solver.fuse_into_backward() returns. close() ends it, and so does the end of a `with` block; a handle that
    is not kept leaves it on. `rate` is the decay that weight_decay() has set for the next backward pass."""

    def __init__(self, solver, parameters, rule):
        nodes = {name: place_of(x)[0] for name, x in parameters.items() if is_variable(x)}
        for name, node in nodes.items():
            if not is_consumed(node): continue
            raise RuntimeError(f"fuse_into_backward: another solver has fused the updates of {name!r}; close() what "
                               f"its fuse_into_backward() returned first")
        self._solver, self.rate, self.accumulates = ref(solver), 0.0, False
        self.waits = self.used = False              # sums wait for update(); an update has used the decay
        self._collected = None                      # which gradients accumulate() has written to .grad
        self._updates = [fused_update(solver, name, rule) for name in nodes]
        self._nodes = [*nodes.values()]
        self._handles = [register(node, "consumed", update)
                         for node, update in zip(self._nodes, self._updates, strict=True)]
        if has_norms(rule): self._handles += self._eager()

    def _eager(self):
        """Handles that let eager code run nets meanwhile."""
        return [register(node, "eager", None) for node in self._nodes]

    @contextmanager
    def accumulate(self):
        """A scope in which backward passes only sum: solver.update() after it updates, once. Rules that move a
        parameter by its state alone, those of Momentum and SgdW, sum into the state; for others the sums are in .grad,
        for each grad_req. A pass or a scope that fails ends what has begun, with what has arrived. Until update(), what
        would change or save half an update raises RuntimeError, and so does another such scope, and a closed handle."""
        self._check_open()
        if self.accumulates:
            raise RuntimeError("accumulate: these updates accumulate already; leave the scope around this one first")
        handles, self._collected = self._eager(), self._collected or Collected(True)
        before = open_collected(self._collected)
        self.accumulates = True
        try: yield self
        except BaseException as e:
            moved = [update.name for update in self._updates if update.has_begun()]
            for update in self._updates: update.end()
            if moved: e.add_note(f"accumulate: the updates have ended with what had arrived; they moved "
                                 f"{', '.join(moved)}")
            raise
        finally:
            self.accumulates, self.waits = False, True
            open_collected(before)
            for handle in handles: handle.remove()

    def end(self, what):
        """End the updates that accumulate() has begun, and return whether there was such a scope. Raises RuntimeError,
        in the name of `what`, within a pass."""
        for update in self._updates:
            if not update.is_in_pass(): continue
            raise RuntimeError(f"{what}: a backward pass has begun the update of {update.name!r}; call it after the "
                               f"pass")
        for update in self._updates: update.end()
        waits, self.waits, self._collected = self.waits, False, None
        return waits

    def drop_sums(self):
        """zero_grad(): forget the sums in .grad."""
        self.refuse_half("zero_grad")
        self.waits, self._collected = False, None

    def passed(self):
        """A pass has ended: the decay that it used is over."""
        solver = self._solver()
        if not self.used or self.accumulates or solver is None: return
        self.used = False
        solver._drop_decay()

    def refuse_half(self, what):
        """Raise RuntimeError if an update has begun."""
        for update in self._updates:
            if not update.has_begun(): continue
            raise RuntimeError(f"{what}: the update of {update.name!r} has begun, by accumulate() or a pass; "
                               f"call update() first")

    def close(self):
        """Let gradients go to .grad again, after the updates that accumulate() has begun. A second call does nothing.
        """
        self.end("close")
        for handle in self._handles: handle.remove()
        self._handles, self._updates, self._nodes = [], [], []
        solver = self._solver()
        if solver is not None and solver.fused is self: solver.fused = None

    def _check_open(self):
        if self._handles: return
        raise RuntimeError("fuse_into_backward: these updates are closed; call fuse_into_backward() again")

    def __enter__(self):
        self._check_open()
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        self.close()
