"""What a traced program does to the gradients and roles of variables, and the solvers that it calls."""

from cygrad.core.graph.steps cimport Step
from cygrad.core.graph.tensor cimport Leaf, Tensor
from cygrad.core.graph.trace cimport Trace, traces

cdef enum Arrival:          # what happens to the gradient of a variable, beside its memory
    ZEROED                  # it is zeros: not fresh, and whole
    OVERWRITTEN             # a pass has replaced it: fresh, and whole
    ADDED                   # a pass has added to it: fresh, unless it was incomplete
    REMOVED                 # it becomes None: not fresh, and whole
    ASSIGNED_NONE           # the same, but as fresh as before
    MARKED, UNMARKED        # the program assigns to fresh_grad


cdef struct Change:         # the parameters of a step of a change to the gradient of a variable
    int what                # an Arrival
    bint none               # .grad becomes None


cdef int trace_leaf(Leaf leaf, int what) except -1
cdef const Change* change_in(Step s) noexcept
cdef int settle(Trace t, Leaf leaf) except -1
cdef int take_back(Trace t, Leaf leaf) except -1
cdef list changed_leaves(Trace t)
cdef Tensor grad_for_rows(Leaf leaf, bint overwrite)
cdef int finish(Trace t) except -1
cdef int use_solver(solver) except -1
cdef int call_solver(solver, str name, tuple arguments, list found, list others) except -1
cdef int refuse_role(Tensor x) except -1
cdef bint has_own_role(Tensor x, Leaf leaf, bint made) except -1


cdef inline int leaf_step(Leaf leaf, int what) except -1:
    """Something happens to the gradient of a variable (an Arrival). A program does it again at each run."""
    return trace_leaf(leaf, what) if traces() else 0
