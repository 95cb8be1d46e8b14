from libc.stdint cimport uint32_t

from cygrad.core.graph.slots cimport Slot
from cygrad.core.graph.tensor cimport Node
from cygrad.core.thread_state cimport Flags

cdef list sites             # (operator or name, role, stack, shape, layer) by number; each log refers to its own list
cdef list frames            # (number of the caller, code, instruction) by number
cdef list shapes            # (sizes, name of the dtype) by number
cdef list layers            # path by number; "" is 0

cdef int begin_sites() except -1
cdef uint32_t site_now(const Flags* f, int category) noexcept
cdef void recorded(Node node) noexcept
cdef tuple set_layer(tuple layer)
cdef uint32_t keeper(Node node, const Slot* s) noexcept
