# The arguments: x, the stride of its rows, the number of rows, the length of a row; by; y (and its stride)
ctypedef void (*along_f)(const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const float*, double*,
                         Py_ssize_t) noexcept nogil
ctypedef void (*along_d)(const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*,
                         Py_ssize_t) noexcept nogil
ctypedef void (*across_f)(const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const float*, float*) noexcept nogil
ctypedef void (*across_d)(const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*) noexcept nogil

cdef struct Fold:
    double start            # the result for no elements
    bint adds               # the results of groups of rows may be added
    int cost                # cost of an element, in quarters of an addition
    along_f along_f32
    along_d along_f64
    across_f across_f32
    across_d across_f64
    across_d join           # folds the results of parts

# The .pyx has the formula of each.
cdef Fold SUM, PROD, MAX, MIN, SIZE_MAX, SIZE_MIN, DIFFERENCES, SQUARES, EXPS, POWERS
