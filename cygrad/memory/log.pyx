"""The log of a profile: every memory event with its time, operation, stack and shape, in 32 bytes."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
cimport cython
from libc.stdint cimport int64_t, uint32_t, uintptr_t
from libc.string cimport memcpy, memmove

from cygrad.core.graph cimport slots
from cygrad.core.interop.creation cimport HEAD
from cygrad.core.graph.tensor cimport Node
from cygrad.core.store.buffer cimport ALLOCATED, CATEGORIES, EXTERNAL, FREED, SAVED, Buffer, counters, set_observer
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.graph.slots cimport Slot, buffer_in
from cygrad.memory cimport sites as about
from cygrad.memory.scopes cimport Open
from cygrad.memory.states cimport SLOT_SAVED, SLOT_RELEASED, MARKED, Entry, Event, MemoryState

from cygrad.memory.sites import operation, reason, stack

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef extern from "cygrad/platform.h" nogil:
    int64_t cg_now()
    int64_t cg_ticks()

PHASES = ("", "forward", "backward", "update")

logs = NULL
cdef int updates = 0        # number of solvers that are updating
cdef int phase = 0          # the phase at the last allocation or mark; frees and moves get it too


cdef inline void set_phase(const Flags* f) noexcept:
    """Set `phase` to the current phase of the thread."""
    global phase
    if updates: phase = UPDATE
    elif f.passes or f.node != NULL or f.op == <void*>HEAD: phase = BACKWARD
    else: phase = FORWARD if f.recording else NO_PHASE


cdef void observe(int kind, Buffer* b, int before) noexcept:
    """Record an event of the pool."""
    cdef Flags* f
    cdef uint32_t site = 0
    if kind == ALLOCATED:
        f = flags()
        set_phase(f)
        site = about.site_now(f, b.category)
    write(kind, <uintptr_t>b, b.nbytes, b.category, before, site)


cdef void observe_kept(void* node, Slot* s) noexcept:
    """Record a new node (`s` is NULL), or that its slot has saved a buffer for backward. (Parameters and external
    memory do not count as saved.)"""
    cdef Buffer* b
    cdef uint32_t site
    if s == NULL:
        about.recorded(<Node>node)
        return
    b = buffer_in(s)
    if b == NULL or b.category != SAVED or b.flags & EXTERNAL: return
    site = about.keeper(<Node>node, s)
    if site: write(SLOT_SAVED, <uintptr_t>b, <size_t>s, SAVED, SAVED, site)


cdef void observe_emptied(void* node, Slot* s) noexcept:
    """Record that a slot is about to release a buffer."""
    cdef Buffer* b = buffer_in(s)
    if not b.flags & EXTERNAL: write(SLOT_RELEASED, <uintptr_t>b, <size_t>s, SAVED, SAVED, 0)


cdef inline void write(int kind, uintptr_t buffer, size_t nbytes, int category, int before, uint32_t site) noexcept:
    """Write an event to every open log."""
    cdef int64_t now = cg_ticks() if kind <= FREED or kind == MARKED else 0     # (the other kinds follow such an event)
    cdef void* p = logs
    while p != NULL:
        (<EventLog>p).add(now, kind, buffer, nbytes, category, before, site)
        p = (<Open>p).outer


cdef void begin_update() noexcept:
    """Mark the start of a solver's update. An update allocates nothing, so no other event would show it."""
    global updates, phase
    updates += 1
    phase = UPDATE
    if logs != NULL: write(MARKED, 0, 0, 0, 0, 0)


cdef void end_update() noexcept:
    global updates, phase
    if logs != NULL: write(MARKED, 0, 0, 0, 0, 0)
    updates -= 1
    phase = NO_PHASE


