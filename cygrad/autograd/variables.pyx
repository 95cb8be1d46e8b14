"""Variables, which are tensors with a stored gradient, and the Tensor attributes that describe the graph."""

from cpython.object cimport PyObject
from cygrad.core.graph.around cimport changed
from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport share_memory
from cygrad.core.graph.extras cimport accumulators_of, add_accumulator, extras_of, give_extras
from cygrad.core.graph.gradient_slice cimport GradientSlice, check_rows, empty_slice, put_rows
from cygrad.core.graph.lifts cimport detached
from cygrad.core.graph.tensor cimport (
    ADD, EXTRAS, NULL_REQ, WRITE, Leaf, PyObject_GC_Track, Tensor, current, ensure_tensor, gc_track, is_result,
    is_tracked, node_of, put_grad,
)
from cygrad.core.store.buffer cimport EXTERNAL, MAX_ROLES, OTHER, READONLY
from cygrad.core.thread_state cimport flags
from cygrad.core.backward.deposit cimport clear
from cygrad.core.graph.running cimport any_runs, runs
from cygrad.core.graph.effects cimport (
    ASSIGNED_NONE, MARKED, REMOVED, UNMARKED, ZEROED, has_own_role, leaf_step, refuse_role,
)
from cygrad.core.graph.undo cimport track
from cygrad.core.graph.trace cimport (
    is_frozen, lists_calls, raise_version, refuse_call, refuse_trace, seen_leaf, touch_leaf, traces, version_of,
)
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.graph.construct cimport copy_plain, release_as_zeros, view_of, zeros_like
from cygrad.core.graph.unreadable cimport check_readable
from cygrad.core.graph.waiting cimport zeros_of
from cygrad.kernels.array cimport has_gradients

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described, type_name
from cygrad.core.late_bound import bind_methods

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef dict REQUESTS = {"null": NULL_REQ, "write": WRITE, "add": ADD}
REQUEST_NAMES = ("null", "write", "add")


cdef int read_request(grad_req) except -1:
    if not isinstance(grad_req, str) or grad_req not in REQUESTS:
        raise ValueError(f"grad_req must be \"write\", \"add\" or \"null\", got {described(grad_req)}")
    return REQUESTS[grad_req]


cdef bint read_stype(Tensor x, stype) except -1:
    """Whether attach_grad() was asked for a row-sparse gradient."""
    if stype is None or stype == "default": return False
    if stype != "row_sparse":
        raise ValueError(f"attach_grad: stype must be \"default\" or \"row_sparse\", got {described(stype)}")
    if is_result(x):
        raise ValueError(f"attach_grad: this result of {x._node.name()}, of shape {x.shape}, cannot keep a row-sparse "
                         f"gradient; only a variable can")
    check_readable(x)                               # (the number of rows must be known)
    if x.layout.ndim == 0: raise ValueError("attach_grad: a 0-d tensor has no rows, so stype cannot be \"row_sparse\"")
    return True


cdef Leaf leaf_of(Tensor x):
    """The accumulator of the variable `x`, or of an intermediate whose gradient is retained; else None. During a trace
    it is for reading; touch_leaf() returns the one to change."""
    cdef Leaf leaf
    current(x)
    if x._node is None: return None
    if x._node.op is None: return seen_leaf(<Leaf>x._node)
    for _, leaf in accumulators_of(x._node):        # (several tensors can share a graph position)
        if leaf.tensor == <void*>x: return seen_leaf(leaf)
    return None


cdef Leaf new_leaf(Tensor x):
    cdef Leaf leaf = Leaf.__new__(Leaf)
    PyObject_GC_Track(<PyObject*>leaf)
    leaf.layout = lay.dense_like(x.layout)
    leaf.n_out = 1
    leaf.dtype = x.dtype
    leaf.tensor = <void*>x
    return leaf


cdef int keep_gradient(Tensor x, int req) except -1:
    """Retain the gradient of an intermediate, or stop retaining it ("null"). The graph does not change."""
    cdef Leaf leaf = leaf_of(x)
    if leaf is None:
        if req == NULL_REQ: return 0
        leaf = new_leaf(x)
        add_accumulator(x._node, x._output_nr, leaf)
    leaf.req = req
    if req == NULL_REQ:
        extras_of(x._node).kept = [entry for entry in accumulators_of(x._node) if seen_leaf(entry[1]) is not leaf]


