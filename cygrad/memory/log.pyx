"""The log of a profile: every memory event with its time, its operation and its line of the program, 40 bytes each."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memmove

from cygrad.core.graph cimport Node
from cygrad.core.memory cimport ALLOCATED, CATEGORIES, FREED, Buffer, counters, set_observer
from cygrad.core.modes cimport Flags, flags
from cygrad.core.source cimport nearest
from cygrad.memory.scopes cimport Open

from cygrad.core.source import line_of

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef extern from "cygrad/platform.h" nogil:
    int64_t cg_now()

cdef enum:
    RECENT = 256            # sites that are found without a dictionary

cdef struct Event:
    int64_t time            # nanoseconds since the log began
    uintptr_t buffer
    size_t nbytes
    uint32_t site           # of an allocation: its place in `sites`
    uint8_t kind
    uint8_t category        # now, and before the event
    uint8_t before

cdef struct Site:
    void* what
    void* code
    int instruction
    uint32_t number

cdef tuple UNNAMED = ("tensor", "gradient", "solver state", "tensor", "tensor", "tensor")   # what no operator makes

cdef void* logs = NULL      # those that are open, the one opened last in front
cdef list sites = []        # (operator or name, whether backward, code, instruction); a log keeps the list of its time
cdef dict numbers = {}      # what stands in `sites`, by identity -> its place there
cdef Site recent[RECENT]


cdef uint32_t site_now(int category) except? 0:
    """The number of what is done here and now, for memory of a category."""
    cdef Flags* f = flags()
    cdef bint backward = f.node != NULL
    cdef int instruction = 0
    cdef Site* s
    cdef uintptr_t mixed
    what = (<Node>f.node).op if backward else <object>f.op if f.op != NULL else UNNAMED[category]
    code = nearest(&instruction)
    instruction = 2 * instruction + backward
    mixed = <uintptr_t><void*>what >> 4 ^ <uintptr_t><void*>code >> 5 ^ <uintptr_t>instruction * 37
    s = &recent[(mixed ^ mixed >> 8) % RECENT]
    if s.what == <void*>what and s.code == <void*>code and s.instruction == instruction: return s.number
    key = <uintptr_t><void*>what, <uintptr_t><void*>code, instruction
    number = numbers.get(key)
    if number is None:
        sites.append((what, backward, code, instruction >> 1))
        number = numbers[key] = len(sites) - 1
    s.what, s.code, s.instruction, s.number = <void*>what, <void*>code, instruction, number
    return s.number


cdef void observe(int kind, Buffer* b, int before) noexcept:
    """Write an event to every open log."""
    cdef uint32_t site = 0
    cdef bint collects = PyGC_Disable()             # a collection could free tensors: events in the middle of this one
    cdef void* p = logs
    cdef EventLog log
    try:
        if kind == ALLOCATED: site = site_now(b.category)
        while p != NULL:
            log = <EventLog>p
            log.add(kind, b, before, site)
            p = log.outer
    finally:
        if collects: PyGC_Enable()


def open_logs():
    """The logs that are open, the one opened first in front."""
    cdef list out = []
    cdef void* p = logs
    while p != NULL:
        out.insert(0, <EventLog>p)
        p = (<Open>p).outer
    return out


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc_clear                                 # (it may be in a cycle's reach, and open until it is deallocated)
cdef class EventLog(Open):
    """The memory events of a time, and what they add up to. When `most` are in memory the older half is folded into a
    state to go on from, so that a log of any length has a size; the peak and the sums stay exact."""
    cdef Event* event
    cdef Py_ssize_t room, n, dropped, most
    cdef int64_t began, ended
    cdef bint folding
    cdef list base_before, base_totals          # at the first event in memory: what stays of the bytes from before, ...
    cdef dict base_live                         # ... and buffer -> (bytes, category, site)
    cdef list samples                           # (time, live bytes by category): the course of what was dropped
    cdef object peak_state                      # state() at the peak, if that was dropped
    cdef readonly list sites                    # (operator or name, whether backward, code, instruction)
    cdef readonly list allocated                # by site: [allocations, bytes] of what was dropped
    cdef readonly tuple before                  # live bytes by category at the start
    cdef readonly size_t live, peak
    cdef readonly Py_ssize_t peak_at            # how many events had happened when most was live
    cdef readonly bint lost                     # there was no memory to write an event down

    @cython.embedsignature.format("c")
    def __init__(self, Py_ssize_t most):
        self.most = most

    def __dealloc__(self):
        self.stop()
        PyMem_RawFree(self.event)

    cpdef start(self):
        """From now on. All that can fail comes first."""
        global sites, numbers
        cdef int c
        if logs == NULL:
            first, none = [("", False, None, 0)], {}
            sites, numbers = first, none
            for c in range(RECENT): recent[c].what = NULL
        self.sites = sites
        self.before = tuple([counters.by_category[c] for c in range(<int>CATEGORIES)])
        self.base_before = list(self.before)
        self.base_totals = list(self.before)
        self.base_live, self.allocated, self.samples = {}, [], [(0, self.before)]
        self.live = self.peak = counters.live
        self.began = cg_now()
        self.link(&logs)
        set_observer(observe)

    cpdef stop(self):
        """Until now. Asks for no memory."""
        if not self.unlink(): return
        self.ended = cg_now() - self.began
        if logs == NULL: set_observer(NULL)

    def __len__(self):
        """How many events there were."""
        return self.dropped + self.n

    def duration(self):
        """Nanoseconds from the start to now, or to the end."""
        return cg_now() - self.began if self.place != NULL else self.ended

    cdef void add(self, int kind, Buffer* b, int before, uint32_t site) noexcept:
        cdef Event* e
        if self.lost: return
        if self.n == self.room:
            e = <Event*>PyMem_RawRealloc(self.event, (2 * self.room + 1024) * sizeof(Event))
            if e == NULL:
                self.lost = True
                return
            self.event = e
            self.room = 2 * self.room + 1024
        e = &self.event[self.n]
        e.time = cg_now() - self.began
        e.buffer, e.nbytes, e.site = <uintptr_t>b, b.nbytes, site
        e.kind, e.category, e.before = kind, b.category, before
        self.n += 1
        if kind == FREED: self.live -= b.nbytes
        elif kind == ALLOCATED:
            self.live += b.nbytes
            if self.live > self.peak:
                self.peak = self.live
                self.peak_at = self.dropped + self.n
        if self.n >= self.most and not self.folding: self.fold(self.n // 2)

    # ---- what they add up to

    cdef int play(self, Py_ssize_t i, list before, dict live, list totals) except -1:
        """One event: what is left from before the log, by category; the buffers made since; the live bytes by
        category."""
        cdef Event e = self.event[i]                # (a copy: the memory may move while Python works)
        cdef object nbytes = e.nbytes
        if e.kind == ALLOCATED:
            live[e.buffer] = nbytes, e.category, e.site
            totals[e.category] += nbytes
            return 0
        totals[e.before] -= nbytes
        found = live.pop(e.buffer, None)
        if found is None: before[e.before] -= nbytes
        if e.kind == FREED: return 0
        totals[e.category] += nbytes
        if found is None: before[e.category] += nbytes
        else: live[e.buffer] = nbytes, e.category, found[2]
        return 0

    cdef int fold(self, Py_ssize_t count) except -1:
        """Drop the first `count` events in memory."""
        self.folding = True
        try:
            if self.dropped < self.peak_at <= self.dropped + count: self.peak_state = self.state(self.peak_at)
            self.samples += self.course(512, count)
            if len(self.samples) > 2048: self.samples = thinned(self.samples)
            self.allocated = self.sums(count)
            for i in range(count): self.play(i, self.base_before, self.base_live, self.base_totals)
            memmove(self.event, self.event + count, (self.n - count) * sizeof(Event))
            self.n -= count
            self.dropped += count
        finally:
            self.folding = False
        return 0

    def state(self, Py_ssize_t count):
        """After the first `count` events: (bytes from before the log by category, {buffer: (bytes, category, site)} of
        those made since). Of what was dropped only the peak is known."""
        cdef list before, totals
        cdef dict live
        cdef Py_ssize_t i
        if count <= self.dropped and self.dropped: return self.peak_state
        before, live, totals = list(self.base_before), dict(self.base_live), list(self.base_totals)
        for i in range(count - self.dropped): self.play(i, before, live, totals)
        return before, live

    def course(self, Py_ssize_t points, count=None):
        """(nanoseconds, live bytes by category) over time, at most `points` and the one at the end: of each stretch of
        events the moment when most was live."""
        cdef list before = list(self.base_before), totals = list(self.base_totals), out = []
        cdef dict live = dict(self.base_live)
        cdef Py_ssize_t i, n = self.n if count is None else count
        cdef Py_ssize_t stretch = (n + points - 1) // points if n else 1
        cdef object most = -1, total
        for i in range(n):
            self.play(i, before, live, totals)
            total = sum(totals)
            if total > most:
                most = total
                best = self.event[i].time, tuple(totals)
            if (i + 1) % stretch == 0 or i == n - 1:
                out.append(best)
                most = -1
        return out if count is not None else self.samples + out

    def sums(self, count=None):
        """By site: [allocations, bytes]."""
        cdef list out = [list(pair) for pair in self.allocated]
        cdef Py_ssize_t i
        out += [[0, 0] for _ in range(len(self.sites) - len(out))]
        for i in range(self.n if count is None else count):
            if self.event[i].kind != ALLOCATED: continue
            pair = out[self.event[i].site]
            pair[0] += 1
            pair[1] += self.event[i].nbytes
        return out

    def lives(self):
        """(buffer, bytes, site, category at the end, nanoseconds from, to) of each buffer that was made in the log; to
        is None while it lives, from is 0 for those made in the part that was dropped."""
        cdef dict live = {b: (nbytes, category, site, 0) for b, (nbytes, category, site) in self.base_live.items()}
        cdef list out = []
        cdef Event e
        cdef Py_ssize_t i
        for i in range(self.n):
            e = self.event[i]
            if e.kind == ALLOCATED:
                live[e.buffer] = e.nbytes, e.category, e.site, e.time
                continue
            found = live.pop(e.buffer, None)
            if found is None: continue
            if e.kind == FREED: out.append((e.buffer, found[0], found[2], found[1], found[3], e.time))
            else: live[e.buffer] = found[0], e.category, found[2], found[3]
        out += [(b, nbytes, site, category, time, None) for b, (nbytes, category, site, time) in live.items()]
        return out

    def origin(self, buffer):
        """The site where a live buffer was made; None if that was before the log (or it is not its buffer)."""
        cdef uintptr_t wanted = buffer
        cdef Py_ssize_t i
        for i in range(self.n - 1, -1, -1):
            if self.event[i].buffer == wanted and self.event[i].kind == ALLOCATED: return self.event[i].site
        found = self.base_live.get(wanted)
        return None if found is None else found[2]

    def name(self, site):
        """(operation, "file:line", function) of a site."""
        what, backward, code, instruction = self.sites[site]
        if not isinstance(what, str): what = ".grad" if what is None else what.name + " (backward)" * backward
        if code is None: return what, "", ""
        return what, f"{code.co_filename}:{line_of(code, instruction)}", code.co_name


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Logged:
    """The scope of a log, which memory.profile makes a report of: a new log at each entry."""
    cdef readonly EventLog _log
    cdef Py_ssize_t most

    @cython.embedsignature.format("c")
    def __init__(self, most):
        self.most = most

    def __enter__(self):
        cdef EventLog log
        if self._log is not None and self._log.place != NULL:
            raise RuntimeError("this memory.profile() is open already; make another one for a scope inside it")
        log = EventLog(self.most)
        log.start()
        self._log = log
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if self._log is None or self._log.place == NULL:
            raise RuntimeError("memory.profile: this scope is not open, it cannot be left")
        self._log.stop()


cdef list thinned(list samples):
    """Of every two neighbours the one when more was live; the first stays."""
    cdef list out = samples[:1]
    for i in range(1, len(samples), 2): out.append(max(samples[i:i + 2], key=lambda s: sum(s[1])))
    return out
