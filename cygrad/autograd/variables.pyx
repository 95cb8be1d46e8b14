"""Variables: tensors whose gradient is wanted, and what Tensor says about its place in the graph."""

import numpy as np

from cpython.object cimport PyObject
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport window
from cygrad.core.graph.extras cimport extras_of, keep_for, kept_of
from cygrad.core.graph.tensor cimport (
    ADD, NULL_REQ, WRITE, Leaf, PyObject_GC_Track, Tensor, current, data_of, ensure_tensor, is_result, is_tracked,
    node_of, put_grad, show,
)
from cygrad.core.store.buffer cimport EXTERNAL, MAX_ROLES, OTHER, READONLY, recategorise
from cygrad.core.thread_state cimport flags
from cygrad.core.graph.running cimport any_runs, runs
from cygrad.core.source cimport refuse_capture
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.graph.construct cimport copy_plain, forget_values, view_of, zeros_like
from cygrad.kernels.array cimport is_floating, itemsize

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.late_bound import bind_methods

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef dict REQUESTS = {"null": NULL_REQ, "write": WRITE, "add": ADD}
REQUEST_NAMES = ("null", "write", "add")


cdef int read_request(grad_req) except -1:
    if not isinstance(grad_req, str) or grad_req not in REQUESTS:
        raise ValueError(f"grad_req is \"write\", \"add\" or \"null\", got {described(grad_req)}")
    return REQUESTS[grad_req]


cdef Leaf leaf_of(Tensor x):
    """The accumulator of the variable `x`, or of an intermediate whose gradient is kept; else None."""
    cdef Leaf leaf
    current(x)
    if x._node is None: return None
    if x._node.op is None: return <Leaf>x._node
    for _, leaf in kept_of(x._node):                # (several tensors may stand at one place)
        if leaf.tensor == <void*>x: return leaf
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
    """Let the gradient of an intermediate be kept, or no longer; the graph stays whole."""
    cdef Leaf leaf = leaf_of(x)
    if leaf is None:
        if req == NULL_REQ: return 0
        leaf = new_leaf(x)
        keep_for(x._node, x._output_nr, leaf)
    leaf.req = req
    if req == NULL_REQ: extras_of(x._node).kept = [entry for entry in kept_of(x._node) if entry[1] is not leaf]
    return 0


cdef int set_leaf(Tensor x, int req) except -1:
    """Make `x` a variable, or change how it takes gradients; graphs recorded before still reach it."""
    cdef Leaf leaf = leaf_of(x)
    cdef bint before = is_tracked(x), wanted = req != NULL_REQ
    if is_result(x): return keep_gradient(x, req)
    if wanted and not before and x.buffer.parameters == MAX_ROLES:
        raise ValueError(f"attach_grad: {MAX_ROLES} variables lie on the memory of this tensor of shape {x.shape}, "
                         f"which is the most; make a copy()")
    if leaf is None:
        leaf = new_leaf(x)
        show(x)
        x._node = leaf
        x._output_nr = 0
    leaf.req = req
    x._tracked = wanted
    if wanted and not before: x.buffer.parameters += 1
    elif before and not wanted: x.buffer.parameters -= 1
    recategorise(x.buffer)
    return 0


cdef int check_floating(Tensor x) except -1:
    if not is_floating(x.dtype):
        raise TypeError(f"a gradient was asked for of a tensor of dtype {DTYPES[x.dtype]}; only float32 and float64 "
                        f"tensors have gradients: cast it with astype first")
    return 0


def attach_grad(Tensor self, grad_req: Literal["write", "add", "null"] = "write") -> Tensor:
    """Make this tensor a variable. "write": each backward overwrites .grad; "add": it adds to it; "null": no gradient
    is wanted. .grad is zeros until then. Of a recorded result, the gradient is kept in the same way, and goes on
    through it as before. Returns the tensor. Raises TypeError unless it is float32 or float64."""
    cdef int req = read_request(grad_req)
    cdef Leaf leaf
    check_floating(self)
    leaf = leaf_of(self)
    zeros = zeros_like(self, OTHER) if req != NULL_REQ and (leaf is None or leaf.grad is None) else None
    set_leaf(self, req)
    leaf = leaf_of(self)
    if leaf is None: return self
    leaf.given = False
    if req == NULL_REQ or zeros is not None:
        put_grad(leaf, zeros)
        leaf.incomplete = False
    leaf.fresh = False
    return self


