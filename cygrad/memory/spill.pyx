"""The file and the thread of memory.offload() (spill.pxd)."""

import atexit
import os
import re
from bisect import bisect_left

cimport cython

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EAGAIN, EINTR, EIO, errno
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from posix.fcntl cimport O_CLOEXEC, O_CREAT, O_EXCL, O_RDWR
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec
from posix.unistd cimport close as close_descriptor

from cygrad.core.clock cimport seconds
from cygrad.core.graph.tensor cimport Node
from cygrad.core.thread_state cimport Flags, flags

cdef extern from "<unistd.h>" nogil:
    ssize_t pwrite(int fd, const void* data, size_t n, off_t offset)
    ssize_t pread(int fd, void* data, size_t n, off_t offset)
    int usleep(unsigned int microseconds)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_SETMASK
    int sigfillset(sigset_t* s)
    int pthread_sigmask(int how, const sigset_t* s, sigset_t* before)

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_create(pthread_t* thread, const void* attributes, void* (*f)(void*) noexcept nogil, void* argument)
    pthread_t pthread_self()
    int pthread_setname_np(pthread_t thread, const char* name)
    int pthread_join(pthread_t thread, void** result)
    int pthread_mutex_init(pthread_mutex_t* m, const void* attributes)
    int pthread_mutex_lock(pthread_mutex_t* m)
    int pthread_mutex_unlock(pthread_mutex_t* m)
    int pthread_mutex_destroy(pthread_mutex_t* m)
    int pthread_cond_init(pthread_cond_t* c, const void* attributes)
    int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m)
    int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* until)
    int pthread_cond_signal(pthread_cond_t* c)
    int pthread_cond_broadcast(pthread_cond_t* c)
    int pthread_cond_destroy(pthread_cond_t* c)

cdef enum:
    PIECE = 4 << 20         # bytes of one write or read, after which a job can be cancelled
    PAGE = 4096             # parts of the file begin at multiples of this
    PAUSE = 50_000_000      # nanoseconds after which who waits looks whether Ctrl-C was pressed

cdef struct Worker:
    pthread_t thread
    pthread_mutex_t mutex   # of all fields below
    pthread_cond_t posted, done
    Job* first              # of the queue
    Job* last
    Job* running
    Job* finished
    int fd
    bint ended

cdef set spills = set()     # addresses of the Spills that have a Worker
cdef set searched = set()   # folders in which no process has left files
cdef set names = set()      # files that could not be unlinked while they are open


# ---- the thread ------------------------------------------------------------------------------------------------------

cdef uint64_t checksum_of(const char* data, size_t n) noexcept nogil:
    """A checksum of 64 bits, as fast as memory: four streams of words, so that four products overlap."""
    cdef uint64_t h[4]
    cdef uint64_t w[4]
    cdef size_t i = 0
    cdef int k
    for k in range(4): h[k] = n + k
    while i < n:
        if n - i < 32: w[0] = w[1] = w[2] = w[3] = 0
        memcpy(w, data + i, min(n - i, <size_t>32))
        for k in range(4):
            h[k] = (h[k] ^ w[k]) * <uint64_t>0x9E3779B97F4A7C15
            h[k] ^= h[k] >> 32
        i += 32
    for k in range(1, 4): h[0] = (h[0] * 31 + (h[0] >> 29)) ^ h[k]
    return h[0]


cdef void run(int fd, Job* j) noexcept nogil:
    """Write or read the part of a job."""
    cdef size_t done = 0, count
    cdef ssize_t n
    cdef int error
    cdef double begun = seconds()
    j.error = 0
    if not j.reads: j.checksum = checksum_of(j.data, j.nbytes)
    while done < j.nbytes and not j.cancelled:
        count = min(j.nbytes - done, <size_t>PIECE)
        if delay: usleep(delay)
        if fails(): n, error = -1 if failure else 0, failure
        else:
            if j.reads: n = pread(fd, j.data + done, count, j.offset + done)
            else: n = pwrite(fd, j.data + done, count, j.offset + done)
            error = errno
        if n < 0 and error == EINTR: continue
        if n <= 0:
            j.error = error if n < 0 else SHORT if j.reads else EIO
            return
        done += n
    if j.reads and not j.cancelled and checksum_of(j.data, j.nbytes) != j.checksum: j.error = CHANGED
    j.seconds = seconds() - begun


