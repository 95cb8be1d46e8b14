"""The rules by which solvers update parameters (rules.pyx)."""

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Operator
from cygrad.kernels.update cimport Kernel

cdef enum:
    MAX_SETTINGS = 10

cdef class RuleSettings(Attributes):
    cdef readonly tuple values
    cdef double value[MAX_SETTINGS]

cdef class Rule(Operator):
    cdef readonly tuple states      # the names of the states of a parameter
    cdef readonly tuple settings    # the names of the settings, in the order of their values
    cdef int n_states
    cdef const Kernel* kernel

    cdef void coefficients(self, const double* a, double lr, double t, double* c) noexcept nogil