def retain_grad(Tensor self) -> None:
    """Keep the gradient of a recorded result in .grad, which each backward overwrites and which is None until then; of
    a variable it is kept anyway. Raises RuntimeError for a tensor to which no gradient flows."""
    if not is_tracked(self):
        raise RuntimeError(f"retain_grad: no gradient flows to this tensor of shape {self.shape}; compute it from a "
                           f"variable inside record()")
    if is_result(self): keep_gradient(self, WRITE)


def requires_grad_(Tensor self, requires_grad: bool = True) -> Tensor:
    """Make this tensor a variable whose .grad adds up and is None until the first backward; with False, no variable. A
    recorded result requires its gradient already; with False, raises RuntimeError for it: detach() leaves the graph."""
    if is_result(self):
        if not requires_grad:
            raise RuntimeError(f"requires_grad_(False): this result of {self._node.name()}, of shape {self.shape}, is "
                               f"part of a graph; take its detach()")
        return self
    if requires_grad:
        check_floating(self)
        set_leaf(self, ADD)
    elif leaf_of(self) is not None:
        set_leaf(self, NULL_REQ)
    return self


def drop_grad(Tensor self) -> Tensor:
    """Be a variable no longer: .grad is None and operations are not recorded for its sake."""
    cdef Leaf leaf = leaf_of(self)
    if leaf is not None:
        put_grad(leaf, None)
        leaf.incomplete = False
        set_leaf(self, NULL_REQ)
    return self


def keeps_grad(Tensor x):
    """Whether backward may write to x.grad: it is a variable, or an intermediate whose gradient is kept."""
    cdef Leaf leaf = leaf_of(x)
    return leaf is not None and leaf.req != NULL_REQ


def mark_variables(variables: Tensor | Sequence[Tensor], gradients: Tensor | Sequence[Tensor],
                   grad_reqs: GradReq | Sequence[GradReq] = "write") -> None:
    """Make variables of tensors with gradients of the caller's: backward writes into those. One tensor or lists of
    equal length; grad_reqs is one name or a list. Lengths, shapes, dtypes and names are checked before anything
    changes."""
    cdef Leaf leaf
    if isinstance(variables, Tensor): variables = [variables]
    if isinstance(gradients, Tensor): gradients = [gradients]
    variables, gradients = list(variables), list(gradients)
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise ValueError(f"mark_variables: {len(variables)} variables, {len(gradients)} gradients and {len(reqs)} "
                         f"grad_reqs; there must be as many of each")
    for i, (v, gradient, req) in enumerate(zip(variables, gradients, reqs)):
        if not isinstance(v, Tensor) or not isinstance(gradient, Tensor):
            raise TypeError(f"mark_variables: variable and gradient {i} must be tensors, got {type(v).__name__} and "
                            f"{type(gradient).__name__}")
        check_floating(v)
        check_gradient(v, gradient, f"mark_variables: gradient {i}")
        if on_its_way(gradient):
            raise RuntimeError(f"mark_variables: gradient {i} lies in memory that a running backward pass may still "
                               f"read, and would be written; give a copy()")
        read_request(req)
    if flags().capture != NULL: refuse_capture("mark_variables")
    for v, gradient, req in zip(variables, gradients, reqs):
        set_leaf(v, REQUESTS[req])
        leaf = leaf_of(v)
        if leaf is None: continue                   # an intermediate, "null"
        expect_cycle(gradient)
        if leaf.grad is None or leaf.grad.buffer != (<Tensor>gradient).buffer: leaf.incomplete = False
        put_grad(leaf, gradient)
        leaf.given = True


cdef int expect_cycle(Tensor gradient) except -1:
    """Let the garbage collector look for cycles if the gradient that a user gives leads on: a.grad = b; b.grad = a."""
    if node_of(gradient) is not None: expect_cycles()
    return 0


cdef bint on_its_way(Tensor g) noexcept:
    """Whether a pass that runs now may yet read the memory of `g` as a gradient."""
    return any_runs() and (g.buffer.gradients or g.buffer.flags & EXTERNAL)


cdef int check_gradient(Tensor x, Tensor g, str what) except -1:
    cdef int d
    if not lay.same_shape(x.layout, g.layout) or x.dtype != g.dtype:
        raise ValueError(f"{what} is {DTYPES[g.dtype]} of shape {g.shape}; the tensor is {DTYPES[x.dtype]} of shape "
                         f"{x.shape}, and they must agree")
    if g.buffer.flags & READONLY:
        raise ValueError(f"{what} lies over read-only memory, but backward writes into it; give a copy()")
    for d in range(g.layout.ndim):
        if g.layout.strides[d] == 0 and g.layout.shape[d] > 1:
            raise ValueError(f"{what}, of shape {g.shape}, repeats its elements (stride 0 in dimension {d}), but "
                             f"backward writes into each; give a copy()")
    if g.buffer == x.buffer or (g.buffer.flags | x.buffer.flags) & EXTERNAL:    # (two parts of one buffer may do)
        if np.shares_memory(window(x, False), window(g, False)):
            raise ValueError(f"{what} shares memory with its tensor, which backward would write over; give a copy()")
    return 0