cdef int set_leaf(Tensor x, int req) except -1:
    """Make `x` a variable, or change its grad_req. Graphs recorded before still lead to it."""
    cdef Leaf leaf = leaf_of(x)
    cdef bint wanted = req != NULL_REQ, made = leaf is None
    if made or leaf.req != req: refuse_role(x)
    if is_result(x): return keep_gradient(x, req)
    if wanted and not is_tracked(x) and x.buffer.parameters == MAX_ROLES:
        raise ValueError(f"attach_grad: {MAX_ROLES} variables share the memory of this tensor of shape {x.shape}, "
                         f"which is the maximum; make a copy()")
    if made:
        leaf = new_leaf(x)
        gc_track(x)
        x._node = leaf
        x._output_nr = 0
    if has_own_role(x, leaf, made):
        touch_leaf(leaf).req = req
        return track(x, True) if wanted else 0      # (frozen for this thread only: is_frozen())
    if leaf.req != req: changed()
    leaf.req = req
    return track(x, wanted)


cdef int check_floating(Tensor x) except -1:
    if not has_gradients(x.dtype):
        raise TypeError(f"{DTYPES[x.dtype]} tensors cannot have gradients; only float32 and float64 can: cast it with "
                        f"astype first")


def attach_grad(Tensor self, grad_req: Literal["write", "add", "null"] = "write",
                stype: Literal["default", "row_sparse"] | None = None) -> Tensor:
    """Make this tensor a variable: backward stores its gradient in .grad. With grad_req "write" each backward
    overwrites .grad, with "add" it adds to .grad, and with "null" it stores none. .grad has the tensor's shape and
    dtype and is zeros at first. With stype "row_sparse" it is a GradientSlice, at first one without rows, until a dense
    contribution is added: embedding() then makes row-sparse gradients. For a recorded result, backward stores the
    gradient in the same way and still propagates it further. Returns the tensor. Raises TypeError unless its dtype is
    float32 or float64, ValueError for another grad_req or stype, and for "row_sparse" if it has no rows or is a
    recorded result."""
    cdef int req = read_request(grad_req)
    cdef bint sparse = read_stype(self, stype)
    cdef Leaf leaf
    check_floating(self)
    refuse_call("attach_grad()")
    leaf = leaf_of(self)
    zeros = None
    if req != NULL_REQ and not sparse and (leaf is None or leaf.grad is None): zeros = zeros_of(self, OTHER)
    elif req != NULL_REQ and sparse and (leaf is None or leaf.rows is None):
        zeros = empty_slice(self.layout, self.dtype)
    set_leaf(self, req)
    leaf = leaf_of(self)
    if leaf is None: return self
    leaf = touch_leaf(leaf)
    leaf.given = False
    set_sparse(leaf, sparse)
    if type(zeros) is GradientSlice:
        put_rows(leaf, <GradientSlice>zeros)
        leaf.incomplete = False
    elif req == NULL_REQ or zeros is not None:
        put_grad(leaf, zeros)
        leaf.incomplete = False
    leaf.fresh = False
    return self


cdef void set_sparse(Leaf leaf, bint sparse) noexcept:
    """Set the stype of a variable."""
    if leaf.sparse != sparse: changed()
    leaf.sparse = sparse


def retain_grad(Tensor self) -> None:
    """Store the gradient of a recorded result in .grad, which is None until the first backward and then accumulates, as
    in PyTorch. A variable, or a result of attach_grad(), has a .grad already, so nothing changes. Raises RuntimeError
    for a tensor to which no gradient flows."""
    if not is_tracked(self):
        raise RuntimeError(f"retain_grad: no gradient flows to this tensor of shape {self.shape}; compute it from a "
                           f"variable inside record()")
    if not keeps_grad(self): keep_gradient(self, ADD)


