ctypedef void (*along_f)(float[:, ::1], float[::1], double[:]) noexcept nogil
ctypedef void (*along_d)(double[:, ::1], double[::1], double[:]) noexcept nogil
ctypedef void (*across_f)(float[:, ::1], float[::1], float[::1]) noexcept nogil
ctypedef void (*across_d)(double[:, ::1], double[::1], double[::1]) noexcept nogil

cdef struct Fold:
    double start            # what nothing gives
    bint adds               # what groups of rows give may be added up
    int cost                # an element is worth so many quarters of a plain operation's
    along_f along_single
    along_d along_double
    across_f across_single
    across_d across_double
    across_d join           # folds the results of parts

# what each does is said in the .pyx
cdef Fold SUM, PROD, MAX, MIN, SIZE_MAX, SIZE_MIN, DIFFERENCES, SQUARES, EXPS, POWERS
