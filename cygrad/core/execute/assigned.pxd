from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.trace cimport Storage
from cygrad.kernels.array cimport Layout, itemsize

cdef struct Spot:           # an address in a step, and where it points in its storage
    char** at
    size_t offset

cdef bint has_shape(const Layout* l, tuple shape) except -1
cdef int check_gradient(Storage s) except -1
cdef bint meet(Tensor x, Tensor y) except -1
cdef dict gradients_of(ProgramSchedule schedule)
cdef bint was_assigned(dict gradients, Storage s) except -1
cdef int check_chained(Storage s, tuple storages) except -1
cdef int check_move(Storage s, const Spot* spots, int n) except -1
cdef int fill_zeros(Tensor g) except -1
cdef bint has_others(Tensor g) noexcept


cdef inline char* address_of(Tensor x) noexcept:
    """Where the elements of a tensor begin, which ready() has allocated."""
    return x.buffer.data + x.layout.offset * itemsize(x.dtype)
