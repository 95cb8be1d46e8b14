"""A file for values that are not in memory, and the thread that writes and reads it.

The thread is no Python thread and never takes the GIL, so it works while Python code and kernels run. A Job is a part
of the file that it writes from memory, or reads into memory. Who posts a Job keeps it and its memory until the job is
taken back, by next_done() or retract()."""

from libc.stdint cimport uint64_t
from posix.types cimport off_t


cdef enum:                  # Job.error, beside the numbers of errno
    SHORT = -1              # the file ends before the part does
    CHANGED = -2            # what was read has another checksum than what was written

cdef enum JobState:
    IDLE                    # the thread has nothing to do with it
    QUEUED
    RUNNING
    DONE                    # next_done() will return it

cdef struct Job:
    Job* next
    void* owner             # borrowed
    char* data
    size_t nbytes
    off_t offset            # in the file; -1: it has no part of the file
    uint64_t checksum       # a write computes it, and a read compares with it
    int error               # 0: it has succeeded
    double seconds          # that it took
    bint reads
    bint cancelled
    JobState state

cdef struct Worker


cdef class Spill:
    cdef Worker* worker     # NULL once it is closed
    cdef readonly str folder
    cdef str who            # made it, for messages
    cdef readonly int pid   # of the process that made it
    cdef str name           # of the file, if it could not be unlinked while it is open; else None
    cdef list free          # [start, end] of the parts that nothing uses, in order
    cdef off_t end          # of all parts
    cdef readonly size_t most           # bytes that the file has had
    cdef readonly double waited         # seconds in wait()
    cdef int waiters        # threads in wait()

    cdef int open_file(self) except -1
    cdef bint is_usable(self) noexcept
    cdef off_t take(self, size_t nbytes) except -1
    cdef int give(self, off_t start, size_t nbytes) except -1
    cdef void post(self, Job* j) noexcept
    cdef bint retract(self, Job* j, bint running) noexcept
    cdef Job* next_done(self) noexcept
    cdef int wait(self, Job* j) except -1
    cdef void hold_on(self, Job* j) noexcept
    cdef void close(self) noexcept


cdef int raise_unreadable(Spill s, size_t nbytes, int error) except -1
cdef int raise_foreign(Spill s) except -1
