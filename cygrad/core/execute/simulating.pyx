"""Simulated runs of a schedule in less memory than it needs: what is dropped, and when it is made again.

When a step needs more than there is, the content with the lowest score is dropped,

    score = price**a / (nbytes * distance**b)

where `price` is the work to make it again, what would have to be made before it included, and `distance` the number of
steps until its next use. Content that is not needed again is dropped at once. (With a = 1 and the time since the last
use in the place of the distance, this is dynamic tensor rematerialization, Kirisame et al., 2021, arXiv:2006.09616. A
program knows the future.)

A step can run again if it does nothing but write its results, and if what it reads is unchanged."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.math cimport pow
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from cygrad.core.execute.placing cimport Interval
from cygrad.core.execute.reusing cimport reuse
from cygrad.core.execute.schedule cimport in_arena
from cygrad.core.graph.steps cimport READS, WRITES, Pointer, Step, repeated
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.trace cimport GRADIENT, TENSOR, Storage
from cygrad.core.store.buffer cimport EXTERNAL

cdef enum:
    DEPTH = 256             # steps that the price of an item counts at most
    MOST_WORK = 16          # a run that repeats more than so many times the work is no plan

cdef double[N_A] exponents_a = [0.5, 0.75, 1, 1.5]
cdef double[N_B] exponents_b = [0.25, 0.5, 1]


cdef int order(const void* a, const void* b) noexcept nogil:
    return (<const int*>a)[0] - (<const int*>b)[0]


cdef class Simulation:

    def __dealloc__(self):
        PyMem_Free(self.items)
        PyMem_Free(self.steps)
        PyMem_Free(self.lists)
        PyMem_Free(self.powers)
        PyMem_Free(self.lives_before)

    cdef int allocate(self) except -1:
        """Make room for what is known of the steps and of the items."""
        cdef Step step
        cdef int n = self.n_steps, m = self.schedule.n, total = 1, k
        for step in self.schedule.steps: total += step.n_pointers
        self.items = <Item*>PyMem_Calloc(m + total, sizeof(Item))
        self.steps = <StepUses*>PyMem_Calloc(n + 1, sizeof(StepUses))
        self.lists = <int*>PyMem_Calloc(6 * total + 3 * m + 2 * n + 3, sizeof(int))
        self.powers = <double*>PyMem_Calloc(N_B * (n + 2), sizeof(double))
        if self.items == NULL or self.steps == NULL or self.lists == NULL or self.powers == NULL:
            raise MemoryError("no memory for the plan of a program")
        for k in range(N_B * (n + 2)): self.powers[k] = pow(k % (n + 2) + 1, exponents_b[k // (n + 2)])
        self.reads, self.makes, self.uses = self.lists, self.lists + total, self.lists + 2 * total
        self.owners, self.current = self.uses + total, self.uses + 2 * total
        self.candidates = self.current + m
        self.waiting = self.candidates + m + total
        self.visiting = self.waiting + n + 1
        return 0

    cdef int read_schedule(self, ProgramSchedule s) except -1:
        """Find out what each step reads and computes."""
        cdef Step step
        cdef Item* x
        cdef StepUses* u
        cdef int i, at, n_uses = 0
        self.schedule, self.n_steps = s, len(s.steps)
        self.allocate()
        for i in range(s.n): self.current[i] = -1
        for at in range(self.n_steps):
            step, u = <Step>s.steps[at], &self.steps[at]
            u.reads, u.makes, u.work = self.n_reads, self.n_makes, step.work
            self.bearable += MOST_WORK * step.work
            self.read_step(step, at)
            u[1].owners = u.owners + step.n_pointers
        self.steps[self.n_steps].reads, self.steps[self.n_steps].makes = self.n_reads, self.n_makes
        for i in range(s.n):
            if self.current[i] >= 0: self.items[self.current[i]].kept = s.lives[i].kept
        for i in range(self.n_items):               # (so far, `last` is the number of uses)
            x = &self.items[i]
            x.first, n_uses = n_uses, n_uses + x.last
            x.last = x.first
        for at in range(self.n_steps):
            u = &self.steps[at]
            for i in range(u.makes, u[1].makes): self.add_use(&self.items[self.makes[i]], at)
            for i in range(u.reads, u[1].reads): self.add_use(&self.items[self.reads[i]], at)
        self.find_rooms()
        self.find_shared()
        return self.find_repeatable()

    cdef int read_step(self, Step step, int at) except -1:
        """Find out what a step reads and computes."""
        cdef ProgramSchedule s = self.schedule
        cdef Pointer* p
        cdef int* owners = self.owners + self.steps[at].owners
        cdef int k, item, new = self.n_items        # items from here on are new
        for k in range(step.n_pointers):
            p = &step.pointers[k]
            owners[k] = -1
            if not in_arena(s, p.life) or not p.access & READS: continue
            item = self.current[p.life] if self.current[p.life] >= 0 else self.add_item(p.life, -1)
            owners[k] = item
            self.read_access(item, at, p.access, item < new)
        for k in range(step.n_pointers):
            p = &step.pointers[k]
            if not in_arena(s, p.life) or p.access & READS: continue
            item = self.current[p.life]
            if item < 0: item = self.add_item(p.life, -1)
            elif item < new and self.items[item].next == at and self.items[item].writer != at:
                item = self.add_item(p.life, item)
            owners[k] = self.current[p.life] = item
            self.read_access(item, at, WRITES, item < new)
        return 0

    cdef int read_access(self, int item, int at, int access, bint reads) noexcept:
        """Count a step among those that use an item, and among those that write it."""
        cdef Item* x = &self.items[item]
        if access & WRITES and x.writer != at: x.writer, x.writers = at, x.writers + 1
        if x.next == at: return 0                   # (the step has several addresses in it)
        x.next = at
        x.last += 1
        if reads: self.reads[self.n_reads], self.n_reads = item, self.n_reads + 1
        return 0

    cdef int add_item(self, int life, int over) noexcept:
        """A new item in a virtual buffer, which is written over the item `over`; -1: over none."""
        cdef Item* x = &self.items[self.n_items]
        x.nbytes, x.life, x.over, x.writer, x.next = self.schedule.lives[life].nbytes, life, over, -1, -1
        self.current[life] = self.n_items
        self.makes[self.n_makes], self.n_makes = self.n_items, self.n_makes + 1
        self.n_items += 1
        return self.n_items - 1

    cdef int find_rooms(self) noexcept:
        """Remove from `makes` what only its own step uses. (That needs room for it.)"""
        cdef Item* x
        cdef StepUses* u
        cdef int at, k, n = 0, first, stop
        for at in range(self.n_steps):
            u = &self.steps[at]
            first, stop, u.makes = u.makes, u[1].makes, n
            for k in range(first, stop):
                x = &self.items[self.makes[k]]
                if x.last - x.first > 1 or x.kept or x.over >= 0: self.makes[n], n = self.makes[k], n + 1
                else: u.room += x.nbytes
        self.steps[self.n_steps].makes = n
        return 0

    cdef void add_use(self, Item* x, int at) noexcept:
        self.uses[x.last] = at
        x.last += 1

    cdef int find_repeatable(self) except -1:
        """Find out until when each item can be made again: as long as nothing has written to what its step reads."""
        cdef ProgramSchedule s = self.schedule
        cdef Step step
        cdef Item* x
        cdef StepUses* u
        cdef int k, at, memory, storages = len(s.storages) + 1, never = self.n_steps + 1
        cdef int* next_write = <int*>PyMem_Calloc(storages + self.n_items, sizeof(int))
        if next_write == NULL: raise MemoryError("no memory for the plan of a program")
        for k in range(storages + self.n_items): next_write[k] = never
        for at in range(self.n_steps - 1, -1, -1):
            step, u = <Step>s.steps[at], &self.steps[at]
            u.valid = never if step.pure else -1
            for k in range(step.n_pointers):
                memory = self.memory_of(&step.pointers[k], self.owners[u.owners + k])
                if memory < 0: continue
                if step.pointers[k].access & READS: u.valid = min(u.valid, next_write[memory])
                if step.pointers[k].access & WRITES:
                    if memory < storages: u.valid = -1
                    else:
                        x = &self.items[memory - storages]
                        if x.writers > 1 or x.over >= 0: u.valid = -1
            for k in range(step.n_pointers):
                memory = self.memory_of(&step.pointers[k], self.owners[u.owners + k])
                if memory >= 0 and step.pointers[k].access & WRITES: next_write[memory] = at
            for k in range(storages if step.writes_unseen else 0): next_write[k] = at
        PyMem_Free(next_write)
        for at in range(self.n_steps):
            u = &self.steps[at]
            for k in range(u.reads, u[1].reads):
                x = &self.items[self.reads[k]]
                if x.writer >= 0: u.valid = min(u.valid, x.valid)
                elif not x.kept: u.valid = min(u.valid, self.uses[x.last - 1])
            for k in range(u.makes, u[1].makes):
                x = &self.items[self.makes[k]]
                x.valid = u.valid
                if u.valid <= at or x.writer != at: x.writer = -1
        return 0

    cdef int memory_of(self, const Pointer* p, int item) except? -1:
        """The number of the memory of an address; -1: it has none. Storages have numbers of their own, but for those
        that can overlap with others: these have one, and items follow."""
        if p.life >= 0: return len(self.schedule.storages) + 1 + item if item >= 0 else -1
        return len(self.schedule.storages) if p.storage in self.shared else p.storage

    cdef int find_shared(self) except -1:
        """Set `shared`, the numbers of the storages that can overlap with others, and so count as one: memory of
        others, tensors that share the memory of a .grad, and these gradients."""
        cdef Storage s
        cdef Tensor t
        found = {}
        self.shared = set()
        for s in self.schedule.storages:
            t = s.tensor if s.kind == TENSOR else s.leaf.grad if s.kind == GRADIENT else None
            if t is None: continue
            if t.buffer.flags & EXTERNAL: self.shared.add(s.number)
            found.setdefault(<size_t>t.buffer, []).append(s.number)
        for numbers in found.values():
            if len(numbers) > 1: self.shared.update(numbers)
        return 0

    # ---- the simulation

    cdef bint run(self, size_t limit, int rule, bint listed) except -1:
        """Simulate a run in `limit` bytes. False: it needs more, at step `now`, or more work than `most`. `listed`: set
        `found` to its steps."""
        cdef StepUses* u
        cdef Item* x
        cdef size_t needed
        cdef int k, i
        self.limit, self.rule, self.live, self.peak, self.at, self.visit = limit, rule, 0, 0, 0, 0
        self.distances = self.powers + rule % N_B * (self.n_steps + 2)
        self.repeated, self.work, self.n_candidates, self.split = 0, 0, 0, -1
        self.found = [] if listed else None
        for i in range(self.n_items):
            x = &self.items[i]
            x.next, x.number, x.pins, x.place, x.price, x.lost, x.again = x.first, -1, 0, -1, -1, False, False
        for k in range(self.n_steps): self.steps[k].visit = 0
        for self.now in range(self.n_steps):
            u = &self.steps[self.now]
            if self.now % 64 == 0: PyErr_CheckSignals()
            if self.now == self.schedule.split:
                if not self.make_kept(): return False
                self.split = self.at
            self.live += u.change
            needed = u.room
            for k in range(u.makes, u[1].makes):
                if self.items[self.makes[k]].over < 0: needed += self.items[self.makes[k]].nbytes
            if not self.gather(u) or not self.reserve(needed): return False
            for k in range(u.makes, u[1].makes): self.take(self.makes[k])
            self.emit(self.now, False)
            for k in range(u.reads, u[1].reads):
                self.items[self.reads[k]].pins -= 1
                self.used(self.reads[k])
            for k in range(u.makes, u[1].makes): self.used(self.makes[k])
        self.now = self.n_steps
        return self.make_kept()

    cdef bint make_kept(self) except -1:
        """The program ends or can stop here, so what it has computed and keeps must be there from now on. False: there
        is no memory for it."""
        cdef Item* x
        cdef int i
        for i in range(self.n_items):
            x = &self.items[i]
            if not x.kept or not x.nbytes or x.first == x.last or self.uses[x.first] >= self.now: continue
            x.pins += 1
            if x.number < 0 and not self.make(i): return False
            self.set_candidate(i)
        return True

    cdef bint gather(self, const StepUses* u) except -1:
        """Pin what a step reads, and make again what of it was dropped."""
        cdef int k
        for k in range(u.reads, u[1].reads): self.items[self.reads[k]].pins += 1
        for k in range(u.reads, u[1].reads): self.set_candidate(self.reads[k])
        for k in range(u.reads, u[1].reads):
            if self.items[self.reads[k]].number < 0 and not self.make(self.reads[k]): return False
        return True

    cdef bint make(self, int item) except -1:
        """Make an item again, and before it what that needs. False: there is no memory for it."""
        cdef StepUses* u
        cdef int n = 1, k, missing, step
        if self.items[item].writer < 0: return False
        if self.eager: return self.make_all(item)
        self.waiting[0] = self.items[item].writer
        self.pin(self.waiting[0], 1)
        while n:
            step, missing = self.waiting[n - 1], -1
            u = &self.steps[step]
            for k in range(u.reads, u[1].reads):
                if self.items[self.reads[k]].number < 0:
                    missing = self.items[self.reads[k]].writer
                    break
            else:
                if not self.compute_again(step): return False
                n -= 1
                continue
            if missing < 0: return False
            self.waiting[n] = missing
            self.pin(missing, 1)
            n += 1
        return True

    cdef bint make_all(self, int item) except -1:
        """The same as eager code does it (make_again() in recipes.pyx): what all these steps read is pinned first."""
        cdef StepUses* u
        cdef Item* x
        cdef int n = 1, done = 0, k
        self.visit += 1
        self.waiting[0] = self.items[item].writer
        self.steps[self.waiting[0]].visit = self.visit
        while done < n:
            u = &self.steps[self.waiting[done]]
            done += 1
            for k in range(u.reads, u[1].reads):
                x = &self.items[self.reads[k]]
                if x.number >= 0: continue
                if x.writer < 0: return False
                if self.steps[x.writer].visit == self.visit: continue
                self.steps[x.writer].visit = self.visit
                self.waiting[n] = x.writer
                n += 1
        qsort(self.waiting, n, sizeof(int), order)
        for k in range(n): self.pin(self.waiting[k], 1)
        for k in range(n):
            if not self.compute_again(self.waiting[k]): return False
        return True

    cdef int pin(self, int step, int by) except -1:
        """A step that runs again begins (1) or ends (-1) to need what it reads."""
        cdef int k
        for k in range(self.steps[step].reads, self.steps[step + 1].reads):
            self.items[self.reads[k]].pins += by
            self.set_candidate(self.reads[k])
        return 0

    cdef bint compute_again(self, int step) except -1:
        """Run a step again, which has all that it reads. False: there is no memory for it."""
        cdef StepUses* u = &self.steps[step]
        cdef Item* x
        cdef size_t needed = u.room
        cdef int k, i
        for k in range(u.makes, u[1].makes): needed += self.items[self.makes[k]].nbytes
        if not self.reserve(needed): return False
        for k in range(u.makes, u[1].makes):
            x = &self.items[self.makes[k]]
            if x.number < 0 and (x.pins or self.is_needed(x)):
                self.take(self.makes[k])
                x.again = True
        self.emit(step, True)
        self.repeated += 1
        self.work += u.work
        if self.work > self.most: return False
        self.pin(step, -1)
        for k in range(u.reads, u[1].reads):
            i = self.reads[k]
            if self.items[i].pins == 0 and not self.is_needed(&self.items[i]): self.drop(i)
        return True

    cdef bint is_needed(self, Item* x) noexcept:
        """Whether an item will be read, and set `due` to when: by a step of the schedule, by the end, or because what
        was dropped can be made from it."""
        cdef Item* y
        cdef int j, k
        x.due = self.uses[x.next] if x.next < x.last else self.n_steps if x.kept else self.n_steps + 1
        if x.next < x.last or x.kept: return True
        for j in range(x.first, x.next):
            for k in range(self.steps[self.uses[j]].makes, self.steps[self.uses[j] + 1].makes):
                y = &self.items[self.makes[k]]
                if y == x or y.number >= 0 or y.writer < 0 or y.next >= y.last: continue
                x.due = min(x.due, self.uses[y.next])
        return x.due <= self.n_steps or (0 <= x.born < self.split and x.number >= 0)

    cdef int take(self, int item) except -1:
        """An item gets memory."""
        cdef Item* x = &self.items[item]
        x.born, x.number = self.at, x.life
        if x.over >= 0:                             # that of what its step reads
            x.number, self.items[x.over].lost = self.items[x.over].number, True
            return 0
        self.live += x.nbytes
        if self.moves is not None: self.moves.append((self.now, item, True))
        if self.found is not None and self.uses[x.first] != self.now: x.number = self.schedule.add(x.life)
        self.set_candidate(item)
        self.forget_prices(item)
        return 0

    cdef void drop(self, int item) noexcept:
        """An item loses its memory."""
        cdef Item* x = &self.items[item]
        if x.lost: x.lost = False                   # (another item has it)
        else: self.live -= x.nbytes
        if x.next < x.last and not x.again: self.live += x.bits
        if self.moves is not None: self.moves.append((self.now, item, False))
        x.number = -1
        self.set_candidate(item)
        self.forget_prices(item)

    cdef void used(self, int item) noexcept:
        """The schedule has used an item."""
        cdef Item* x = &self.items[item]
        x.next += 1
        if x.next == x.last and x.again: self.live -= x.bits
        if not x.lost and self.is_needed(x): self.set_candidate(item)
        else: self.drop(item)

    cdef void set_candidate(self, int item) noexcept:
        """Register whether an item can be dropped now."""
        cdef Item* x = &self.items[item]
        cdef bint can = (x.number >= 0 and x.writer >= 0 and x.pins == 0 and self.is_needed(x) and x.due <= x.valid
                         and x.due > self.now and self.now >= x.named and not 0 <= x.born < self.split)
        if can == (x.place >= 0): return
        if can:
            x.place = self.n_candidates
            self.candidates[self.n_candidates] = item
            self.n_candidates += 1
            return
        self.n_candidates -= 1                      # the last candidate takes its place
        self.candidates[x.place] = self.candidates[self.n_candidates]
        self.items[self.candidates[x.place]].place = x.place
        x.place = -1

    cdef bint reserve(self, size_t nbytes) noexcept:
        """Drop items until there is memory for `nbytes` more. False: all others are needed now."""
        cdef int item
        while self.live + nbytes > self.limit:
            item = self.cheapest()
            if item < 0: return False
            self.drop(item)
        self.peak = max(self.peak, self.live + nbytes)
        return True

    cdef int cheapest(self) noexcept:
        """The candidate with the lowest score; -1: there is none."""
        cdef Item* x
        cdef double score, least = 0, a = exponents_a[self.rule // N_B]
        cdef int k, best = -1
        for k in range(self.n_candidates):
            x = &self.items[self.candidates[k]]
            if x.price < 0: x.price = pow(self.price_of(self.candidates[k]), a)
            score = x.price / (x.nbytes * self.distances[max(x.due - self.now, 0)])
            if best < 0 or score < least: best, least = self.candidates[k], score
        return best

    cdef double price_of(self, int item) noexcept:
        """The work to make an item again."""
        cdef StepUses* u
        cdef Item* x
        cdef double total = 0
        cdef int n = 1, count = 0, k
        self.visit += 1
        self.visiting[0] = self.items[item].writer
        self.steps[self.visiting[0]].visit = self.visit
        while n and count < DEPTH:
            n -= 1
            count += 1
            u = &self.steps[self.visiting[n]]
            total += u.work
            for k in range(u.reads, u[1].reads):
                x = &self.items[self.reads[k]]
                if x.number >= 0 or x.writer < 0 or self.steps[x.writer].visit == self.visit: continue
                self.steps[x.writer].visit = self.visit
                self.visiting[n] = x.writer
                n += 1
        return total

    cdef void forget_prices(self, int item) noexcept:
        """An item was made or dropped, so the prices of what depends on it have changed."""
        cdef Item* x
        cdef Item* y
        cdef int n = 1, j, k, step
        self.visit += 1
        self.items[item].price = -1
        self.visiting[0] = item
        while n:
            n -= 1
            x = &self.items[self.visiting[n]]
            for j in range(x.first, x.last):
                step = self.uses[j]
                if step > self.now: break
                if self.steps[step].visit == self.visit: continue
                self.steps[step].visit = self.visit
                for k in range(self.steps[step].makes, self.steps[step + 1].makes):
                    y = &self.items[self.makes[k]]
                    y.price = -1
                    if y.number >= 0 or y.writer < 0: continue
                    self.visiting[n] = self.makes[k]
                    n += 1

    # ---- the steps of the run

    cdef int emit(self, int at, bint again) except -1:
        """A step of the schedule runs."""
        cdef Step step
        cdef Item* x
        cdef int* owners = self.owners + self.steps[at].owners
        cdef int k
        self.at += 1
        if self.found is None: return 0
        step = <Step>self.schedule.steps[at]
        if again: step = repeated(step)
        for k in range(step.n_pointers):
            if owners[k] < 0: continue
            x = &self.items[owners[k]]
            if x.number >= 0 and not (again and step.pointers[k].access & WRITES and x.born != self.at - 1):
                step.pointers[k].life = x.number
            else: step.pointers[k].life = self.unused(step, k, owners) if again else x.life
        self.found.append(step)
        return 0

    cdef int unused(self, Step step, int k, const int* owners) except -1:
        """The number of a buffer for what a step that runs again writes, but nothing reads."""
        cdef int j
        for j in range(k):
            if owners[j] == owners[k]: return step.pointers[j].life
        return self.schedule.add(self.items[owners[k]].life)

    cdef size_t apply(self, size_t limit, int rule) except 0:
        """Change the schedule to a run in `limit` bytes, which is possible. Returns the size of its arena."""
        cdef ProgramSchedule s = self.schedule
        cdef Item* x
        cdef int i
        self.steps_before, self.split_before, self.n_lives = s.steps, s.split, s.n
        self.lives_before = <Interval*>PyMem_Malloc(s.n * sizeof(Interval))
        if self.lives_before == NULL: raise MemoryError("no memory for the plan of a program")
        memcpy(self.lives_before, s.lives, s.n * sizeof(Interval))
        self.run(limit, rule, True)
        for i in range(self.n_items):
            x = &self.items[i]
            if not x.kept or x.number < 0 or x.number == x.life: continue
            s.lives[x.life].final, s.lives[x.number].kept, s.lives[x.life].kept = x.number, True, False
        s.steps, s.split = self.found, self.split if self.split >= 0 else len(self.found)
        s.find_lives()
        if s.place_all() > self.target:
            reuse(s)
            s.place_all()
        return s.size

    cdef int undo(self) except -1:
        """Undo apply()."""
        cdef ProgramSchedule s = self.schedule
        cdef Step step
        cdef int k
        s.steps, s.split, s.n = self.steps_before, self.split_before, self.n_lives
        for step in s.steps:
            for k in range(step.n_pointers):
                if step.pointers[k].life >= 0: step.pointers[k].life = s.lives[step.pointers[k].life].origin
        memcpy(s.lives, self.lives_before, s.n * sizeof(Interval))
        PyMem_Free(self.lives_before)
        self.lives_before = NULL
        return 0
