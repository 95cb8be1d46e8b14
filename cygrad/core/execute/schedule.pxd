from cygrad.core.execute.placing cimport Interval
from cygrad.core.graph.trace cimport Trace

cdef class ProgramSchedule:
    """The steps of a program and the virtual buffers in its arena. The passes over programs read and change it."""
    cdef list steps
    cdef list storages          # the memory outside the arena
    cdef int split              # the step before which the program can stop; the number of steps: there is none
    cdef Interval* lives        # of the virtual buffers, by the number in Pointer.life; nbytes 0: not in the arena
    cdef int n, capacity        # of `lives`
    cdef size_t bound           # the most bytes that are needed at one time
    cdef size_t size            # of the arena; place_all() sets both

    cdef int add(self, int origin) except -1
    cdef int find_lives(self) except -1
    cdef size_t place_all(self) except? 0

cdef ProgramSchedule schedule_of(Trace t)
cdef set find_used(ProgramSchedule s)
cdef bint in_arena(ProgramSchedule s, int life) noexcept
