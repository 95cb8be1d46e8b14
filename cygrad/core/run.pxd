"""Executing operations. An Operand is what an operation is given."""

from libc.stdint cimport uint32_t

from cygrad.core.graph cimport Call, Node, Operator, Tensor
from cygrad.core.memory cimport Buffer
from cygrad.core.modes cimport Flags
from cygrad.kernels.array cimport Array, itemsize

cdef struct Operand:
    Array array
    Buffer* buffer          # NULL: a Python number, in `number`, in the dtype of the operation
    void* tensor            # the borrowed Tensor, or the number as the user gave it
    double number

cdef inline void give_tensor(Operand* o, Tensor t) noexcept:
    o.tensor = <void*>t
    o.buffer = t.buffer
    o.array.data = t.buffer.data + t.layout.offset * itemsize(t.dtype)
    o.array.layout = t.layout
    o.array.dtype = t.dtype

cdef list prepare(Operator op, Operand* x, int n)
cdef int fill_operands(Operand* o, list xs) except -1
cdef object run(Operator op, Operand* x, int n, object attributes)
cdef int give_any(Operand* o, object v, list alive) except -1
cdef int wanted_of(Operand* x, int n, uint32_t* out) except -1
cdef Node note(
    Operator op, Operand* x, int n, Call* c, Buffer** buffers, object attributes, uint32_t wanted, Flags* f)
cdef object apply1(Operator op, object x, object attributes)
cdef object apply2(Operator op, object x, object y, object attributes)
cdef object apply3(Operator op, object x, object y, object z, object attributes)
cdef object apply_list(Operator op, list xs, object attributes)