def open_logs():
    """The open logs, the first one opened first."""
    cdef list out = []
    cdef void* p = logs
    while p != NULL:
        out.insert(0, <EventLog>p)
        p = (<Open>p).outer
    return out


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc_clear                                 # (a cycle may refer to it, and it is open until it is deallocated)
cdef class EventLog(Open):
    """The memory events of a period, and their sums. When `max_events` events are in memory, the older half is folded
    into a base state, which bounds the size of the log. The peak and the sums stay exact."""
    cdef Event* event
    cdef Py_ssize_t capacity, n, max_events
    cdef readonly Py_ssize_t dropped            # events that are folded into `base`
    cdef int64_t began, ended, latest           # ticks
    cdef int64_t began_ns, ended_ns
    cdef int suspended                          # above 0: folding is suspended
    cdef MemoryState base                             # before the first event in memory
    cdef list samples                           # (event, time, live bytes by category) of some dropped events
    cdef list base_phases                       # [phase, event and time of its first, event and time after its last]
    cdef list removed                           # by phase: the number of entries removed from base_phases
    cdef MemoryState peak_state                       # the state at the peak, if that event was dropped
    cdef readonly list sites, frames, shapes, layers    # what the numbers in events refer to (memory/sites.pyx)
    cdef readonly list allocated                # by site: [allocations, bytes] of the dropped events
    cdef readonly tuple before                  # live bytes by category at the start
    cdef readonly size_t live, peak
    cdef readonly Py_ssize_t peak_at            # the number of events up to the peak
    cdef readonly bint lost                     # an event is missing because there was no memory for it

    def __cinit__(self):
        self.base, self.before = MemoryState(), (0,) * <int>CATEGORIES
        self.base_phases, self.allocated, self.samples = [], [], []
        self.sites, self.frames, self.shapes, self.layers = [], [], [], []
        self.removed = [0] * len(PHASES)

    @cython.embedsignature.format("c")
    def __init__(self, Py_ssize_t max_events):
        self.max_events = max_events

    def __dealloc__(self):
        self.stop()
        PyMem_RawFree(self.event)

    cpdef start(self):
        """Start logging. Everything that can fail runs first."""
        if logs == NULL: about.begin_sites()
        set_phase(flags())
        self.sites, self.frames, self.shapes, self.layers = about.sites, about.frames, about.shapes, about.layers
        self.before = tuple([counters.by_category[c] for c in range(<int>CATEGORIES)])
        self.base = MemoryState()
        for c in range(<int>CATEGORIES): self.base.before[c] = self.base.totals[c] = counters.by_category[c]
        self.base_phases, self.allocated, self.samples = [], [], [(0, 0, self.before)]
        self.removed = [0] * len(PHASES)
        self.live = self.peak = counters.live
        self.began, self.began_ns = cg_ticks(), cg_now()
        self.link(&logs)
        set_observer(observe)
        slots.slot_saved, slots.slot_emptied = observe_kept, observe_emptied

    cpdef stop(self):
        """Stop logging. It allocates nothing."""
        if not self.unlink(): return
        self.ended, self.ended_ns = cg_ticks() - self.began, cg_now() - self.began_ns
        if logs != NULL: return
        set_observer(NULL)
        slots.slot_saved = slots.slot_emptied = NULL

    def __len__(self):
        """The number of events."""
        return self.dropped + self.n

    def duration(self):
        """The ticks from the start to now, or to the end."""
        return cg_ticks() - self.began if self.place != NULL else self.ended

    def rate(self):
        """The average seconds per tick until now, or to the end."""
        cdef int64_t ticks = self.duration()
        cdef int64_t nanoseconds = cg_now() - self.began_ns if self.place != NULL else self.ended_ns
        return nanoseconds / 1e9 / ticks if ticks > 0 else 0.0

    @cython.final
    cdef inline void add(self, int64_t now, int kind, uintptr_t buffer, size_t nbytes, int category, int before,
                         uint32_t site) noexcept:
        cdef Event* e
        if self.n == self.capacity and not self.widen(): return
        e = &self.event[self.n]
        if now > self.latest + self.began: self.latest = now - self.began
        e.time, e.buffer, e.nbytes, e.site = self.latest, buffer, nbytes, site
        e.kind, e.category, e.before, e.phase = kind, category, before, phase
        self.n += 1
        if kind == FREED: self.live -= nbytes
        elif kind == ALLOCATED:
            self.live += nbytes
            if self.live > self.peak:
                self.peak = self.live
                self.peak_at = self.dropped + self.n
        if self.n >= self.max_events and not self.suspended: self.fold(self.n // 2)

    # ---- size

    @cython.final
    cdef bint widen(self) noexcept:
        """Enlarge the array of events. False if there is no memory; the log is then lost."""
        cdef Event* e = NULL
        if not self.lost: e = <Event*>PyMem_RawRealloc(self.event, (2 * self.capacity + 1024) * sizeof(Event))
        if e == NULL:
            self.lost = True
            return False
        self.event = e
        self.capacity = 2 * self.capacity + 1024
        return True

    cdef int fold(self, Py_ssize_t count) except -1:
        """Drop the first `count` events in memory."""
        cdef bint collects = PyGC_Disable()         # a collection could free tensors, which would add events here
        self.suspended += 1
        try:
            if self.dropped < self.peak_at <= self.dropped + count: self.peak_state = self.at(self.peak_at)
            self.samples += self.course(512, count)
            if len(self.samples) > 2048: self.samples = thinned(self.samples)
            self.base_phases = self.phases(count)
            for run in self.base_phases[:-2048]: self.removed[run[0]] += 1
            del self.base_phases[:-2048]
            self.allocated = self.sums(count)
            for i in range(count): self.base.play(&self.event[i])
            if self.base.lost: self.lost = True
            memmove(self.event, self.event + count, (self.n - count) * sizeof(Event))
            self.n -= count
            self.dropped += count
        finally:
            self.suspended -= 1
            if collects: PyGC_Enable()

    # ---- sums of the events

    cdef Py_ssize_t held(self, count) except -1:
        """The first `count` events in memory, or all of them."""
        return self.n if count is None else max(0, min(<Py_ssize_t>count, self.n))

    cdef MemoryState at(self, Py_ssize_t count):
        """The state after the first `count` events. Of the dropped events only the peak is known."""
        cdef MemoryState state
        if count <= self.dropped and self.dropped and self.peak_state is not None: return self.peak_state
        state = self.base.copy()
        for i in range(self.held(count - self.dropped)): state.play(&self.event[i])
        if state.lost: raise MemoryError("no memory for the report of a profile")
        return state

    def state(self, Py_ssize_t count):
        """The state after the first `count` events: (bytes from before the log by category, [(buffer, bytes, site,
        category, ticks)] of those made since, {buffer: [site]} with the reasons why slots of nodes save it)."""
        return self.at(count).shown()

    def totals(self):
        """The live bytes by category after all events."""
        cdef MemoryState state = self.at(len(self))
        return tuple([state.totals[c] for c in range(<int>CATEGORIES)])

    def course(self, Py_ssize_t points, count=None):
        """The live bytes over time: (event, ticks, live bytes by category) for at most `points` intervals of events,
        each at its maximum."""
        cdef MemoryState state = self.base.copy()
        cdef list out = []
        cdef Py_ssize_t i, n = self.held(count)
        cdef Py_ssize_t stretch = (n - 1) // max(points, <Py_ssize_t>1) + 1 if n else 1
        cdef size_t maximum = 0, total = 0
        cdef size_t best[CATEGORIES]
        cdef Py_ssize_t best_at = -1
        for c in range(<int>CATEGORIES): total += state.totals[c]
        for i in range(n):
            state.play(&self.event[i])
            if self.event[i].kind == ALLOCATED: total += self.event[i].nbytes
            elif self.event[i].kind == FREED: total -= self.event[i].nbytes
            if best_at < 0 or total > maximum:
                maximum, best_at = total, i
                memcpy(best, state.totals, sizeof(best))
            if (i + 1) % stretch == 0 or i == n - 1:
                out.append((self.dropped + best_at + 1, self.event[best_at].time,
                            tuple([best[c] for c in range(<int>CATEGORIES)])))
                best_at = -1
        return out if count is not None else self.samples + out

    def phases(self, count=None):
        """[phase, its first event, the ticks then, the event after its last, the ticks of its last] of each run of
        events of one phase (an index into PHASES). Runs without a phase are omitted."""
        cdef list out = [list(run) for run in self.base_phases]
        cdef Py_ssize_t i, n = self.held(count)
        cdef int phase, current = out[-1][0] if out and out[-1][3] == self.dropped else NO_PHASE
        for i in range(n):
            phase = self.event[i].phase
            if phase != current:
                if current != NO_PHASE and i: out[-1][3:] = self.dropped + i, self.event[i - 1].time
                if phase != NO_PHASE: out.append([phase, self.dropped + i, self.event[i].time, 0, 0])
                current = phase
        if current != NO_PHASE and n: out[-1][3:] = self.dropped + n, self.event[n - 1].time
        return out

    def passes(self):
        """The number of runs of events of each phase, in the order of PHASES."""
        cdef list counts = list(self.removed)
        for run in self.phases(): counts[run[0]] += 1
        return counts

    def sums(self, count=None):
        """[allocations, bytes] of each site."""
        cdef Py_ssize_t i, sites = len(self.sites)
        cdef size_t* sums = <size_t*>PyMem_RawCalloc(2 * sites, sizeof(size_t))
        if sums == NULL: raise MemoryError("no memory for the report of a profile")
        for i in range(self.held(count)):
            if self.event[i].kind != ALLOCATED: continue
            sums[2 * self.event[i].site] += 1
            sums[2 * self.event[i].site + 1] += self.event[i].nbytes
        try:
            out = [[sums[2 * i], sums[2 * i + 1]] for i in range(sites)]
            for i, (allocations, nbytes) in enumerate(self.allocated):
                out[i][0] += allocations
                out[i][1] += nbytes
            return out
        finally:
            PyMem_RawFree(sums)

    def lives(self):
        """Yield (buffer, bytes, site, category at the end, ticks from, to) of each buffer that was allocated in the
        log; `to` is None while it lives. Of the dropped events, only buffers that lived on are included."""
        cdef MemoryState state = self.base.copy()
        cdef Entry* found
        cdef Py_ssize_t i = 0, n = self.n
        self.suspended += 1                             # (suspend folding until the generator ends)
        try:
            for i in range(n):
                if self.event[i].kind == FREED:
                    found = state.live.find(self.event[i].buffer)
                    if found != NULL:
                        yield (self.event[i].buffer, found.nbytes, found.site, found.category, found.time,
                               self.event[i].time)
                state.play(&self.event[i])
            for buffer, nbytes, site, category, begun in state.live.listed():
                yield buffer, nbytes, site, category, begun, None
        finally:
            self.suspended -= 1

    def origin(self, buffer):
        """The site where a live buffer was allocated; None if that was before the log or if the buffer is unknown."""
        cdef uintptr_t wanted = buffer
        cdef Entry* found = self.base.live.find(wanted)
        for i in range(self.n - 1, -1, -1):
            if self.event[i].buffer == wanted and self.event[i].kind == ALLOCATED: return self.event[i].site
        return None if found == NULL else found.site

    def made_last(self):
        """The operation of the allocation that reached the peak; "" if that event was dropped or there is none."""
        cdef Py_ssize_t i = self.peak_at - self.dropped - 1
        return operation(self.sites[self.event[i].site]) if i >= 0 else ""

    def name(self, site):
        """(operation, "file:line", function) of a site."""
        found = self.stack(site)
        if not found: return operation(self.sites[site]), "", ""
        file, line, function = found[-1]
        return operation(self.sites[site]), f"{file}:{line}", function

    def stack(self, site):
        """The (file, line, function) of each frame of a site, the outermost first."""
        return stack(self.frames, self.sites[site][2])

    def shape(self, site):
        """(sizes, name of the dtype) of the tensor that was allocated at a site; None if it was not a tensor."""
        return self.shapes[self.sites[site][3]]

    def layer(self, site):
        """The path of the layer of a site; "" if there is none."""
        return self.layers[self.sites[site][4]]

    def reason(self, site):
        """The reason why a node saves a buffer, such as "gelu needs its input"."""
        return reason(self.sites[site])


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Logged:
    """The scope of a log, the base of memory.profile. Each entry starts a new log."""
    cdef readonly EventLog _log
    cdef Py_ssize_t max_events

    @cython.embedsignature.format("c")
    def __init__(self, max_events):
        self.max_events = max_events

    def __enter__(self):
        cdef EventLog log
        if self._log is not None and self._log.place != NULL:
            raise RuntimeError("this memory.profile() is already open; make another one for a scope inside it")
        log = EventLog(self.max_events)
        log.start()
        self._log = log
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if self._log is None or self._log.place == NULL:
            raise RuntimeError("memory.profile: this scope is not open, so it cannot be closed")
        self._log.stop()


cdef list thinned(list samples):
    """Keep the first sample, and of each following pair the one with more live bytes."""
    cdef list out = samples[:1]
    for i in range(1, len(samples), 2): out.append(max(samples[i:i + 2], key=lambda s: sum(s[2])))
    return out