def requires_grad_(Tensor self, requires_grad: bool = True) -> Tensor:
    """Make this tensor a variable whose .grad is None until the first backward and then accumulates. With False, it is
    no longer a variable. A recorded result requires its gradient already; for it, False raises RuntimeError: use
    detach(). Raises TypeError unless the dtype is float32 or float64. Returns the tensor."""
    if is_result(self):
        if not requires_grad:
            raise RuntimeError(f"requires_grad_(False): this result of {self._node.name()}, of shape {self.shape}, is "
                               f"part of a graph; use its detach()")
        return self
    if requires_grad:
        check_floating(self)
        set_leaf(self, ADD)
        set_sparse(leaf_of(self), False)
    elif leaf_of(self) is not None:
        set_leaf(self, NULL_REQ)
    return self


def drop_grad(Tensor self) -> Tensor:
    """Make this tensor an ordinary tensor again: .grad becomes None, and operations on it are no longer recorded
    because of it. Returns the tensor."""
    cdef Leaf leaf = leaf_of(self)
    if leaf is not None:
        leaf = touch_leaf(leaf)
        put_grad(leaf, None)
        leaf.incomplete = False
        set_leaf(self, NULL_REQ)
    return self


def stype_of(Tensor self):
    """The stype of a variable's gradient, also of a variable that was frozen: "row_sparse" or "default"."""
    cdef Leaf leaf = leaf_of(self)
    return "row_sparse" if leaf is not None and leaf.sparse else "default"


def take_role(Tensor self, Tensor x):
    """Make the plain tensor `self` a variable as `x` is, of the same shape and perhaps another dtype: with its
    grad_req, also "null", its stype and its hooks, whose handles remove them from both. Where `x` has a .grad it is
    zeros, as in a copy. Raises MemoryError; then `self` may be a variable."""
    cdef Leaf old = leaf_of(x), leaf
    requires_grad_(self)
    leaf = leaf_of(self)
    set_sparse(leaf, old.sparse)
    if old.sparse and old.req != NULL_REQ: put_rows(leaf, empty_slice(self.layout, self.dtype))
    elif old.grad is not None: put_grad(leaf, zeros_of(self, OTHER))
    set_leaf(self, old.req)
    if old.flags & EXTRAS: give_extras(leaf).hooks = extras_of(old).hooks
    changed()


def keeps_grad(Tensor x):
    """Whether backward may write to x.grad: x is a variable, or an intermediate whose gradient is retained."""
    cdef Leaf leaf = leaf_of(x)
    return leaf is not None and leaf.req != NULL_REQ


def mark_variables(variables: Tensor | Sequence[Tensor], gradients: Tensor | Sequence[Tensor],
                   grad_reqs: GradReq | Sequence[GradReq] = "write") -> None:
    """Make tensors variables with the given tensors as their gradients: backward writes into these. `variables` and
    `gradients` are single tensors or lists of equal length, `grad_reqs` is one of "write", "add" and "null", or a list.
    A gradient must have the shape and dtype of its variable. Raises ValueError, TypeError or RuntimeError before
    anything changes."""
    cdef Leaf leaf
    if isinstance(variables, Tensor): variables = [variables]
    if isinstance(gradients, Tensor): gradients = [gradients]
    variables, gradients = list(variables), list(gradients)
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise ValueError(f"mark_variables: {len(variables)} variables, {len(gradients)} gradients and {len(reqs)} "
                         f"grad_reqs; there must be one of each for every variable")
    for i, (v, gradient, req) in enumerate(zip(variables, gradients, reqs)):
        if not isinstance(v, Tensor) or not isinstance(gradient, Tensor):
            raise TypeError(f"mark_variables: variable and gradient {i} must be tensors, got {type_name(v)} and "
                            f"{type_name(gradient)}")
        check_floating(v)
        check_gradient(v, gradient, f"mark_variables: gradient {i}")
        if on_its_way(gradient):
            raise RuntimeError(f"mark_variables: a running backward pass may still read the memory of gradient {i}, "
                               f"which would be overwritten; pass a copy()")
        read_request(req)
    refuse_trace("mark_variables")
    for v, gradient, req in zip(variables, gradients, reqs):
        set_leaf(v, REQUESTS[req])
        leaf = leaf_of(v)
        if leaf is None: continue                   # an intermediate, "null"
        expect_cycle(gradient)
        if leaf.grad is None or leaf.grad.buffer != (<Tensor>gradient).buffer: leaf.incomplete = False
        put_grad(leaf, gradient)
        leaf.given = True


