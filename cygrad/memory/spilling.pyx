"""memory.budget(offload=): what is evicted can be written to a file, and read again.

A DiskSpilled is a part of the file (spill.pxd) with a copy of what was in memory. While it is written, the Value keeps
its memory, and who lets go of the Value or of the DiskSpilled takes the job back first. It keeps its part as long as
the Value lives, so a second eviction writes nothing. All are in a list, in the order in which their Values were made,
because backward needs them in the reverse order."""

cimport cython

import os

from libc.stdint cimport uint64_t

from cygrad.core.clock cimport seconds
from cygrad.core.execute.recipes cimport Value
from cygrad.core.execute.spills cimport Spilled
from cygrad.core.graph.running cimport passes_begun
from cygrad.core.store.buffer cimport (
    EXTERNAL, OTHER, VIRTUAL, ZEROS, Buffer, allocate, counters, drop, release_saved, save,
)
from cygrad.memory.spill cimport IDLE, Job, Spill, raise_foreign, raise_unreadable

cdef enum:
    AHEAD = 16 << 20        # bytes that are read ahead, or two copies

cdef double SPEED = 4e9     # bytes for a second of the program, before any are measured,
cdef double ASSUMED = 1e6   # and the bytes of which that is so
cdef double SHARE = 0.125   # of the thread's time, which costs the program something also if it does not wait
cdef double ONE = 5e-5      # seconds of the program for one write or read
cdef double fixed = -1      # seconds of both, for tests; -1: they are measured


@cython.no_gc
cdef class DiskSpilled(Spilled):
    cdef DiskSpiller store
    cdef uint64_t number        # that of the Value
    cdef Job job                # its part of the file
    cdef bint written
    cdef Buffer* coming         # memory into which it is read, or NULL
    cdef bint is_ahead          # before backward has come to it
    cdef int error              # of the last job
    cdef void* older            # borrowed: the one whose Value was made before, and after it
    cdef void* newer

    def __dealloc__(self):
        cdef DiskSpiller s = self.store
        if s is None: return
        self.stop()
        s.give(self)
        if self.older != NULL: (<DiskSpilled>self.older).newer = self.newer
        if self.newer != NULL: (<DiskSpilled>self.newer).older = self.older
        else: s.newest = self.older

    cdef bint stop(self) noexcept:
        """Take the job back. Returns whether there was memory into which it was read."""
        cdef Buffer* b = self.coming
        if self.job.state != IDLE:
            self.store.spill.retract(&self.job, True)
            if not self.job.reads: self.store.queued -= self.job.nbytes
        self.claim()
        self.coming = NULL
        if b == NULL: return False
        release_saved(b)
        return True

    cdef void claim(self) noexcept:
        """Backward has come to it, or nothing needs it any more."""
        if self.is_ahead: self.store.ahead -= self.job.nbytes
        self.is_ahead = False

    cdef void ended(self) noexcept:
        """The thread has done the job."""
        cdef DiskSpiller s = self.store
        self.error = self.job.error
        if self.job.reads:
            s.read, s.reading = s.read + self.job.nbytes, s.reading + SHARE * self.job.seconds
            if self.error: self.stop()
            return
        s.queued -= self.job.nbytes
        self.written = not self.error
        if self.written: s.written, s.writing = s.written + self.job.nbytes, s.writing + SHARE * self.job.seconds
        elif not s.error: s.error = self.error

    cdef bint is_written(self) noexcept:
        if not self.written: self.store.settle()
        return self.written

    cdef void finish(self) noexcept:
        cdef double begun = seconds()
        if not self.written: self.store.spill.hold_on(&self.job)
        self.store.settle()
        self.store.writing += seconds() - begun

    cdef double cost(self) noexcept:
        return ONE + self.job.nbytes * self.store.reading_time() if fixed < 0 else fixed

    cdef int request(self, bint is_ahead) except -1:
        """Let the thread read it into new memory."""
        cdef Buffer* b = allocate(self.job.nbytes, OTHER)
        save(b)
        drop(b)
        if self.coming != NULL or not self.store.spill.is_usable():     # (another thread has done it meanwhile)
            release_saved(b)
            return 0
        self.coming, self.error, self.is_ahead = b, 0, is_ahead
        self.job.data, self.job.reads = b.data, True
        if is_ahead: self.store.ahead += self.job.nbytes
        self.store.spill.post(&self.job)
        return 0

    cdef int raise_error(self) except -1:
        cdef int error = self.error
        self.error = 0
        return raise_unreadable(self.store.spill, self.job.nbytes, error)

    cdef Buffer* read(self) except? NULL:
        cdef Buffer* b
        cdef double begun = seconds()
        if not self.store.spill.is_usable(): raise_foreign(self.store.spill)
        if self.coming == NULL: self.request(False)
        self.claim()                                # (so no allocation takes the memory back)
        if self.job.state != IDLE: self.store.spill.wait(&self.job)
        self.store.settle()
        self.store.reading += seconds() - begun
        if self.error: self.raise_error()
        if self.job.state != IDLE: return NULL
        b = self.coming
        self.coming = NULL
        return b


