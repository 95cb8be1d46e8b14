from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.execute.simulating cimport Simulation

cdef list runs(Simulation x, size_t limit)
cdef Simulation recompute(ProgramSchedule s, size_t limit, size_t missing, size_t enough)