cdef int expect_cycle(Tensor gradient) except -1:
    """Register nodes with the garbage collector if a gradient set by the user has a node: a.grad = b; b.grad = a is a
    cycle."""
    if node_of(gradient) is not None: expect_cycles()


cdef bint on_its_way(Tensor g) noexcept:
    """Whether a running pass may still read the memory of `g` as a gradient."""
    return any_runs() and (g.buffer.gradients or g.buffer.flags & EXTERNAL)


cdef int check_gradient(Tensor x, Tensor g, str what) except -1:
    check_readable(x)
    check_readable(g)
    if not lay.same_shape(x.layout, g.layout) or x.dtype != g.dtype:
        raise ValueError(f"{what} is {DTYPES[g.dtype]} of shape {g.shape}; the tensor is {DTYPES[x.dtype]} of shape "
                         f"{x.shape}, and they must agree")
    if g.buffer.flags & READONLY:
        raise ValueError(f"{what} has read-only memory, but backward writes to it; pass a copy()")
    for d in range(g.layout.ndim):
        if g.layout.strides[d] == 0 and g.layout.shape[d] > 1:
            raise ValueError(f"{what}, of shape {g.shape}, repeats its elements (stride 0 in dimension {d}), but "
                             f"backward writes to each; pass a copy()")
    if share_memory(x, g):
        raise ValueError(f"{what} shares memory with its tensor, which backward would overwrite; pass a copy()")


def zero_grad(Tensor self) -> None:
    """Set .grad to zeros, if there is one, and fresh_grad to False."""
    cdef Leaf leaf = leaf_of(self)
    if leaf is not None: clear_leaf(leaf)


cpdef int clear_leaf(Leaf leaf) except -1:
    """Set the gradient of an accumulator to zeros. If no other reference to it exists, its memory is released."""
    leaf = touch_leaf(leaf)
    if leaf.rows is not None or (leaf.sparse and leaf.grad is not None and not leaf.given):
        put_rows(leaf, empty_slice(leaf.layout, leaf.dtype))
    elif leaf.grad is not None:
        if is_tracked(leaf.grad) or leaf.grad.buffer.flags & READONLY: put_grad(leaf, zeros_like(leaf.grad, OTHER))
        elif leaf.given or Py_REFCNT(<PyObject*>leaf.grad) > 1 or not release_as_zeros(leaf.grad):
            clear(leaf.grad)
            raise_version(flags(), leaf.grad.buffer)
    leaf.fresh, leaf.incomplete = False, runs(leaf.busy)
    return leaf_step(leaf, ZEROED)


def detach(Tensor self) -> Tensor:
    """A tensor on the same memory, with the same version, that is not part of the graph."""
    cdef Tensor y
    if self.lifted: return detached(self, flags().lifting)
    y = view_of(self, lay.incref(self.layout))
    y.detached = True
    return y


def stop_gradient(x: Data) -> Tensor:
    """Return `x` detached from the graph, so that no gradient flows through it."""
    return detach(ensure_tensor(x))


def remove_grad(Tensor self):
    """Set .grad to None and fresh_grad to False."""
    cdef Leaf leaf = leaf_of(self)
    if leaf is None or (leaf.grad is None and leaf.rows is None and not leaf.fresh and not traces()): return
    leaf = touch_leaf(leaf)
    put_grad(leaf, None)
    leaf.given, leaf.fresh, leaf.incomplete = False, False, runs(leaf.busy)
    leaf_step(leaf, REMOVED)


def _grad(Tensor self):
    cdef Leaf leaf = leaf_of(self)
    if leaf is None: return None
    if leaf.grad is not None or lists_calls(): leaf = touch_leaf(leaf)  # (a program reads that of the time it runs)
    return leaf.grad if leaf.rows is None else leaf.rows


