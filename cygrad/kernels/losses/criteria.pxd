from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport Array
from cygrad.kernels.by_dtype cimport Kernels

cdef enum:                  # the operands of a kernel
    X                       # the input
    T                       # the target
    V                       # the variance, or the weight
    W                       # the weight of positive targets
    G                       # the incoming gradient
    OPERANDS

cdef struct Terms:          # one kernel
    Kernels kernels
    int reads               # mask of the operands that it reads
    int cost                # as in driver.Loop

cdef const Terms* find(str name) except NULL
cdef int register(str name, void* f32, void* f64, int reads, int cost) except -1
cdef bint total_of(const Terms* k, const Terms* signs, const Array* a, const double* p, uint8_t* codes,
                   double* total) noexcept nogil
cdef bint each(const Terms* k, const Terms* signs, const Array* a, const double* p, uint8_t* codes,
               const Array* y) noexcept nogil
