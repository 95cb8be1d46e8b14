from cygrad.kernels.array cimport Layout

cdef Layout* reshaped(const Layout* x, int ndim, const Py_ssize_t* shape) except? NULL
cdef Layout* permuted(const Layout* x, tuple axes) except NULL
