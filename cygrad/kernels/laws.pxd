from libc.stdint cimport int64_t, uint64_t

from cygrad.kernels.array cimport Array

cdef enum:
    MAX_PARAMETERS = 4

cdef enum Form:             # the parameters are p[0], p[1], ...
    EXPONENTIAL             # mean p0
    GUMBEL                  # p0 + p1 g, where g has the distribution function e^(-e^-x)
    GAMMA                   # shape p0 and scale p1
    POISSON                 # mean p0; int64
    TRUNCATED               # normal distribution with mean p2 and standard deviation p3, between p0 and p1

cdef struct Draws:
    Form form
    int dtype               # dtype of the results
    uint64_t key
    uint64_t counter
    Py_ssize_t n            # number of results
    int n_parameters
    bint varies[MAX_PARAMETERS]     # whether a parameter has an element for each result; if not, it is `number`
    double number[MAX_PARAMETERS]
    Array parameters[MAX_PARAMETERS]        # float64, of the shape of the result
    char* y

cdef Py_ssize_t blocks_for(Form form, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t first_invalid(const Draws* d, double* p) noexcept nogil
cdef void fill(Draws* d) noexcept nogil
cdef Py_ssize_t cumulate(double* rows, Py_ssize_t n, Py_ssize_t k, bint logarithms) noexcept nogil
cdef void categories(uint64_t key, uint64_t counter, const double* rows, Py_ssize_t n_rows, Py_ssize_t k, Py_ssize_t n,
                     int64_t* y) noexcept nogil
cdef void race(uint64_t key, uint64_t counter, const double* p, Py_ssize_t n, double* y) noexcept nogil
