"""Threads: how many kernels may use, and parallel_for, which distributes the parts of a job among them."""

import os

from cython.parallel cimport prange

cdef extern from "cygrad/platform.h" nogil:
    const int CG_HAVE_OPENMP
    int omp_get_num_procs()
    int omp_get_thread_num()
    long long cg_now()

cdef extern from "cygrad/team.h" nogil:
    ctypedef struct cg_team:
        long long ended
    cg_team* cg_own_team()
    void cg_enter(cg_team* team, int i)
    void cg_keep_away(cg_team* team, int threads)
    void cg_let_back(cg_team* team)

cdef enum:
    LATE = 300_000              # ns that the first thread may wait for the others, beyond its own working time
    BACKOFF = 16                # after two waits, work is serial for 16 times as long, so retries cost a sixteenth
    GAP = 1_000_000             # ns between jobs after which the other threads are kept off this CPU, which takes 6 us

cdef struct Waits:
    long long length            # ns that a wait took which has not made work serial; 0: there was none
    long long end
    long long serial_until      # the time until which work is serial

cdef int max_threads = 1024 if CG_HAVE_OPENMP else 1
cdef bint started = False       # whether a job has used several threads
cdef Waits waits

n_threads = 1


def set_num_threads(n: int) -> None:
    """Let kernels and matrix products use up to `n` threads. A kernel uses several only if it has enough work. The
    number is always 1 in a build without OpenMP, and in a forked child whose parent had used several threads. It starts
    as the environment variable CYGRAD_NUM_THREADS, or as the number of CPUs that the process may use. Raises ValueError
    if n is not an integer of at least 1."""
    global n_threads
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
        came = n if isinstance(n, int) else type(n).__name__
        raise ValueError(f"set_num_threads: n must be an integer of at least 1, got {came}")
    n_threads = min(int(n), max_threads)


def get_num_threads() -> int:
    """The number of threads that kernels may use."""
    return n_threads


def has_openmp():
    """Whether this build can use more than one thread."""
    return bool(CG_HAVE_OPENMP)


def _threads_at_start():
    wanted = os.environ.get("CYGRAD_NUM_THREADS", "")
    if not wanted:
        ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else omp_get_num_procs()
        return max(1, min(omp_get_num_procs(), ours))
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ValueError(f"CYGRAD_NUM_THREADS is {wanted!r}; it must be an integer of at least 1")
    return int(wanted)


def _after_fork():
    """A forked child has none of the parent's OpenMP threads and would wait for them forever. If the parent had started
    them, the child uses one thread; otherwise it uses one until set_num_threads() is called."""
    global max_threads
    if started: max_threads = 1
    set_num_threads(1)


set_num_threads(_threads_at_start())
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)


cpdef Waits judged(Waits waits, long long begin, long long mine, long long end) noexcept nogil:
    """What follows from a job that began at `begin`, whose first thread had done its own work at `mine`, and the others
    theirs at `end`. It waited if that took longer than LATE and its own work.

    One wait does not make work serial: the other threads may have been asleep. A second one does, if it comes within
    BACKOFF times the length of the first."""
    cdef long long wait = end - mine
    if wait <= LATE + (mine - begin): return waits
    if waits.length == 0 or begin - waits.end > BACKOFF * waits.length: return Waits(wait, end, waits.serial_until)
    return Waits(0, end, end + BACKOFF * (waits.length + wait))


cdef void parallel_for(range_t f, void* job, Py_ssize_t n, Py_ssize_t part, int t) noexcept nogil:
    """f(job, 0, part), f(job, part, 2 part) ... f(job, ..., n) on `t` threads; a thread that is free takes the next
    part.

    If other programs use the CPUs, the last part may wait milliseconds for its turn. After such waits (judged()) the
    first thread works alone for a while, on the same parts in the same order, so the results are the same."""
    global waits, started
    cdef long long begin, mine, end
    cdef Py_ssize_t parts, i
    cdef cg_team* team
    if n <= 0: return
    parts = (n + part - 1) // part
    if t > 1 and parts > 1:
        begin = cg_now()
        if begin >= waits.serial_until:
            mine = begin
            started = True
            team = cg_own_team()
            if begin - team.ended > GAP: cg_keep_away(team, t)
            for i in prange(parts, num_threads=t, schedule="dynamic", chunksize=1):
                f(job, i * part, min(n, (i + 1) * part))
                if omp_get_thread_num() == 0: set_time(&mine)
                else: cg_enter(team, omp_get_thread_num())
            end = cg_now()
            cg_let_back(team)
            waits = judged(waits, begin, mine, end)
            team.ended = end if waits.end != end else 0
            return
    for i in range(parts): f(job, i * part, min(n, (i + 1) * part))


cdef inline void set_time(long long* at) noexcept nogil:
    at[0] = cg_now()                                # through a pointer: prange would make a variable private
