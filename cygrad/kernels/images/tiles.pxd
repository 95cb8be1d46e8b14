# Computes item i of a job; `workspace` belongs to the running thread alone.
ctypedef void (*item_t)(void* job, Py_ssize_t i, char* workspace) noexcept nogil

cdef void each_item(item_t f, void* job, Py_ssize_t n, int t, char* workspace, size_t nbytes) noexcept nogil
