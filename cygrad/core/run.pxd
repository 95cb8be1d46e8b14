"""Executing operations. An Operand is what an operation is given."""

from cygrad.core.graph cimport Operator, Tensor
from cygrad.core.memory cimport Buffer
from cygrad.core.modes cimport Flags
from cygrad.kernels.array cimport Array

cdef struct Operand:
    Array array
    Buffer* buffer          # NULL: a Python number, in `number`, in the dtype of the operation
    void* tensor            # the borrowed Tensor, or the number as the user gave it
    double number

cdef list prepare(Operator op, Operand* x, int n)
cdef int fill_operands(Operand* o, list xs) except -1
cdef object run(Operator op, Operand* x, int n, object attributes)
cdef int run_into(Operator op, Operand* x, int n, object attributes, Tensor target) except -1
cdef int check_writable(Tensor t, Flags* f) except -1
cdef object apply1(Operator op, object x, object attributes)
cdef object apply2(Operator op, object x, object y, object attributes)
cdef object apply3(Operator op, object x, object y, object z, object attributes)
cdef object apply_list(Operator op, list xs, object attributes)
cdef object apply_inplace(Operator op, Tensor target, object other, object attributes)
