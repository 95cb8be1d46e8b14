"""Registers kernels of other packages with the driver."""

from cygrad.kernels.driver cimport register_new

cdef extern from "cygrad/platform.h" nogil:
    void CG_SAME_VIEWS() noexcept


cdef inline int register(str name, void* f32, void* f64, int operands) except -1:
    """Register a kernel of another package under a new name. Does not compile if that package's memoryviews have
    another size than cygrad's."""
    CG_SAME_VIEWS()
    return register_new(name, f32, f64, operands)
