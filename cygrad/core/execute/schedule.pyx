"""The schedule of a program: what it does, in which order, on which memory.

A trace leaves a list of steps, each with the addresses that it reads and writes. When a buffer is needed follows from
them alone. Passes are functions that change a schedule and keep the results, bit for bit:

    drop_unused()       removes steps whose results nobody reads (reusing.pyx)
    recompute()         makes values again instead of keeping them (recomputing.pyx)
    chain_steps()       makes one step of elementwise steps in a row (chaining.pyx)
    reuse()             places results over operands that are read for the last time (reusing.pyx)
    place_all()         gives the virtual buffers their places (placing.pyx)"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc

from cygrad.core.execute.placing cimport ALIGNMENT, bound, place
from cygrad.core.graph.steps cimport Pointer, Step, zeroes
from cygrad.core.graph.trace cimport Storage
from cygrad.core.store.buffer cimport Life


cdef class ProgramSchedule:

    def __dealloc__(self):
        PyMem_Free(self.lives)

    cdef int add(self, int origin) except -1:
        """A further virtual buffer, for the content of number `origin`; -1: for nothing, outside the arena. Returns its
        number."""
        cdef Interval* lives
        cdef Interval* x
        if self.n == self.capacity:
            lives = <Interval*>PyMem_Realloc(self.lives, (2 * self.capacity + 64) * sizeof(Interval))
            if lives == NULL: raise MemoryError("no memory for a program")
            self.lives, self.capacity = lives, 2 * self.capacity + 64
        x = &self.lives[self.n]
        x.nbytes = self.lives[origin].nbytes if origin >= 0 else 0
        x.offset, x.birth, x.death, x.kept, x.over = 0, 0, 0, False, -1
        x.origin, x.final = origin if origin >= 0 else self.n, self.n
        self.n += 1
        return self.n - 1

    cdef int find_lives(self) except -1:
        """Set when each virtual buffer is needed: from its first step to its last one, or to the end."""
        cdef Step s
        cdef Interval* x
        cdef int at, i, k, end = len(self.steps) + 1
        for i in range(self.n): self.lives[i].birth, self.lives[i].death = -1, -1
        for at in range(len(self.steps)):
            s = <Step>self.steps[at]
            for k in range(s.n_pointers):
                if s.pointers[k].life < 0: continue
                x = &self.lives[s.pointers[k].life]
                if x.birth < 0: x.birth = at
                x.death = at + 1
        for i in range(self.n):
            x = &self.lives[i]
            x.over = -1
            if x.birth < 0: x.nbytes = 0            # (no step uses it)
            elif x.kept or x.birth < self.split < x.death: x.death = end    # (each resume() reads what is before it)
        return 0

    cdef size_t place_all(self) except? 0:
        """Give the virtual buffers places in one arena. Returns its size, which cannot be below `bound`."""
        cdef Interval* placed = <Interval*>PyMem_Malloc(max(self.n, 1) * sizeof(Interval))
        cdef int* numbers = <int*>PyMem_Malloc(max(self.n, 1) * sizeof(int))    # in `placed`
        cdef Interval* x
        cdef int at, i, n = 0
        if placed == NULL or numbers == NULL:
            PyMem_Free(placed)
            PyMem_Free(numbers)
            raise MemoryError("no memory for a program")
        try:
            for i in range(self.n):
                numbers[i] = -1
                if self.lives[i].nbytes and self.lives[i].over < 0: placed[n], numbers[i], n = self.lives[i], n, n + 1
            for i in range(self.n):                 # buffers in one place are one buffer
                x, at = &self.lives[i], i
                if not x.nbytes: continue
                while numbers[at] < 0: at = self.lives[at].over
                numbers[i] = numbers[at]
                placed[numbers[i]].death = max(placed[numbers[i]].death, x.death)
            self.bound = bound(placed, n)
            self.size = place(placed, n)
            for i in range(self.n):
                if self.lives[i].nbytes: self.lives[i].offset = placed[numbers[i]].offset
        finally:
            PyMem_Free(placed)
            PyMem_Free(numbers)
        return self.size


cdef ProgramSchedule schedule_of(Trace t):
    """The schedule of a trace that has ended. A buffer that stands for memory outside is replaced by that storage."""
    cdef ProgramSchedule s = ProgramSchedule.__new__(ProgramSchedule)
    cdef Life* life
    cdef Step step
    cdef Pointer* p
    cdef int i, k
    s.steps, s.storages = t.steps, t.storages
    s.split = t.split if t.split >= 0 else t.clock
    for i in range(t.n_lives):
        life = t.lives[i]
        s.add(-1)
        if life.storage < 0: s.lives[i].nbytes = (life.nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        s.lives[i].kept = life.buffer != NULL
    for step in s.steps:
        for k in range(step.n_pointers):
            p = &step.pointers[k]
            if p.life >= 0 and t.lives[p.life].storage >= 0: p.storage, p.life = t.lives[p.life].storage, -1
    s.find_lives()
    return s


cdef bint in_arena(ProgramSchedule s, int life) noexcept:
    """Whether a virtual buffer has memory in the arena."""
    return life >= 0 and s.lives[life].nbytes > 0


cdef set find_used(ProgramSchedule s):
    """The numbers of the storages that steps have addresses in. Those of which a step does more than fill them with
    zeros become Storage.in_use."""
    cdef Step step
    cdef int k
    cdef set used = set()
    for step in s.steps:
        for k in range(step.n_pointers):
            if step.pointers[k].life >= 0: continue
            used.add(step.pointers[k].storage)
            if not zeroes(step): (<Storage>s.storages[step.pointers[k].storage]).in_use = True
    return used
