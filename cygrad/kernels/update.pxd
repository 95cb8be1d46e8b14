"""Updates of parameters by solvers (update.pyx)."""

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport Kernels
from cygrad.kernels.grouping cimport Groups

cdef enum:
    MAX_STATES = 3          # largest number of states of a parameter
    MAX_COEFFICIENTS = 14   # largest number of coefficients of a rule, these two included:
    LOCAL = 12              # the rate of a rule with norms, which run() computes
    L2 = 13                 # g stands for g + L2 w, except in rules with a decay of their own

# The serial loop of a rule, over n elements. c are the coefficients.
ctypedef void (*loop_t)(void* w, const void* g, void** s, const double* c, Py_ssize_t n) noexcept nogil

# The first pass of a rule with norms: adds two sums of squares to `sums`, and may write to the states.
ctypedef void (*sums_t)(void* w, const void* g, void** s, const double* c, Py_ssize_t n, double* sums) noexcept nogil

cdef struct Kernel:
    const char* name
    Kernels loops           # loop_t
    Kernels sums            # sums_t; NULL: the rule has no norms
    double (*local_rate)(const double* c, const double* norms) noexcept nogil
    # A rule that is linear in g can also run in parts: `before`, then target += sign c[0] g, then `after`.
    double sign             # 0: it is not linear
    int target              # a state, or -1: w, and there is no `after`
    bint early              # w changes before `after`
    Kernels before, after   # loop_t, which do not read g

cdef struct Update:         # one parameter, or one array of a gradient, and what is done to it
    const Kernel* kernel
    const Kernels* loops    # of the kernel: those that run
    int dtype
    Py_ssize_t n
    char* w
    const char* g
    char* s[MAX_STATES]
    double c[MAX_COEFFICIENTS]

cdef int add_kernel(const char* name, void* f32, void* f64) except -1
cdef const Kernel* kernel(str name) except NULL
cdef int add_linear(const char* name, int target, double sign, bint early, Kernels before, Kernels after) except -1
cdef bint is_linear(const Kernel* k) noexcept nogil
cdef void run(Update* u) noexcept nogil
cdef void run_before(Update* u) noexcept nogil
cdef void run_after(Update* u) noexcept nogil
cdef void run_rows(Update* u, const Groups* groups, Py_ssize_t row) noexcept nogil
cdef double norm(int dtype, const char* x, Py_ssize_t n) noexcept nogil
cdef void find_inf_nan(int dtype, const char* x, Py_ssize_t n, bint* inf, bint* nan) noexcept nogil


cdef inline real bounded(real x, real low, real high) noexcept nogil:
    x = low if x < low else x
    return high if x > high else x
