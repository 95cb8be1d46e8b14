from cygrad.core.graph.gradient_slice cimport GradientSlice
from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.array cimport Array
from cygrad.kernels.update cimport Update
from cygrad.optim.parameters cimport SolverParameter

cdef list reached(dict parameters, str what, str refuses, size_t* workspace_bytes)
cdef GradientSlice rows_for(GradientSlice rows, Tensor w, name, str what, str refuses, size_t* nbytes)
cdef object decayed(SolverParameter p, gradient, double rate)
cdef bint is_traced(solver, dict parameters, str name, str refuses, tuple arguments) except -1
cdef int run_slice(Update* u, Tensor w, GradientSlice g, char* workspace) except -1
cdef int run_by_rows(Update* u, const Array* a, char* workspace) except -1
cdef int decay(dict parameters, double rate) except -1
cdef int clip_by_norm(dict parameters, double bound) except -1
cdef double clip_by_global_norm(dict parameters, double bound) except? -1
cdef int clip_by_value(dict parameters, double bound) except -1
cdef int scale(dict parameters, double factor) except -1
cdef tuple check(dict parameters, str what)