cdef void* work(void* p) noexcept nogil:
    """The thread: run jobs until the Spill is closed."""
    cdef Worker* w = <Worker*>p
    cdef Job* j
    pthread_setname_np(pthread_self(), "cygrad-offload")
    pthread_mutex_lock(&w.mutex)
    while not w.ended:
        j = w.first
        if j == NULL:
            pthread_cond_wait(&w.posted, &w.mutex)
            continue
        w.first = j.next
        if w.first == NULL: w.last = NULL
        w.running, j.state = j, RUNNING
        pthread_mutex_unlock(&w.mutex)
        run(w.fd, j)
        pthread_mutex_lock(&w.mutex)
        j.next, w.finished, w.running, j.state = w.finished, j, NULL, DONE
        pthread_cond_broadcast(&w.done)
    pthread_mutex_unlock(&w.mutex)
    return NULL


cdef int start(Worker* w) noexcept nogil:
    """Begin the thread, in which no signal is handled. Returns 0, or an errno."""
    cdef sigset_t all_signals, before
    cdef int error
    if fails(): return EAGAIN
    sigfillset(&all_signals)
    pthread_sigmask(SIG_SETMASK, &all_signals, &before)
    error = pthread_create(&w.thread, NULL, work, w)
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    return error


cdef bint unlink_job(Job** list, Job* j) noexcept nogil:
    """Remove a job from a list."""
    while list[0] != NULL and list[0] != j: list = &list[0].next
    if list[0] == NULL: return False
    list[0] = j.next
    return True


cdef bint is_pending(Worker* w, const Job* j) noexcept nogil:
    """Whether the thread has still to run a job; without one, whether it has any and none is done."""
    if j != NULL: return j.state == QUEUED or j.state == RUNNING
    return w.finished == NULL and (w.first != NULL or w.running != NULL)


cdef bint pause(Worker* w, const Job* j) noexcept nogil:
    """Wait for a while, or until is_pending() is false. Returns that."""
    cdef timespec until
    cdef bint pending
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_nsec += PAUSE
    if until.tv_nsec >= 1_000_000_000: until.tv_sec, until.tv_nsec = until.tv_sec + 1, until.tv_nsec - 1_000_000_000
    pthread_mutex_lock(&w.mutex)
    pending = is_pending(w, j)
    if pending:
        pthread_cond_timedwait(&w.done, &w.mutex, &until)
        pending = is_pending(w, j)
    pthread_mutex_unlock(&w.mutex)
    return pending


cdef str place():
    """The node that backward runs now, for messages."""
    cdef Flags* f = flags()
    return f"{(<Node>f.node).name()}: " if f.node != NULL else ""


cdef int raise_unreadable(Spill s, size_t nbytes, int error) except -1:
    what = ("has changed since it was written" if error == CHANGED else "is shorter than what was written"
            if error == SHORT else f"cannot be read ({os.strerror(error)})")
    raise RuntimeError(f"{place()}the file of {s.who}() in {s.folder!r} {what}, and with it {nbytes:,} bytes that "
                       f"backward needs; run the step again, in another folder if it happens again")


cdef int raise_foreign(Spill s) except -1:
    raise RuntimeError(f"{place()}a value that backward needs is in the file of {s.who}() in process {s.pid}, and this "
                       f"is a fork of it; run backward there, or record in this process")


# ---- the file --------------------------------------------------------------------------------------------------------

cdef object raise_from(int error, str who, str what):
    raise OSError(error, f"{who}: {what} ({os.strerror(error)}); pass a folder on a disk that can be written")


