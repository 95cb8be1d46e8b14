from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.execute.simulating cimport Simulation

cdef Simulation recompute(ProgramSchedule s, size_t limit, size_t missing)