def _set_grad(Tensor self, value):
    cdef Leaf leaf = leaf_of(self)
    if value is not None and not isinstance(value, (Tensor, GradientSlice)):
        raise TypeError(f"grad must be a tensor, a GradientSlice or None, got {type_name(value)}")
    if leaf is None:
        if value is None: return
        raise RuntimeError("this tensor is not a variable; call attach_grad() or requires_grad_() first")
    if value is not None and (value is leaf.grad or value is leaf.rows):    # x.grad *= 2 ends with such an assignment
        if not leaf.fresh and not leaf.incomplete and not runs(leaf.busy):  # (an incomplete one stays incomplete)
            set_fresh(leaf, True, "an assignment to .grad")
        return
    leaf = touch_leaf(leaf)
    if value is not None: refuse_call("an assignment to .grad")
    if type(value) is GradientSlice:
        if is_result(self):
            raise TypeError("the gradient of a recorded result cannot be a GradientSlice; assign its to_dense()")
        check_rows(<GradientSlice>value, self.layout, self.dtype, "the assigned")
        put_rows(leaf, <GradientSlice>value)
    elif value is None: put_grad(leaf, None)
    else:
        check_gradient(self, value, "the assigned gradient")
        expect_cycle(value)
        if on_its_way(value) and not is_tracked(value): value = copy_plain(value)   # in a hook: the pass writes .grad
        put_grad(leaf, value)
    leaf.given, leaf.incomplete = False, runs(leaf.busy)        # (a running pass may still add contributions)
    if value is None: leaf_step(leaf, ASSIGNED_NONE)
    elif not leaf.incomplete: set_fresh(leaf, True, "an assignment to .grad")


cdef int set_fresh(Leaf leaf, bint value, str what) except -1:
    """Assign fresh_grad. A program that becomes a net cannot: it refuses `what`."""
    leaf = touch_leaf(leaf)
    refuse_call(what)
    leaf.fresh = value
    return leaf_step(leaf, MARKED if value else UNMARKED)


def _del_grad(Tensor self):
    _set_grad(self, None)


def _requires_grad(Tensor self):
    return is_tracked(self) and not is_frozen(self)


def _set_requires_grad(Tensor self, value):
    requires_grad_(self, value)


def _grad_req(Tensor self):
    cdef Leaf leaf = leaf_of(self)
    return "null" if leaf is None else REQUEST_NAMES[leaf.req]


def _version(Tensor self):
    return version_of(self.buffer)


def _is_leaf(Tensor self):
    return not is_result(self)


def _grad_fn(Tensor self):
    return self._node if is_result(self) else None


def _fresh_grad(Tensor self):
    cdef Leaf leaf = leaf_of(self)
    return leaf is not None and bool(leaf.fresh)


def _set_fresh_grad(Tensor self, bint value):
    cdef Leaf leaf = leaf_of(self)
    if leaf is None: raise RuntimeError("this tensor is not a variable; call attach_grad() or requires_grad_() first")
    set_fresh(leaf, value, "an assignment to fresh_grad")


bind_methods(
    Tensor,
    attach_grad=attach_grad, requires_grad_=requires_grad_, retain_grad=retain_grad, drop_grad=drop_grad,
    zero_grad=zero_grad, detach=detach,
    grad=property(_grad, _set_grad, _del_grad,
                  doc="The gradient of a variable: a tensor, a GradientSlice or None. A gradient that is assigned is "
                      "fresh: solvers use it. Assign None or use del to remove it."),
    requires_grad=property(_requires_grad, _set_requires_grad,
                           doc="Whether gradients flow to or through this tensor. Assigning calls requires_grad_()."),
    version=property(_version, doc="The number of in-place writes to this tensor's memory. Views share it."),
    grad_req=property(_grad_req, doc="How backward stores the gradient: \"write\", \"add\" or \"null\"."),
    is_leaf=property(_is_leaf, doc="Whether this tensor is not the result of a recorded operation."),
    grad_fn=property(_grad_fn, doc="The node of the operation whose result this tensor is, or None."),
    fresh_grad=property(_fresh_grad, _set_fresh_grad,
                        doc="Whether a backward has reached this variable, or a gradient was assigned to .grad, since "
                            "its gradient was last used by a solver or set to zero. Solvers skip a variable where it "
                            "is False."),
)
