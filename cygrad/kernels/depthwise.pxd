from cygrad.kernels.conv cimport Conv

cdef void depthwise_item(const Conv* v, Py_ssize_t i) noexcept nogil
