"""For other packages: a kernel of theirs among those that the driver runs."""

from cygrad.kernels.driver cimport register_new

cdef extern from "cygrad/platform.h" nogil:
    void CG_SAME_VIEWS() noexcept


cdef inline int register(str name, void* single, void* double, int operands) except -1:
    """Enter a kernel of another package, whose memoryviews must have the size of ours (or it does not compile) and
    whose name must be new."""
    CG_SAME_VIEWS()
    return register_new(name, single, double, operands)
