ctypedef void (*along_f)(float[:, ::1], float[::1], double[:]) noexcept nogil
ctypedef void (*along_d)(double[:, ::1], double[::1], double[:]) noexcept nogil
ctypedef void (*across_f)(float[:, ::1], float[::1], float[::1]) noexcept nogil
ctypedef void (*across_d)(double[:, ::1], double[::1], double[::1]) noexcept nogil

cdef struct Fold:
    double start            # the result for no elements
    bint adds               # the results of groups of rows may be added
    int cost                # of an element, in quarters of an addition
    along_f along_f32
    along_d along_f64
    across_f across_f32
    across_d across_f64
    across_d join           # folds the results of parts

# The .pyx has the formula of each.
cdef Fold SUM, PROD, MAX, MIN, SIZE_MAX, SIZE_MIN, DIFFERENCES, SQUARES, EXPS, POWERS
