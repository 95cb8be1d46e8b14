from libc.stdint cimport uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Layout

cdef class Capture:
    cdef list calls             # of Captured, in order
    cdef dict constants         # address of a buffer that was made by no operation -> a tensor on all of it
    cdef bint ran               # any operation, a view too
    cdef int recording          # of the thread, before

cdef class Captured:
    cdef Operator op
    cdef list inputs            # tensors on their memory, and Python numbers
    cdef object attributes
    cdef list outputs           # tensors on their memory, hidden ones last
    cdef bint into              # the one output was there before: a write in place
    cdef uint64_t wanted        # the inputs whose gradients were wanted: hidden outputs are made for them

cdef int captures               # captures that are open, in any thread
cdef list foreign               # while any is: results of operations of threads that capture nothing

cdef Capture begin_capture()
cdef int end_capture(Capture capture) except -1
cdef int note_results(Execution* e, Operator op, const Operand* x, object attributes) except -1
cdef int note_write(Execution* e, Operator op, const Operand* x, object attributes, Tensor target) except -1
cdef Tensor on_buffer(Buffer* b, const Layout* layout, int dtype)
