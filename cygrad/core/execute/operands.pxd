"""The operands of an operation. An Operand holds a tensor's memory and layout, so that Python code that runs during the
operation (a callback, a finalizer) cannot free them."""

from cygrad.core.graph.lifts cimport is_lifted
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.trace cimport made_here
from cygrad.core.store.buffer cimport VIRTUAL, ZEROS, Buffer, drop, hold, make
from cygrad.core.store.layout cimport SCALAR, decref, incref
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Array, itemsize

cdef extern from "Python.h":
    bint PyFloat_Check(object)
    bint PyLong_Check(object)

cdef struct Operand:
    Array array
    Buffer* buffer          # held; NULL: a Python number, stored in `number` in the dtype of the operation
    void* tensor            # the borrowed Tensor or Python number
    double number



cdef inline bint is_plain(v) noexcept:
    """Whether `v` can be read without conversion: a tensor with memory, one that stands for lanes, or a Python number.
    """
    if type(v) is Tensor: return not (<Tensor>v).buffer.flags & (ZEROS | VIRTUAL) or is_usable(<Tensor>v)
    return PyFloat_Check(v) or PyLong_Check(v)

cdef inline bint is_usable(Tensor t) noexcept:
    """Whether operations can use a tensor whose buffer is ZEROS or VIRTUAL."""
    return made_here(t.buffer) or t.buffer.flags & VIRTUAL and is_lifted(t, flags().lifting)

cdef inline int usable(Tensor t) except -1:
    """ready() for an operand."""
    return make(t.buffer) if t.buffer.flags & (ZEROS | VIRTUAL) and not is_usable(t) else 0

cdef inline void read_tensor(Operand* o, Tensor t) noexcept:
    """Read a tensor that has memory: see ready() in core/graph/tensor.pxd."""
    hold(t.buffer)
    o.tensor = <void*>t
    o.buffer = t.buffer
    o.array.data = t.buffer.data + t.layout.offset * itemsize(t.dtype)
    o.array.layout = incref(t.layout)
    o.array.dtype = t.dtype

cdef inline void read_operand(Operand* o, v) noexcept:
    """Read a plain operand. A Python number is weak: it takes the dtype of the other operands."""
    if type(v) is Tensor:
        read_tensor(o, <Tensor>v)
        return
    o.tensor = <void*>v
    o.buffer = NULL
    o.array.layout = SCALAR
    o.array.data = <char*>&o.number

cdef inline void release_operand(Operand* o) noexcept:
    if o.buffer == NULL: return
    decref(o.array.layout)
    drop(o.buffer)
    o.buffer = NULL

cdef inline void release_operands(Operand* o, int n) noexcept:
    cdef int i
    for i in range(n): release_operand(&o[i])

cdef object plain_operand(object v)
cdef bint convert(list xs) except -1
cdef list prepare(Operator op, Operand* x, int n)
cdef int warn_if_widened(Operator op, list casts) except -1
