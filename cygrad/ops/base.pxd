"""The bases that operators share. An elementwise operator is its value kernel and, for each input, a rule: a kernel and
what it reads. What backward keeps follows from the rules."""

from cygrad.core.graph cimport Backward, Call, Operator
from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.driver cimport Loop

cdef enum:
    G = -1                  # operands of a rule: the gradient,
    NUMBER = -2             # the number that the operator has for an attribute,
    OUT = 0x80              # the output; from 0 on: the inputs

cdef struct Rule:
    const Loop* loop        # NULL: the gradient passes as it is (same), or there is none
    bint same
    int n
    int operands[4]

cdef class Elementwise(Operator):
    cdef int n_in
    cdef const Loop* value
    cdef bint has_number
    cdef Rule rules[3]

    cdef int slope(self, int i, list words, dict codes) except -1
    cdef bint later(self, Backward b, int i, int source) noexcept

cdef int by_numpy(Operator op, Call* c) except -1
cdef void spread(Array* a, const Layout* target, Layout* seen, Py_ssize_t* strides) noexcept

cdef class Truth(Elementwise):
    pass


cdef class View(Operator):
    cdef Layout* see(self, const Layout* x, attributes) except NULL
    cdef Layout* see_back(self, const Layout* g, const Layout* x, attributes) except NULL

cdef class Part(View):
    pass
