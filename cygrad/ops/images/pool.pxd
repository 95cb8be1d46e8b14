from cygrad.core.graph.attributes cimport Attributes
from cygrad.kernels.images.windows cimport Pool

cdef class Pooling(Attributes):
    cdef readonly tuple kernel
    cdef readonly tuple stride
    cdef readonly tuple low
    cdef readonly tuple dilation
    cdef readonly tuple size
    cdef readonly tuple out
    cdef readonly bint adaptive
    cdef readonly bint padding_counts
    cdef readonly Py_ssize_t divisor
    cdef int nd
    cdef Pool pool