cdef int remove_left(str folder) except -1:
    """Remove the files that processes have left which ended before they could."""
    if folder in searched: return 0
    try: found_names = os.listdir(folder)
    except PermissionError: return 0                # (files can be made in it all the same)
    searched.add(folder)
    for name in found_names:
        found = re.fullmatch(r"cygrad-offload-(\d+)-[0-9a-f]{8}", name)
        if found is None or int(found[1]) == os.getpid(): continue
        try: os.kill(int(found[1]), 0)
        except ProcessLookupError:
            try: os.unlink(os.path.join(folder, name))
            except OSError: pass                    # (another process does the same)
        except (OSError, OverflowError): pass       # (it is one of another user)
    return 0


@cython.no_gc
cdef class Spill:
    def __cinit__(self, str folder, str who):
        cdef Worker* w
        cdef int error
        self.folder, self.who, self.pid, self.free = folder, who, os.getpid(), []
        w = <Worker*>calloc(1, sizeof(Worker))
        if w == NULL: raise MemoryError(f"no memory for the thread of {who}")
        w.fd = -1
        try:
            w.fd = self.open_file()
            pthread_mutex_init(&w.mutex, NULL)
            pthread_cond_init(&w.posted, NULL)
            pthread_cond_init(&w.done, NULL)
            spills.add(<size_t><void*>self)
            error = start(w)
            if error: raise_from(error, who, "the system cannot begin a thread that writes")
        except BaseException:
            spills.discard(<size_t><void*>self)
            if w.fd >= 0: close_descriptor(w.fd)
            free(w)
            raise
        self.worker = w

    cdef int open_file(self) except -1:
        """Make the file. It has no name from then on, so nothing is left of it when the process ends."""
        name = os.path.join(self.folder, f"cygrad-offload-{self.pid}-{os.urandom(4).hex()}")
        try:
            remove_left(self.folder)
            fd = os.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        except OSError as e: raise_from(e.errno, self.who, f"no file can be made in {self.folder!r}")
        try: os.unlink(name)
        except OSError:                             # (a system on which open files keep their names)
            self.name = name
            names.add(name)
        return fd

    def __dealloc__(self):
        self.close()

    cdef bint is_usable(self) noexcept:
        """Whether it is open, in the process that has made it."""
        return self.worker != NULL and self.worker.fd >= 0

    cdef off_t take(self, size_t nbytes) except -1:
        """A part of the file for so many bytes."""
        cdef off_t size = (nbytes + PAGE - 1) // PAGE * PAGE, start
        for i, (found, end) in enumerate(self.free):
            if end - found < size: continue
            if end - found == size: del self.free[i]
            else: self.free[i][0] = found + size
            return found
        start = self.end
        self.end += size
        self.most = max(self.most, <size_t>self.end)
        return start

    cdef int give(self, off_t start, size_t nbytes) except -1:
        """Let a part be used again."""
        cdef list parts = self.free
        end = start + <off_t>((nbytes + PAGE - 1) // PAGE * PAGE)
        i = bisect_left(parts, [start])
        parts.insert(i, [start, end])
        if i + 1 < len(parts) and parts[i + 1][0] == end: parts[i][1] = parts.pop(i + 1)[1]
        if i and parts[i - 1][1] == start: parts[i - 1][1] = parts.pop(i)[1]
        if parts[-1][1] == self.end: self.end = parts.pop()[0]
        return 0

    cdef void post(self, Job* j) noexcept:
        """Let the thread run a job."""
        cdef Worker* w = self.worker
        cdef Job** place = &w.first
        pthread_mutex_lock(&w.mutex)
        j.next, j.state, j.error, j.cancelled = NULL, QUEUED, 0, False
        if j.reads:                                 # (a pass waits for these, so they come before the writes)
            while place[0] != NULL and place[0].reads: place = &place[0].next
        elif w.last != NULL: place = &w.last.next
        j.next, place[0] = place[0], j
        if j.next == NULL: w.last = j
        pthread_cond_signal(&w.posted)
        pthread_mutex_unlock(&w.mutex)

    cdef bint retract(self, Job* j, bint running) noexcept:
        """Take a job back that waits, or, with `running`, in any state. Returns whether it is taken back."""
        cdef Worker* w = self.worker
        cdef Job* last
        cdef bint taken = running or j.state == IDLE
        if not self.is_usable():                    # (a child of a fork has no thread)
            j.state = IDLE
            return True
        pthread_mutex_lock(&w.mutex)
        if j.state == QUEUED:
            taken = unlink_job(&w.first, j)
            last = w.first
            while last != NULL and last.next != NULL: last = last.next
            w.last = last
        elif running:
            j.cancelled = True
            while j.state == RUNNING: pthread_cond_wait(&w.done, &w.mutex)
            unlink_job(&w.finished, j)
        if taken: j.state = IDLE
        pthread_mutex_unlock(&w.mutex)
        return taken

    cdef Job* next_done(self) noexcept:
        """Take back a job that is done, or NULL."""
        cdef Worker* w = self.worker
        cdef Job* j
        if not self.is_usable(): return NULL
        pthread_mutex_lock(&w.mutex)
        j = w.finished
        if j != NULL: w.finished, j.state = j.next, IDLE
        pthread_mutex_unlock(&w.mutex)
        return j

    cdef int wait(self, Job* j) except -1:
        """Wait until a job is done; without one, until any is done or none is left. Ctrl-C ends it."""
        cdef Worker* w = self.worker
        cdef double begun = seconds()
        cdef bint pending = True
        if not self.is_usable(): return 0
        self.waiters += 1
        try:
            while pending:
                with nogil: pending = pause(w, j)
                if pending: PyErr_CheckSignals()
        finally:
            self.waiters -= 1
            self.waited += seconds() - begun
        return 0

    cdef void hold_on(self, Job* j) noexcept:
        """Wait until a job is done, without letting go of the GIL: for those in the middle of an allocation."""
        cdef double begun = seconds()
        if not self.is_usable(): return
        while pause(self.worker, j): pass
        self.waited += seconds() - begun

    cdef void close(self) noexcept:
        """End the thread and close the file, if no other thread waits. Nothing may be queued."""
        cdef Worker* w = self.worker
        if w == NULL or self.waiters: return
        self.worker = NULL
        spills.discard(<size_t><void*>self)
        if w.fd < 0: return                         # (the mutex of a child of a fork may be locked, so it is not freed)
        pthread_mutex_lock(&w.mutex)
        w.ended = True
        pthread_cond_signal(&w.posted)
        pthread_mutex_unlock(&w.mutex)
        pthread_join(w.thread, NULL)
        pthread_mutex_destroy(&w.mutex)
        pthread_cond_destroy(&w.posted)
        pthread_cond_destroy(&w.done)
        close_descriptor(w.fd)
        free(w)
        if self.name is not None: remove(self.name)


def remove(name):
    """Remove a file that has kept its name. (What fails now is tried again at exit.)"""
    try: os.unlink(name)
    except FileNotFoundError: pass
    except OSError: return
    names.discard(name)


def remove_all():
    """At exit: remove the files that have kept their names."""
    for name in [*names]: remove(name)


def after_fork():
    """The child of a fork has no part in the files and threads of its parent."""
    cdef Spill s
    for address in spills:
        s = <Spill><void*><size_t>address
        if s.worker == NULL or s.worker.fd < 0: continue
        close_descriptor(s.worker.fd)
        s.worker.fd = -1
    names.clear()


atexit.register(remove_all)
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=after_fork)


# ---- failures on request ---------------------------------------------------------------------------------------------

cdef long fail_at = 0, calls = 0
cdef int failure = 0
cdef unsigned int delay = 0
cdef bint fail_persistent = False


cdef bint fails() noexcept nogil:
    """Whether this call to the system is the one that is to fail."""
    global calls
    calls += 1
    return fail_at and (calls == fail_at or fail_persistent and calls > fail_at)


def set_disk_failure(long n, int error=0, bint persistent=False):
    """For tests: let the n-th call to the disk from now on, or all from then on, fail with an errno, or, if that is 0,
    transfer nothing. n = 0: none. Returns the number of calls since the last time."""
    global fail_at, failure, fail_persistent, calls
    before = calls
    fail_at, failure, fail_persistent, calls = n, error, persistent, 0
    return before


def set_disk_delay(unsigned int microseconds):
    """For tests: let each call to the disk take so much longer."""
    global delay
    delay = microseconds
