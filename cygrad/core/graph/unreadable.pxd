from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.array cimport Layout

cdef extern from "Python.h":
    void Py_SET_TYPE(void*, void*)

cdef class Unreadable(Tensor):
    pass

cdef Layout* EMPTY                      # the layout of tensors that cannot be read; never freed
cdef int refuse(x, y=*) except -1


cdef inline int check_readable(Tensor x) except -1:
    """Raise RuntimeError for a tensor that was freed or waits for its shape."""
    return 0 if type(x) is Tensor else refuse(x)