cdef int clear(Tensor t) except -1:
    """Zeros everywhere, NaN included, whatever the strides."""
    if t.layout.dense: memset(data_of(t), 0, t.layout.size * itemsize(t.dtype))
    else: window(t, True)[...] = 0
    t.buffer.version += 1
    return 0


def zero_grad(Tensor self) -> None:
    """Set .grad to zeros, if there is one; it counts as not reached by a backward."""
    cdef Leaf leaf = leaf_of(self)
    if flags().capture != NULL: refuse_capture("zero_grad")
    if leaf is not None: clear_leaf(leaf)


cpdef int clear_leaf(Leaf leaf) except -1:
    """Zeros for what an accumulator holds: without memory where nobody else knows it."""
    if leaf.grad is not None:
        if is_tracked(leaf.grad) or leaf.grad.buffer.flags & READONLY: put_grad(leaf, zeros_like(leaf.grad, OTHER))
        elif leaf.given or Py_REFCNT(<PyObject*>leaf.grad) > 1 or not forget_values(leaf.grad): clear(leaf.grad)
    leaf.fresh, leaf.incomplete = False, runs(leaf.busy)
    return 0


def detach(Tensor self) -> Tensor:
    """The same memory and version, out of the graph."""
    cdef Tensor y = view_of(self, lay.incref(self.layout))
    y.detached = True
    return y


def stop_gradient(x: Data) -> Tensor:
    """`x` unchanged, with no gradient through it."""
    return detach(ensure_tensor(x))


def _grad(Tensor self):
    cdef Leaf leaf = leaf_of(self)
    return None if leaf is None else leaf.grad


def _set_grad(Tensor self, value):
    cdef Leaf leaf = leaf_of(self)
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"grad is a tensor or None, got {type(value).__name__}")
    if leaf is None:
        if value is None: return
        raise RuntimeError("this tensor keeps no gradient; attach_grad() or requires_grad_() first")
    if value is not None:
        if value is leaf.grad: return               # (which leaves an incomplete one incomplete)
        check_gradient(self, value, "the gradient assigned")
        expect_cycle(value)
        if on_its_way(value) and not is_tracked(value): value = copy_plain(value)   # by a hook: the pass writes .grad
    put_grad(leaf, value)
    leaf.given, leaf.incomplete = False, runs(leaf.busy)        # (what a pass has yet to add is a part of a sum)


def _del_grad(Tensor self):
    _set_grad(self, None)


def _requires_grad(Tensor self):
    return bool(is_tracked(self))


def _set_requires_grad(Tensor self, value):
    requires_grad_(self, value)


def _grad_req(Tensor self):
    cdef Leaf leaf = leaf_of(self)
    return "null" if leaf is None else REQUEST_NAMES[leaf.req]


def _is_leaf(Tensor self):
    return not is_result(self)


def _grad_fn(Tensor self):
    return self._node if is_result(self) else None


def _fresh_grad(Tensor self):
    cdef Leaf leaf = leaf_of(self)
    return leaf is not None and bool(leaf.fresh)


def _set_fresh_grad(Tensor self, bint value):
    cdef Leaf leaf = leaf_of(self)
    if leaf is None: raise RuntimeError("this tensor keeps no gradient; attach_grad() or requires_grad_() first")
    leaf.fresh = value


bind_methods(
    Tensor,
    attach_grad=attach_grad, requires_grad_=requires_grad_, retain_grad=retain_grad, drop_grad=drop_grad,
    zero_grad=zero_grad, detach=detach,
    grad=property(_grad, _set_grad, _del_grad,
                  doc="The gradient of a variable, or None, which it becomes by assignment or by del."),
    requires_grad=property(_requires_grad, _set_requires_grad,
                           doc="Whether gradients flow to or through this tensor. Assigning calls requires_grad_()."),
    grad_req=property(_grad_req, doc="How gradients are taken: \"write\", \"add\" or \"null\"."),
    is_leaf=property(_is_leaf, doc="Whether no recorded operation made this tensor."),
    grad_fn=property(_grad_fn, doc="The node of the operation that made this tensor, or None."),
    fresh_grad=property(_fresh_grad, _set_fresh_grad,
                        doc="Whether a backward has reached this variable since its gradient was last used or zeroed."),
)
