from cygrad.kernels.array cimport Array
from cygrad.kernels.reductions.folds cimport Fold

cdef int fold_into(const Fold* fold, const Array* x, const Array* by, const Array* y) except -1 nogil
cdef int sum_into(const Array* x, const Array* y) except -1 nogil
cdef int sum_to(const Array* x, const Array* y) except -1 nogil
