from libc.stdint cimport uint64_t

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Layout

cdef class Capture:
    cdef list calls             # of Captured, in order
    cdef dict constants         # address of a buffer that no operation made -> a tensor on all of it
    cdef bint ran               # any operation ran, including views
    cdef bint observes          # views are registered too (executed())
    cdef int recording          # the thread's flag before the capture
    cdef str within             # the composed function that is running (composed.pyx), or None

cdef class Captured:
    cdef Operator op
    cdef list inputs            # tensors that share the inputs' memory, and Python numbers
    cdef object attributes
    cdef list outputs           # tensors that share the outputs' memory, hidden outputs last
    cdef bint into              # an in-place write: the visible output existed before
    cdef str within             # the composed function that executed it, or None
    cdef uint64_t wanted        # mask of the inputs whose gradients were wanted; hidden outputs serve these

cdef int captures               # the number of open captures, in all threads
cdef list foreign               # while a capture is open: results of operations in threads that do not capture

cdef Capture begin_capture()
cdef int end_capture(Capture capture) except -1
cdef int note_results(Execution* e, Operator op, const Operand* x, object attributes) except -1
cdef int note_write(Execution* e, Operator op, const Operand* x, object attributes, Tensor target) except -1
cdef Tensor on_buffer(Buffer* b, const Layout* layout, int dtype)
