"""memory.scope(): a scope that frees on exit the tensors made inside it."""

import gc

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.weakref cimport PyWeakref_NewRef

from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.freed cimport FreedTensor, free_memory
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.source cimport where
from cygrad.core.thread_state cimport Flags, flags

from cygrad.core.dtypes import DTYPES


cdef str description(Tensor t, place):
    """A tensor in an error message: its shape and dtype, and the operation and the line that made it."""
    made = f", made by {t._node.name()}" if t._node is not None and t._node.op is not None else ""
    return f"{t.shape} {DTYPES[t.dtype]}{made}" + (f" at {place[0]}:{place[1]}" if place[0] else "")


cdef list outliving(list made, set spared):
    """The pairs (tensor, line) of a scope's tensors that are alive and not in `spared`, a set of ids."""
    cdef list left = []
    for weak, place in made:
        t = weak()
        if type(t) is Tensor and id(t) not in spared: left.append((t, place))
    return left


cdef inline bint owned(Tensor t) noexcept:
    """Whether the memory of `t` is the gradient of a variable or the state of a solver."""
    return t.buffer.gradients or t.buffer.optimizer


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class scope:
    """A scope that frees on exit every tensor this thread made inside it, including tensors that are still referenced.
    It does not free tensors passed to `keep(x)`, which returns x, nor gradients and solver states, which live as long
    as their variable or solver. Memory that has other holders is not released. Scopes nest: a tensor that an inner
    scope keeps belongs to the outer scope. In a generator the scope stays open while the caller runs, and frees the
    caller's tensors too.

    With `capped`, a tensor that is still referenced on exit and was not kept is an error: the scope frees it and raises
    RuntimeError with the number of such tensors, and the shape, dtype and line of the first ones. A name assigned in
    the `with` block refers to its tensor after the block too: call a function in the block, or `del` the names.
    Reference cycles are collected first and do not count. If the block raised an exception, that one is raised."""
    cdef scope outer
    cdef list made              # (weak reference, the line that made it if capped else None)
    cdef list kept
    cdef Py_ssize_t limit       # the length of `made` at which dead references are removed
    cdef bint capped

    @cython.embedsignature.format("c")
    def __init__(self, capped=False):
        self.capped = capped

    def __enter__(self):
        cdef Flags* f = flags()
        if self.made is not None: raise RuntimeError("this memory.scope() is already open; make one for each with")
        made, kept = [], []
        self.made, self.kept, self.limit = made, kept, 1024
        self.outer = <scope>f.scope if f.scope != NULL else None
        Py_INCREF(self)
        f.scope = <void*>self
        return self

    def keep(self, x):
        """Let the tensor `x` outlive this scope; returns it."""
        if not isinstance(x, Tensor) or type(x) is FreedTensor:
            raise TypeError(f"keep: x must be a tensor that is not freed, got {type(x).__name__}")
        if self.kept is None: raise RuntimeError("keep: this memory.scope() is not open")
        self.kept.append(x)
        return x

    def __exit__(self, kind=None, value=None, traceback=None):
        cdef Flags* f = flags()
        cdef scope inner = None, outer = self.outer, s = <scope>f.scope if f.scope != NULL else None
        cdef list made = self.made, kept = self.kept, left, still, escaped = None
        while s is not None and s is not self: inner, s = s, s.outer
        if s is None: raise RuntimeError("this thread exits a memory.scope() that it has not entered")
        if inner is not None: inner.outer = outer
        else: f.scope = <void*>outer if outer is not None else NULL     # whose reference was counted on entry
        self.made = self.kept = self.outer = None
        Py_DECREF(self)                             # the scope is closed; only what follows allocates
        spared = {id(x) for x in kept}
        left = outliving(made, spared)
        if left and self.capped and kind is None:
            left = None                             # this list would keep tensors from the collector
            gc.collect()
            left = outliving(made, spared)
            escaped = [description(t, place) for t, place in left if not owned(t)]
        left = [t for t, _ in left]
        if outer is not None:
            for x in kept: outer.note(x)
        made = kept = x = t = None
        while left:                                 # freeing a variable releases its gradient: try those again
            still = []
            for t in left:
                if owned(t): still.append(t)
                else: free_memory(t)
            if len(still) == len(left): break
            left = still
        if not escaped: return
        first = "; ".join(escaped[:3]) + ("; ..." if len(escaped) > 3 else "")
        raise RuntimeError(f"memory.scope(capped=True): tensors made inside outlive it without keep(), {len(escaped)} "
                           f"in all: {first}; they are now freed; keep() those that must outlive the scope, and del "
                           f"the names that refer to the others")

    cdef int note(self, Tensor t) except -1:
        if len(self.made) >= self.limit:
            self.made = [pair for pair in self.made if pair[0]() is not None]
            self.limit = 2 * len(self.made) + 1024
        self.made.append((PyWeakref_NewRef(t, None), where() if self.capped else None))


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class unscoped:
    """`with unscoped():` no open scope frees the tensors that are made in the body, such as values of a workspace."""
    cdef scope outer

    def __enter__(self):
        cdef Flags* f = flags()
        self.outer = <scope>f.scope if f.scope != NULL else None
        f.scope = NULL                              # (its reference stays counted)

    def __exit__(self, *_):
        flags().scope = <void*>self.outer if self.outer is not None else NULL


cdef void note_made(t) noexcept:
    """Called for each new tensor while its thread has an open scope."""
    try:
        (<scope>flags().scope).note(<Tensor>t)
    except MemoryError:                             # then the scope does not free it
        pass


late_bound.tensor_made = note_made
