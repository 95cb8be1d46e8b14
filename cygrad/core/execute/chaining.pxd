from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.graph.steps cimport Step
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.chains cimport Chain

cdef class ChainedSteps:
    """What a step holds that runs others together, strip by strip."""
    cdef Chain chain            # its links are in Step.room
    cdef tuple members          # the steps, which own the layouts and numbers of the calls
    cdef list inner             # (number, bytes) of the buffers that it does without
    cdef Buffer** raised        # whose versions a run raises, one for each write
    cdef int n_raised
    cdef bint large

cdef ChainedSteps chain_in(Step s)
cdef bint chain_steps(ProgramSchedule s) except -1
cdef int undo_chains(ProgramSchedule s) except -1
cdef int reuse_in_chain(ProgramSchedule s, Step step, int at) except -1
