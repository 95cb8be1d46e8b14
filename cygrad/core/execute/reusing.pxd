from cygrad.core.execute.schedule cimport ProgramSchedule

cdef int drop_unused(ProgramSchedule s) except -1
cdef int reuse(ProgramSchedule s) except -1
cdef int place_in(ProgramSchedule s, size_t most) except -1
