from cygrad.core.graph.tensor cimport Tensor

cdef int check_running(str name, r, Tensor x, bint train) except -1
cdef Tensor check_statistic(str name, r, Tensor x)
cdef int check_all_apart(Tensor average, Tensor var, Tensor x, Tensor weight, Tensor bias) except -1
cdef int move_running(Tensor average, Tensor var, Tensor stats, double factor) except -1
