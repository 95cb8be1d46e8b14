from cygrad.core.graph.tensor cimport Tensor

cdef int check_running(str name, r, Tensor x, bint train) except -1
cdef int check_apart(str name, Tensor r, str other, Tensor t) except -1
cdef int move_running(Tensor average, Tensor var, Tensor stats, double factor) except -1
