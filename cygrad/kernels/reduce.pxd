from cygrad.kernels.array cimport Array, Layout

ctypedef void (*along_f)(float[:, ::1], float[::1], double[:]) noexcept nogil
ctypedef void (*along_d)(double[:, ::1], double[::1], double[:]) noexcept nogil
ctypedef void (*across_f)(float[:, ::1], float[::1], float[::1]) noexcept nogil
ctypedef void (*across_d)(double[:, ::1], double[::1], double[::1]) noexcept nogil

cdef struct Fold:
    double start            # what nothing gives
    bint adds               # results of parts may be added up
    along_f along_single
    along_d along_double
    across_f across_single
    across_d across_double

# what each does is said in the .pyx
cdef Fold SUM, PROD, MAX, MIN, SIZE_MAX, SIZE_MIN, DIFFERENCES, SQUARES, EXPS, POWERS

cdef int fold_into(const Fold* fold, const Array* x, const Array* by, const Array* y) except -1
cdef int sum_into(const Array* x, const Array* y) except -1
cdef int sum_to(const Array* x, const Array* y) except -1