@cython.no_gc
cdef class DiskSpiller(Spiller):
    def __cinit__(self, str folder):
        self.spill = Spill(folder, "memory.budget")

    cdef bint takes(self, const Buffer* b) noexcept:
        return (b.nbytes > 0 and not b.parameters and not b.flags & (EXTERNAL | VIRTUAL | ZEROS)
                and not self.error and self.spill.is_usable())

    cdef double cost(self, size_t nbytes) noexcept:
        cdef double writing = (ASSUMED / SPEED + self.writing) / (ASSUMED + self.written)
        return 2 * ONE + nbytes * (self.reading_time() + writing) if fixed < 0 else fixed

    cdef double reading_time(self) noexcept:
        """The seconds for a byte."""
        return (ASSUMED / SPEED + self.reading) / (ASSUMED + self.read)

    cdef Spilled begin(self, Buffer* b, uint64_t number, void* value):
        cdef DiskSpilled p = DiskSpilled.__new__(DiskSpilled)
        cdef void* o = self.newest
        cdef void* newer = NULL
        p.job.nbytes, p.job.data, p.job.owner, p.job.reads = b.nbytes, b.data, <void*>p, False
        p.job.offset = self.spill.take(p.job.nbytes)
        while o != NULL and (<DiskSpilled>o).number > number:
            newer = o
            o = (<DiskSpilled>o).older
        p.value, p.number, p.store, p.older, p.newer = value, number, self, o, newer
        if o != NULL: (<DiskSpilled>o).newer = <void*>p
        if newer != NULL: (<DiskSpilled>newer).older = <void*>p
        else: self.newest = <void*>p
        self.queued += p.job.nbytes
        self.spill.post(&p.job)
        return p

    cdef int read_ahead(self, uint64_t number) except -1:
        cdef void* o = self.newest
        cdef DiskSpilled x
        cdef size_t n
        if not self.bound: return 0
        self.settle()
        if self.epoch != passes_begun():
            self.forget_ahead()
            self.epoch = passes_begun()
        while o != NULL:
            x = <DiskSpilled>o
            n = x.job.nbytes
            if x.number < number and x.written and x.coming == NULL and is_missing(x):
                if self.ahead + n > max(<size_t>AHEAD, 2 * n): break
                if counters.live + n + 2 * self.largest > self.bound: break
                try: x.request(True)
                except MemoryError: break           # (backward may need less than this)
            o = x.older
        return 0

    cdef bint forget_ahead(self) noexcept:
        cdef void* o = self.newest
        cdef bint any_released = False
        while o != NULL:
            if (<DiskSpilled>o).is_ahead and (<DiskSpilled>o).stop(): any_released = True
            o = (<DiskSpilled>o).older
        return any_released

    cdef str trouble(self):
        if not self.error: return ""
        return f"; nothing more can be written to {self.spill.folder!r} ({os.strerror(self.error)})"

    cdef void settle(self) noexcept:
        """Finish what the thread has done."""
        cdef Job* j = self.spill.next_done()
        while j != NULL:
            (<DiskSpilled>j.owner).ended()
            j = self.spill.next_done()

    cdef void give(self, object p) noexcept:
        """Its part of the file is free again."""
        try: self.spill.give((<DiskSpilled>p).job.offset, (<DiskSpilled>p).job.nbytes)
        except MemoryError: pass                    # (then the file grows)


cdef bint is_missing(DiskSpilled p) noexcept:
    """Whether slots need it, and memory does not have it."""
    return p.value != NULL and (<Value>p.value).slots > 0 and (<Value>p.value).memory() == NULL


def set_copying(double cost=-1):
    """For tests: let each copy cost so many seconds, whatever its size. -1: what is measured."""
    global fixed
    fixed = cost
