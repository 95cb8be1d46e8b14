"""Executing operations. An Operand is what an operation is given; it holds the tensor's memory and layout from the
moment when they are read, so whatever Python code runs meanwhile (a callback, a finalizer) cannot free them."""

from libc.stdint cimport uint32_t, uint64_t

from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.store.layout cimport SCALAR, decref, incref
from cygrad.core.store.buffer cimport Buffer, drop, hold
from cygrad.core.thread_state cimport Flags
from cygrad.kernels.array cimport Array, itemsize

cdef struct Operand:
    Array array
    Buffer* buffer          # held; NULL: a Python number, in `number`, in the dtype of the operation
    void* tensor            # the borrowed Tensor, or the number as the user gave it
    double number

cdef inline void give_tensor(Operand* o, Tensor t) noexcept:
    """Read a tensor that is ready (graph.pxd)."""
    hold(t.buffer)
    o.tensor = <void*>t
    o.buffer = t.buffer
    o.array.data = t.buffer.data + t.layout.offset * itemsize(t.dtype)
    o.array.layout = incref(t.layout)
    o.array.dtype = t.dtype

cdef inline void give_plain(Operand* o, v) noexcept:
    """Read what is plain: a tensor, or a Python number (weak: it takes the others' dtype)."""
    if type(v) is Tensor:
        give_tensor(o, <Tensor>v)
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

cdef int captures                   # functions that are being captured now, in any thread
cdef list foreign                   # while any is: results of operations of threads that capture none

cdef list prepare(Operator op, Operand* x, int n)
cdef object plain_operand(object v)
cdef object run(Operator op, Operand* x, int n, object attributes)
cdef int wanted_of(Operand* x, int n, uint64_t* out) except -1
cdef Node record_node(
    Operator op, Operand* x, int n, Call* c, Buffer** buffers, object attributes, uint64_t wanted, Flags* f)
cdef object apply1(Operator op, object x, object attributes)
cdef object apply2(Operator op, object x, object y, object attributes)
cdef object apply3(Operator op, object x, object y, object z, object attributes)
cdef object apply_list(Operator op, list xs, object attributes)
