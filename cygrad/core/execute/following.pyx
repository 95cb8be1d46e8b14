"""Eager steps that are like an earlier one, under a budget: what is evicted next was planned.

A step leaves a SeenStep: what it called and what its backward read, and, between, how much other memory there was. That
is a schedule, which the planner of captured programs can simulate (simulating.pyx). While a later step does the same,
its evictions are those of the cheapest simulated run, in that order, each when memory is short. They are never needed
for the bound, since what is short then is found as in a first step (budget.pyx); so a step that differs, or needs more
than before, costs more and is as right."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcmp, memset

from cygrad.core.execute.executor cimport Execution
from cygrad.core.execute.recipes cimport (
    DROPPED, GONE, KEPT, STUCK, evict, executed_work, executing, is_evictable,
)
from cygrad.core.execute.recomputing cimport runs
from cygrad.core.execute.simulating cimport Simulation
from cygrad.core.graph.steps cimport READS, WRITES, Step
from cygrad.core.graph.tensor cimport next_number
from cygrad.core.graph.trace cimport traces
from cygrad.core.store.buffer cimport counters

cdef enum:
    PASSES = 4              # backward passes that a step has at most
    KNOWN = 4               # sequences that are kept
    PLANS = 3               # that are made for one, if steps repeat more work than planned
    MOST = 1 << 16          # entries of one

cdef double WORSE = 1.1     # more than so many times of the planned work
cdef int CLOSE = 7          # a plan is followed if other memory has changed by less than the budget >> CLOSE


cdef void* room(void* p, int n, int* capacity, size_t size) except NULL:
    """Make room in an array for one more than n."""
    cdef int wanted = 2 * capacity[0] + 64
    if n < capacity[0]: return p
    p = PyMem_Realloc(p, wanted * size)
    if p == NULL: raise MemoryError("no memory for a step under a budget")
    capacity[0] = wanted
    return p


cdef class SeenStep:
    def __cinit__(self):
        self.serial, self.before, self.planned, self.unplanned = next_number(), executed_work, -1, -1

    def __dealloc__(self):
        PyMem_Free(self.entries)
        PyMem_Free(self.contents)
        PyMem_Free(self.moments)
        PyMem_Free(self.uses)

    cdef int move(self, Content* c, Place to) noexcept:
        """A content is somewhere else now."""
        self.count(c, -1)
        c.place = to
        return self.count(c, 1)

    cdef int count(self, const Content* c, int sign) noexcept:
        if c.place == NAMED or c.place == SAVED: self.held += sign * c.nbytes
        if c.place == SAVED and not c.stuck: self.saved += sign * c.nbytes
        return 0

    cdef int look(self) except -1:
        """Find out which contents nothing but slots refers to any more."""
        cdef Content* c
        cdef int k, n = 0
        for k in range(self.n_named):
            c = &self.contents[self.named[k]]
            if c.value == NULL or (<Value>c.value).memory() == NULL: self.move(c, NOWHERE)
            elif in_slots_alone(<Value>c.value): self.move(c, SAVED)
            elif k < self.n_named - MOST_NAMED: self.move(c, LEFT)
            else:
                self.named[n], n = self.named[k], n + 1
                continue
            if c.born < self.n_moments - 1:
                if self.moments[self.n_moments - 1].makes < self.n_contents: self.begin_moment()
                self.use(self.named[k])             # (not in the moment of a call, of which it is no operand)
            if c.named < 0: c.named = self.n_moments - 1
            self.open = False
        self.n_named = n
        return 0

    cdef void name(self, int content) noexcept:
        """Something refers to a content. (Between two calls of look(), one operation or one slot names some.)"""
        if self.contents[content].place == NAMED: return
        self.move(&self.contents[content], NAMED)
        self.named[self.n_named] = content
        self.n_named += 1

    cdef int begin_moment(self) except -1:
        cdef Moment* m
        self.moments = <Moment*>room(self.moments, self.n_moments, &self.rooms[2], sizeof(Moment))
        m = &self.moments[self.n_moments]
        memset(m, 0, sizeof(Moment))
        m.entry, m.uses, m.makes = self.n_entries, self.n_uses, self.n_contents
        m.level = m.peak = self.top = counters.live - self.held
        self.n_moments += 1
        self.open, self.taken = True, False
        return 0

    cdef int use(self, int content) except -1:
        """The last moment uses a content."""
        self.uses = <int*>room(self.uses, self.n_uses, &self.rooms[3], sizeof(int))
        self.uses[self.n_uses] = content
        self.n_uses += 1
        return 0

    # ---- the plan

    cdef ProgramSchedule schedule(self):
        """The moments as steps of a program, and the contents as its buffers."""
        cdef ProgramSchedule s = ProgramSchedule.__new__(ProgramSchedule)
        cdef Moment* m
        cdef Step step
        cdef int at, k, reads, makes
        s.steps, s.storages, s.split = [], [], self.n_moments
        for k in range(self.n_contents):
            s.add(-1)
            s.lives[k].nbytes = self.contents[k].nbytes
            s.lives[k].kept = self.contents[k].place == SAVED or self.contents[k].place == NAMED
        for at in range(self.n_moments):
            m = &self.moments[at]
            reads = (m[1].uses if at + 1 < self.n_moments else self.n_uses) - m.uses
            makes = (m[1].makes if at + 1 < self.n_moments else self.n_contents) - m.makes
            step = Step.__new__(Step)
            step.take(reads + makes, 0, 0)
            step.n_pointers, step.work, step.pure = reads + makes, m.work, makes > 0
            for k in range(reads):
                step.pointers[k].life, step.pointers[k].access = self.uses[m.uses + k], READS
            for k in range(makes):
                step.pointers[reads + k].life, step.pointers[reads + k].access = m.makes + k, WRITES
                if self.contents[m.makes + k].stuck: step.pure = False
            s.steps.append(step)
        return s

    cdef int make_plan(self, Py_ssize_t bound, Py_ssize_t start) except -1:
        """Find out what a step like this evicts, if `start` bytes of other memory are there as it begins."""
        cdef Simulation x = Simulation.__new__(Simulation)
        cdef Moment* m
        cdef Content* c
        cdef Py_ssize_t least = self.moments[0].level, before
        cdef int at, item
        x.read_schedule(self.schedule())
        x.eager = True
        for at in range(self.n_moments): least = min(least, self.moments[at].level)
        before = least
        for at in range(self.n_moments):
            m = &self.moments[at]
            x.steps[at].room += max(m.peak - m.level, 0)
            x.steps[at].change = m.level - before
            before = m.level
        for item in range(x.n_items):
            c = &self.contents[x.items[item].life]
            x.items[item].named, x.items[item].bits = c.named if c.named >= 0 else self.n_moments, c.bits
        least += start - self.start()
        self.plan_nothing(bound, start)
        if least >= bound: return 0
        x.most = x.bearable
        x.run(1 << 62, 0, False)
        x.whole = x.peak
        found = runs(x, bound - least)
        if not found: return 0
        work, less, rule, _ = found[0]
        if self.under == bound and self.unplanned < work and is_close(start, self.start(), bound): return 0
        self.limit = x.whole - <size_t>less + least
        x.most, x.moves = x.bearable, []
        x.run(x.whole - <size_t>less, rule, False)
        self.planned, self.work = x.repeated, x.work
        for at, item, made in x.moves:
            self.plan.append((self.moments[min(at, self.n_moments - 1)].entry, x.items[item].life, made))
        return 0

    cdef int plan_nothing(self, Py_ssize_t bound, Py_ssize_t start) except -1:
        """Let steps like this find what to evict by themselves."""
        self.plan, self.planned, self.plans = [], -1, self.plans + 1
        self.bound, self.began, self.limit = bound, start, bound
        return 0

    cdef int follow(self, SeenStep m) except -1:
        """The step has done the same as `m`. Keep the plan of that, if it is still the best."""
        cdef double work = self.unplanned
        cdef int k
        cdef bint good = is_close(m.began, self.start(), m.bound) and is_close(m.start(), self.start(), m.bound)
        for k in range(self.n_contents):
            good &= m.contents[k].stuck or not self.contents[k].stuck
            self.contents[k].stuck |= m.contents[k].stuck
        if m.plan is None: return 0
        self.plans = m.plans
        if m.planned >= 0:                          # (it was followed)
            self.unplanned = m.unplanned
            self.under = m.under if is_close(m.start(), self.start(), m.bound) else 0
            if good and work > m.work * WORSE:      # the plan was not what happened
                good = self.plans == PLANS
                if self.under == m.bound and work > self.unplanned and good:
                    return self.plan_nothing(m.bound, m.began)
        if good:
            self.plan, self.planned, self.work = m.plan, m.planned, m.work
            self.bound, self.began, self.limit = m.bound, m.began, m.limit
        return 0

    cdef Py_ssize_t start(self) noexcept:
        return self.moments[0].level if self.n_moments else counters.live - self.held


cdef class Follower(Observer):
    def __cinit__(self):
        self.now, self.known, self.left = SeenStep(), [], executed_work

    cdef int begin(self) except -1:
        """A step ends, and the next one begins."""
        cdef SeenStep now = self.now, m = self.model
        cdef int k
        for k in range(now.n_contents): now.contents[k].value = NULL    # (it does not see them go any more)
        if now.n_entries:
            now.unplanned = executed_work - now.before
            if m is not None and m.n_entries == now.n_entries:
                now.follow(m)
                self.known.remove(m)
            self.known.insert(0, now)
            del self.known[KNOWN:]
        self.now = SeenStep()
        self.model = self.known[0] if self.known else None
        self.passes, self.reading = 0, False
        self.rewind()
        return 0

    cdef int rewind(self) except -1:
        """The step is at the begin of its plan."""
        self.cursor, self.ahead, self.there = 0, 0, set()
        return 0

    cdef bint holds(self) noexcept:
        """Whether backward can still read what the step has made."""
        cdef int k
        for k in range(self.now.n_contents):
            if self.now.contents[k].value != NULL and (<Value>self.now.contents[k].value).slots: return True
        return False

    cdef int note(self, uint64_t what) except -1:
        """An entry. The model is a sequence that has the same so far."""
        cdef SeenStep now = self.now, m = self.model
        now.entries = <uint64_t*>room(now.entries, now.n_entries, &now.rooms[0], sizeof(uint64_t))
        now.entries[now.n_entries] = what
        now.n_entries += 1
        now.moments[now.n_moments - 1].entry, now.taken = now.n_entries, True
        if m is None or m.n_entries >= now.n_entries and m.entries[now.n_entries - 1] == what: return 0
        self.model = None
        self.rewind()
        for m in self.known:
            if m.n_entries < now.n_entries: continue
            if memcmp(m.entries, now.entries, now.n_entries * sizeof(uint64_t)): continue
            self.model = m
            break
        return 0

    cdef int called(self, Recipe r, const Execution* e) except -1:
        cdef SeenStep now
        cdef Moment* m
        cdef Content* c
        cdef Value v
        cdef uint64_t what = mixed(<size_t><void*>r.op, <uint64_t>r.work)
        cdef Py_ssize_t made = 0
        cdef int k
        cdef bint first = False
        if traces(): return 0
        if self.reading and not e.thread.passes:     # a backward pass has ended
            self.reading = False
            self.passes += 1
            first = self.passes == PASSES or not self.holds()
        if first or self.now.n_entries == MOST: self.begin()
        now = self.now
        if not now.open or now.taken:               # (else it began when the results got their memory)
            now.look()
            now.begin_moment()
        for x in r.values:
            v = x
            k = self.content_of(v)
            what = mixed(what, k)
            if k >= 0: now.use(k)
        m = &now.moments[now.n_moments - 1]
        for k in range(e.call.n_out):
            v = <Value>r.outputs[k]
            now.contents = <Content*>room(now.contents, now.n_contents, &now.rooms[1], sizeof(Content))
            c = &now.contents[now.n_contents]
            memset(c, 0, sizeof(Content))
            v.observer, v.sequence, v.item = self, now.serial, now.n_contents
            c.value, c.nbytes, c.born, c.named = <void*>v, v.watch.buffer.nbytes, now.n_moments - 1, -1
            now.n_contents += 1
            now.name(v.item)
            made += c.nbytes
            what = mixed(what, c.nbytes)
        if first: m.level -= made + (e.workspace.nbytes if e.workspace != NULL else 0)      # (which it already has)
        m.work, m.peak = r.work, max(m.peak - made, m.level)
        self.note(what)
        now.open = False
        return 0

    cdef int content_of(self, Value v) noexcept:
        """The number of the content of a Value; -1: it is other memory."""
        if v is None or v.observer is not self or v.sequence != self.now.serial: return -1
        return v.item if self.now.contents[v.item].place != LEFT else -1

    cdef int reads(self, Value v) except -1:
        cdef SeenStep now = self.now
        cdef int k = self.content_of(v)
        now.look()
        self.reading = True
        now.begin_moment()
        if k >= 0:
            now.use(k)
            now.name(k)
            now.contents[k].read = now.n_entries + 1
        return self.note(mixed(1, k))

    cdef bint keeps(self, Value v) noexcept:
        cdef SeenStep m = self.model
        if m is None or m.plan is None or v.sequence != self.now.serial: return False
        while self.ahead < len(m.plan):
            entry, content, made = m.plan[self.ahead]
            if entry > self.now.n_entries: break
            if made: self.there.add(content)
            else: self.there.discard(content)
            self.ahead += 1
        return v.item in self.there

    cdef void saw(self, Value v, Change what) noexcept:
        cdef Content* c
        if v.sequence != self.now.serial: return
        c = &self.now.contents[v.item]
        if what == GONE: c.value = NULL
        elif what == STUCK:
            self.now.count(c, -1)
            c.stuck = True
            self.now.count(c, 1)
        elif what == KEPT:
            if c.place == NOWHERE: self.now.move(c, SAVED)
            elif v.held.signs: c.bits = c.nbytes >> 5       # (about)
        elif what == DROPPED and c.place == SAVED: self.now.move(c, NOWHERE)

    cdef Py_ssize_t sample(self, Py_ssize_t nbytes) except -1:
        cdef SeenStep now = self.now
        cdef Moment* m
        if executing: return 0
        now.look()
        if not now.open or <Py_ssize_t>counters.live - now.held < now.top: now.begin_moment()
        m = &now.moments[now.n_moments - 1]
        now.top = counters.live + nbytes - now.held
        m.peak = max(m.peak, now.top)
        return now.saved

    cdef int evict_planned(self, Py_ssize_t nbytes, Py_ssize_t bound) except -1:
        cdef SeenStep now = self.now, m = self.model
        cdef Content* c
        cdef Value v
        cdef int entry, content
        now.under = bound
        if m is None or self.planning: return 0
        if m.plan is None or m.bound != bound or not is_close(m.began, now.start(), bound):
            if <Py_ssize_t>counters.live + nbytes <= bound: return 0
            self.planning = True
            self.rewind()
            try: m.make_plan(bound, now.start())
            finally: self.planning = False
        while <Py_ssize_t>counters.live + nbytes > m.limit and self.cursor < len(m.plan):
            entry, content, made = m.plan[self.cursor]
            if entry > now.n_entries + 1: break     # (results get memory before their call is noted)
            self.cursor += 1
            if made or content >= now.n_contents: continue
            c = &now.contents[content]
            if c.value == NULL or c.read > entry: continue
            v = <Value>c.value
            if is_evictable(v): evict(v, False)
        return 0

    @property
    def planned(self):
        """The calls that the plan of the step repeats; None: there is no plan."""
        cdef SeenStep m = self.model
        return m.planned if m is not None and m.plan is not None and m.planned >= 0 else None


cdef inline bint in_slots_alone(Value v) noexcept:
    return v.held != NULL and v.held.holders == 1 + v.held.signs


cdef inline bint is_close(Py_ssize_t a, Py_ssize_t b, Py_ssize_t bound) noexcept:
    return abs(a - b) <= bound >> CLOSE


cdef inline uint64_t mixed(uint64_t a, uint64_t b) noexcept:
    """A hash of both."""
    a = (a ^ (b + <uint64_t>0x9E3779B97F4A7C15)) * <uint64_t>0xBF58476D1CE4E5B9
    return a ^ a >> 29
