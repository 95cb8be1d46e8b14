from libc.stdint cimport uint64_t

from cygrad.core.graph.tensor cimport Tensor
from cygrad.ops.rules cimport MAX_SETTINGS

cdef class Group:
    """Parameters that share a learning rate and a decay. `lr` is lr_mult times the rate of the solver. `decay` is the
    weight decay in the unit of the rule, `weight_decay` in PyTorch's. Where nnabla decays by lr / first_lr wd
    (`converts`), decay is that wd, first_lr times PyTorch's."""
    cdef double lr, first_lr, lr_mult, decay, weight_decay, wd_mult
    cdef double value[MAX_SETTINGS]         # the settings of the rule
    cdef int decay_at, first_at             # the places of the decay and of the first rate among them; first_at: or -1
    cdef bint converts

    cdef Group copy(self)
    cdef int set_decay(self, double weight_decay) except -1
    cdef int check_rate(self, double lr, double lr_mult) except -1
    cdef int set_rate(self, double lr, double lr_mult) except -1
    cdef int refresh(self, double pending) except -1
    cdef tuple numbers(self)
    cdef int assign(self, numbers) except -1

cdef class SolverParameter:
    """A parameter of a solver: the variable, its states, the number of its updates, and its group."""
    cdef Tensor tensor
    cdef list states
    cdef uint64_t t
    cdef Group group

cdef Group group_from(Group base, double solver_lr, double pending, dict settings)
cdef int check_parameter(str who, name, v) except -1
cdef int check_distinct(str who, dict made) except -1
cdef SolverParameter parameter_of(str name, Tensor v, Group group, SolverParameter old, bint retain, int n_states)
cdef dict checked_states(tuple keys, dict own, given)
cdef int check_function(str owner, str name, f, str advice=*) except -1
cdef double number(str name, value) except? -1
cdef double bound(str name, value) except? -1
cdef tuple pair(betas)
