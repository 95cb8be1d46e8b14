"""Pickling and copying tensors: elements, dtype and grad_req, but not the graph. Loading runs no code of the pickle."""

from pickle import PickleBuffer

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport check_capture, window
from cygrad.core.graph.tensor cimport Leaf, Tensor, is_variable, node_of
from cygrad.core.store.buffer cimport OTHER, ZEROS
from cygrad.core.graph.construct cimport copy_plain, fresh, zeros_like
from cygrad.core.graph.waiting cimport WaitingTensor, new_waiting, twin_of, waiting_of

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.graph.waiting import restore_writes
from cygrad.core.late_bound import bind_methods


def load_tensor(data, dtype, shape, grad_req, with_grad):
    """The tensor of a pickle, with a copy of `data`, the bytes of its elements in row-major order. With a grad_req it
    is a variable, whose .grad is None, zeros (with_grad), or with "row_sparse" a GradientSlice without rows. Raises
    ValueError if the size of data does not match."""
    cdef Tensor t
    cdef Py_buffer view
    number = dtype_number(dtype)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        t = fresh(lay.from_shape(shape), number, OTHER)
        if <size_t>view.len != t.buffer.nbytes:
            raise ValueError(f"a pickled {DTYPES[number]} tensor of shape {t.shape} has {t.buffer.nbytes} bytes, but "
                             f"the data has {view.len}")
        memcpy(t.buffer.data, view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    if grad_req is not None: make_variable(t, grad_req, None, with_grad, with_grad == "row_sparse")
    return t


def load_waiting(name, shape, dtype, grad_req, with_grad, writes):
    """The tensor of a pickle that waits for its shape."""
    cdef Tensor t = new_waiting(name, shape, dtype_number(dtype))
    restore_writes(t, writes)
    if grad_req is not None: make_variable(t, grad_req, None, with_grad)
    return t

# The path in pickles, which never changes (core/execute/pickles.py).
load_tensor.__module__ = load_waiting.__module__ = "cygrad.core.pickling"


cdef int make_variable(Tensor t, grad_req, grad, bint with_grad, bint sparse=False) except -1:
    """Make `t` a variable with `grad` as .grad; for None, .grad is zeros if with_grad, else None. `sparse`: with the
    stype "row_sparse"."""
    if with_grad or grad_req != "add":
        t.attach_grad(grad_req, "row_sparse" if sparse else None)
        if grad is not None or not with_grad: t.grad = grad
    else:
        t.requires_grad_()


cdef str req_of(Tensor t):
    """The grad_req of a copy: the variable's own, and "add" for an intermediate."""
    return t.grad_req if t.is_leaf else "add"


cdef object loaded_grad(Tensor t):
    """The .grad of a copy: whether it is zeros, or "row_sparse". For a GradientSlice that was not asked for it is None,
    so the next backward makes one again."""
    cdef Leaf leaf
    if not is_variable(t): return False
    leaf = <Leaf>node_of(t)
    return "row_sparse" if leaf.sparse else leaf.grad is not None


def reduce_ex(Tensor self, protocol):
    """For pickle. A view pickles only its own elements. From protocol 5 on, the memory can be passed out of band. An
    intermediate is loaded as a variable."""
    cdef Tensor t = self if self.layout.dense else copy_plain(self)
    elements = window(t, False).reshape(-1)
    data = PickleBuffer(elements) if protocol >= 5 else elements.tobytes()
    return load_tensor, (data, str(DTYPES[self.dtype]), self.shape, req_of(self) if self.requires_grad else None,
                         loaded_grad(self))


def copied(Tensor self):
    """For copy.copy: a tensor with a copy of the elements. The copy of a variable has its grad_req, but not its
    gradient: .grad is zeros where the original has one, as after loading a pickle. The copy of an intermediate is a
    variable outside the graph, as in PyTorch; detach() and copy() return the elements only."""
    cdef Tensor t
    check_capture()
    t = copy_plain(self)
    kind = loaded_grad(self)
    if self.requires_grad: make_variable(t, req_of(self), None, kind, kind == "row_sparse")
    return t


def deep_copied(Tensor self, memo):
    """For copy.deepcopy: a tensor with a copy of the elements. The copy of a variable has its grad_req and a copy of
    its .grad. Raises RuntimeError for the result of a recorded operation, because the copy would lose the graph."""
    cdef Tensor t
    if not self.is_leaf:
        raise RuntimeError(f"deepcopy of this result of {self.grad_fn.name()}, of shape {self.shape}: a copy would be "
                           f"outside the graph; if that is intended, copy its detach()")
    check_capture()
    from copy import deepcopy
    grad = deepcopy(self.grad, memo)
    t = zeros_like(self, OTHER) if self.buffer.flags & ZEROS else copy_plain(self)
    if self.requires_grad:
        make_variable(t, self.grad_req, grad, grad is not None, loaded_grad(self) == "row_sparse")
        t.fresh_grad = self.fresh_grad
        if is_variable(self): (<Leaf>node_of(t)).incomplete = (<Leaf>node_of(self)).incomplete
    return t


# ---- tensors that wait for their shape -------------------------------------------------------------------------------

def reduce_waiting(Tensor self, protocol):
    """For pickle: the role, and what is to be written when the shape is known."""
    w = waiting_of(self)
    return load_waiting, (w.name, w.shape, str(DTYPES[self.dtype]), req_of(self) if self.requires_grad else None,
                          loaded_grad(self), w.writes)


def waiting_copy(Tensor self):
    """For copy.copy: another tensor that waits, with the same role."""
    return waiting_twin(self, waiting_of(self).writes)


def deep_waiting_copy(Tensor self, memo):
    """For copy.deepcopy: the same, with copies of the generators that are to draw its values."""
    from copy import deepcopy
    return waiting_twin(self, deepcopy(waiting_of(self).writes, memo))


cdef Tensor waiting_twin(Tensor x, list writes):
    cdef Tensor t = twin_of(x, x.dtype, writes)
    if x.requires_grad: make_variable(t, x.grad_req, None, loaded_grad(x))
    return t


bind_methods(Tensor, __reduce_ex__=reduce_ex, __copy__=copied, __deepcopy__=deep_copied)
bind_methods(WaitingTensor, __reduce_ex__=reduce_waiting, __copy__=waiting_copy, __deepcopy__=deep_waiting_copy)
