"""Chains: a pass that makes one step of elementwise steps in a row, over the same number of elements.

A chain runs strip by strip (kernels/chains.pyx). Results that only its own calls read have no memory but a strip. A
step joins the chain before it if it shares an operand with it, and if no element that it reads or writes is written or
read by another strip of the chain: what they share must be the same dense elements, and what else they write must be
apart for certain."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcmp, memset

from cygrad.core.execute.schedule cimport in_arena
from cygrad.core.graph.steps cimport READS, WRITES, Pointer
from cygrad.core.graph.trace cimport GRADIENT, TENSOR, Storage
from cygrad.core.store.buffer cimport EXTERNAL
from cygrad.kernels.array cimport MAX_OPERANDS, Array, itemsize
from cygrad.kernels.chains cimport MAX_LINKS, SCRATCH, Link, is_filled, needs_strip, run_chain
from cygrad.kernels.codes cimport bits_of, packed_bytes
from cygrad.kernels.driver cimport STREAM, STRIP, LoopCall

import os

cdef enum:
    LARGE = 32768           # elements, as LARGE_WORK of core/execute/executor.pxd
    MAX_STRIP = 4096        # elements of a strip
    USES = MAX_OPERANDS + 1         # addresses in a call: the codes are the last
    CODES = 100             # Use.form: packed codes of so many bits less CODES for each element
    MAX_STRIPS = 64         # strips of STRIP bytes in the scratch memory
    SHOWN = 3               # calls that the name of a chain lists

cdef str NAME = "fused "    # (cygrad/nets/plan.py)
cdef str GRADIENTS = " (backward)"

cdef struct Use:            # an address in a call
    int access              # an Access; 0: it has none
    int life, storage       # as in Pointer
    int form                # bytes of an element, of one for each of the result; CODES + bits; 0: it is something else
    size_t offset           # as in Pointer
    size_t first, nbytes    # the bytes that it uses; those of a strided array may be all
    int source              # the result of this call, which is what it reads; -1: memory
    int last                # of a result: the last call that reads it
    bint memory             # of a result: it has memory


cdef Py_ssize_t first_level():
    """The bytes of the first-level data cache."""
    try: found = os.sysconf("SC_LEVEL1_DCACHE_SIZE")
    except (AttributeError, OSError, ValueError): found = 0     # (another system)
    return max(<Py_ssize_t>found, <Py_ssize_t>32768)

cdef Py_ssize_t half_cache = first_level() // 2     # bytes that the strips of a chain may have


cdef class ChainedSteps:
    """The steps of a chain."""

    def __dealloc__(self):
        PyMem_Free(self.raised)


cdef int run_together(Array* a, const void* parameters, object held) except -1:
    """A kernel: run the chain `held`."""
    cdef ChainedSteps c = <ChainedSteps>held
    cdef int i
    if not c.large: run_chain(&c.chain)
    else:
        with nogil: run_chain(&c.chain)
    for i in range(c.n_raised): c.raised[i].version += 1
    return 0


cdef ChainedSteps chain_in(Step s):
    """The chain that a step runs, or None."""
    return <ChainedSteps>s.held if s.kernel == run_together else None


cdef class Chaining:
    """The steps of a chain that is being made."""
    cdef ProgramSchedule schedule
    cdef list steps
    cdef int first              # the number of the first step
    cdef int n                  # of steps
    cdef Py_ssize_t size        # elements of each result
    cdef int widest             # bytes of an element
    cdef Link* links
    cdef Use* uses              # USES for each call
    cdef int n_strips           # of scratch memory

    def __cinit__(self):
        self.links = <Link*>PyMem_Malloc(MAX_LINKS * sizeof(Link))
        self.uses = <Use*>PyMem_Malloc(MAX_LINKS * USES * sizeof(Use))
        if self.links == NULL or self.uses == NULL: raise MemoryError("no memory for a program")

    def __dealloc__(self):
        PyMem_Free(self.links)
        PyMem_Free(self.uses)

    cdef Use* result(self, int i) noexcept:
        return &self.uses[i * USES + self.links[i].call.loop.operands - 1]

    # ---- which steps

    cdef int begin(self, int at) noexcept:
        self.steps, self.first, self.n, self.size, self.widest = [], at, 0, 0, 0
        return 0

    cdef bint join(self, Step step) except -1:
        """Append a step to the chain, or return False."""
        cdef LoopCall* c = &self.links[self.n].call
        cdef Use* u = &self.uses[self.n * USES]
        cdef int k, last
        cdef Py_ssize_t n
        if self.n == MAX_LINKS or not step.find_loop(c): return False
        last = c.loop.operands - 1
        n = c.a[last].layout.size
        if not c.a[last].layout.dense or n == 0 or self.n and n != self.size: return False
        memset(u, 0, USES * sizeof(Use))
        for k in range(last + 1):
            if not self.read_use(step, c.a[k].data, &u[k], WRITES if k == last else READS):
                if k == last or c.a[k].layout.size != 1: return False
                continue                            # (a number, which the step has)
            u[k].form = bits_of(c.a[k].dtype)
            if u[k].form: u[k].form, u[k].nbytes = u[k].form + CODES, packed_bytes(n, u[k].form)
            elif c.a[k].layout.dense and c.a[k].layout.size == n:
                u[k].form = itemsize(c.a[k].dtype)
                u[k].nbytes = n * u[k].form
            elif c.a[k].layout.size == 1: u[k].nbytes = itemsize(c.a[k].dtype)
            else: u[k].first, u[k].nbytes = 0, <size_t>-1
        if c.bits:
            if not self.read_use(step, <char*>c.codes, &u[USES - 1], WRITES): return False
            u[USES - 1].form, u[USES - 1].nbytes = c.bits + CODES, packed_bytes(n, c.bits)
        if self.n and not self.fits(u): return False
        for k in range(last + 1):
            if not bits_of(c.a[k].dtype): self.widest = max(self.widest, itemsize(c.a[k].dtype))
        self.steps.append(step)
        self.n += 1
        self.size = n
        return True

    cdef bint read_use(self, Step step, const char* data, Use* u, int access) noexcept:
        """Find the address that a step has in memory, which has no place yet."""
        cdef int k
        for k in range(step.n_pointers):
            if step.pointers[k].at[0] != data or not step.pointers[k].access & access: continue
            u.access, u.life, u.storage = access, step.pointers[k].life, step.pointers[k].storage
            u.offset = u.first = step.pointers[k].offset
            if u.life < 0: u.first += (<Storage>self.schedule.storages[u.storage]).start    # (from the buffer's begin)
            u.source = -1
            return True
        return False

    cdef bint fits(self, const Use* added) except -1:
        """Whether a call with these uses can follow those of the chain, and shares an operand with one."""
        cdef const Use* u
        cdef const Use* x
        cdef bint linked = False
        cdef int i, k
        for k in range(USES):
            x = &added[k]
            if not x.access: continue
            for i in range(self.n * USES):
                u = &self.uses[i]
                if not u.access: continue
                if same_elements(u, x): linked = True
                elif (u.access | x.access) & WRITES and not self.are_apart(u, x): return False
        return linked

    cdef bint are_apart(self, const Use* u, const Use* x) except -1:
        """Whether two uses have no byte in common for certain."""
        cdef const Buffer* b
        cdef const Buffer* c
        if u.life != x.life: return True            # (one of them is in the arena)
        if u.life < 0 and u.storage != x.storage:
            b, c = outside(self.schedule, u.storage), outside(self.schedule, x.storage)
            return b == NULL or c == NULL or b != c and not b.flags & c.flags & EXTERNAL
        return u.first + u.nbytes <= x.first or x.first + x.nbytes <= u.first

    # ---- where the results are

    cdef bint settle(self) except -1:
        """Find out where each operand is. False if the strips of the chain need too much scratch memory."""
        cdef Use* u
        cdef Use* y
        cdef int i, k, w
        for i in range(self.n):
            for k in range(USES):
                u = &self.uses[i * USES + k]
                u.source = -1
                if not u.access & READS or not u.form or u.form >= CODES: continue
                for w in range(i):
                    if same_elements(u, self.result(w)): u.source = w
        for i in range(self.n):
            y = self.result(i)
            y.last, y.memory = i, not self.is_inner(y)
            for k in range(i + 1, self.n): y.memory &= not same_elements(y, self.result(k))
        for i in range(self.n * USES):
            u = &self.uses[i]
            if u.access and u.source >= 0: self.result(u.source).last = max(self.result(u.source).last, i // USES)
        return self.take_strips()

    cdef bint is_inner(self, const Use* y) noexcept:
        """Whether only calls of the chain read what is in a result's buffer."""
        cdef const Use* u
        cdef int i
        if not in_arena(self.schedule, y.life): return False
        if self.schedule.lives[y.life].kept or self.schedule.lives[y.life].birth < self.first: return False
        if self.schedule.lives[y.life].death > self.first + self.n: return False
        for i in range(self.n * USES):
            u = &self.uses[i]
            if u.access and u.life == y.life and (u.form >= CODES or u.access & READS and u.source < 0): return False
        return True

    cdef bint take_strips(self) except -1:
        """Give operands and results strips of scratch memory; those that are not read any more are taken again."""
        cdef int free_after[MAX_STRIPS + 1]         # for each strip the call after which it is free
        cdef LoopCall* c
        cdef Link* l
        cdef int i, k, last, n = 0, most = SCRATCH // (STRIP * self.widest)
        for i in range(self.n):
            l, c = &self.links[i], &self.links[i].call
            last = c.loop.operands - 1
            for k in range(last + 1):
                l.source[k], l.strip[k] = self.uses[i * USES + k].source if self.uses[i * USES + k].access else -1, -1
                if k == last or l.source[k] >= 0 or not is_filled(c, k, self.size): continue
                l.strip[k] = self.strip_with(i, k)
                if l.strip[k] < 0: l.strip[k] = take(free_after, &n, 0, MAX_LINKS)
                if n > most: return False
        for i in range(self.n):
            l, c = &self.links[i], &self.links[i].call
            last = c.loop.operands - 1
            for k in range(last):
                if l.source[k] >= 0 or l.strip[k] >= 0 or not needs_strip(c, k, self.size): continue
                l.strip[k] = take(free_after, &n, i, i)
                if n > most: return False
            if self.result(i).memory and self.size * self.result(i).form < STREAM: continue
            l.strip[last] = take(free_after, &n, i, self.result(i).last)
            if n > most: return False
        self.n_strips = n
        return True

    cdef int strip_with(self, int i, int k) noexcept:
        """The strip that is filled with the number that is operand k of call i, for an earlier operand; -1: none is."""
        cdef const LoopCall* c = &self.links[i].call
        cdef const LoopCall* x
        cdef int j, o
        if self.uses[i * USES + k].access: return -1    # (it is in memory)
        for j in range(i):
            x = &self.links[j].call
            for o in range(x.loop.operands - 1):
                if self.uses[j * USES + o].access or self.links[j].strip[o] < 0: continue
                if x.a[o].dtype != c.a[k].dtype: continue
                if memcmp(x.a[o].data, c.a[k].data, itemsize(c.a[k].dtype)) == 0: return self.links[j].strip[o]
        return -1

    # ---- the step

    cdef Step made(self):
        """The step that runs the chain."""
        cdef Step s = Step.__new__(Step)
        cdef ChainedSteps c = ChainedSteps.__new__(ChainedSteps)
        cdef Step member
        cdef Link* l
        cdef Use* u
        cdef int i, k, last, raised = 0, memory = 0
        for i in range(self.n * USES): memory += self.uses[i].access and self.uses[i].source < 0
        s.take(memory, 0, self.n * sizeof(Link))
        s.kernel, s.held = run_together, c
        c.members, c.inner = tuple(self.steps[:self.n]), []
        c.chain.links, c.chain.n_links, c.chain.n, c.chain.itemsize = <Link*>s.room, self.n, self.size, self.widest
        c.chain.strip = self.strip()
        for i in range(self.n):
            member, l = <Step>c.members[i], &c.chain.links[i]
            l[0] = self.links[i]
            member.find_loop(&l.call)               # (with room of its own)
            last = l.call.loop.operands - 1
            for k in range(last + 1):
                u = &self.uses[i * USES + k]
                if u.access and (u.source >= 0 or k == last and not u.memory): l.call.a[k].data = NULL
                elif u.access: self.point(s, &l.call.a[k].data, u)
            if l.call.bits: self.point(s, <char**>&l.call.codes, &self.uses[i * USES + USES - 1])
            s.work += member.work
            c.n_raised += member.n_written
            u = self.result(i)
            if not u.memory and u.life >= 0: c.inner.append((u.life, self.schedule.lives[u.life].nbytes))
        c.large = s.work >= LARGE
        c.raised = <Buffer**>PyMem_Malloc(max(c.n_raised, 1) * sizeof(void*))
        if c.raised == NULL: raise MemoryError("no memory for a program")
        for member in c.members:
            for i in range(member.n_written): c.raised[raised], raised = member.written[i], raised + 1
        member = <Step>c.members[0]
        s.name, s.within, s.source = name_of(c.members), member.within, member.source
        return s

    cdef int point(self, Step s, char** at, const Use* u) noexcept:
        cdef Pointer* p = &s.pointers[s.n_pointers]
        p.at, p.access, p.life, p.storage, p.offset = at, u.access, u.life, u.storage, u.offset
        s.n_pointers += 1
        return 0

    cdef Py_ssize_t strip(self) noexcept:
        """Elements of a strip, so that half of the first-level cache has all strips and those of the memory."""
        cdef Py_ssize_t n
        cdef int i, k, memory = 0
        for i in range(self.n * USES):
            if not self.uses[i].access or self.uses[i].source >= 0 or not self.uses[i].form: continue
            for k in range(i):
                if same_elements(&self.uses[k], &self.uses[i]): break
            else: memory += 1
        n = half_cache // (self.widest * (self.n_strips + memory)) // STRIP * STRIP
        if self.n_strips: n = min(n, SCRATCH // (self.n_strips * self.widest) // STRIP * STRIP)
        return min(max(n, <Py_ssize_t>STRIP), <Py_ssize_t>MAX_STRIP)


cdef const Buffer* outside(ProgramSchedule schedule, int number):
    """The buffer of a tensor outside, or of the .grad that a variable has now; NULL: the storage is an argument, which
    each run compares with all that is outside, or a constant."""
    cdef Storage s = <Storage>schedule.storages[number]
    if s.kind == TENSOR: return s.tensor.buffer
    return s.leaf.grad.buffer if s.kind == GRADIENT and s.leaf.grad is not None else NULL


cdef inline bint same_elements(const Use* u, const Use* x) noexcept:
    """Whether two uses have the same elements in the same order."""
    return (u.form != 0 and u.form == x.form and u.life == x.life and u.offset == x.offset
            and (u.life >= 0 or u.storage == x.storage))


cdef int take(int* free_after, int* n, int now, int last) noexcept:
    """A strip that is needed from call `now` until `last`."""
    cdef int k = 0
    while k < n[0] and free_after[k] >= now: k += 1
    if k == n[0]: n[0] += 1
    free_after[k] = last
    return k


cdef str name_of(tuple members):
    """The name of a chain: those of its first calls."""
    names = [(<Step>m).name for m in members]
    ending = GRADIENTS if any(name.endswith(GRADIENTS) for name in names) else ""
    shown = [name.removesuffix(GRADIENTS) for name in names[:SHOWN]]
    if len(names) > SHOWN: shown.append(f"... ({len(names)})")
    return f"{NAME}{', '.join(shown)}{ending}"


cdef bint chain_steps(ProgramSchedule s) except -1:
    """Make chains of steps in a row. Returns whether there is one."""
    cdef Chaining c = Chaining.__new__(Chaining)
    cdef list made = []
    cdef int at = 0, split = s.split, n = len(s.steps)
    cdef bint found = False
    while at < n:
        c.schedule = s
        c.begin(at)
        while at + c.n < n and (at + c.n != s.split or not c.n) and c.join(<Step>s.steps[at + c.n]): pass
        while c.n > 1 and not c.settle(): c.n -= 1
        if c.n < 2:
            made.append(s.steps[at])
            at += 1
            continue
        made.append(c.made())
        found = True
        at += c.n
        if at <= s.split: split -= c.n - 1
    if not found: return False
    s.steps, s.split = made, split
    s.find_lives()
    return True


cdef int undo_chains(ProgramSchedule s) except -1:
    """Replace chains by their steps again."""
    cdef ChainedSteps c
    cdef list steps = []
    cdef int at, split = s.split
    for at in range(len(s.steps)):
        c = chain_in(<Step>s.steps[at])
        if c is None: steps.append(s.steps[at])
        else:
            steps.extend(c.members)
            for life, nbytes in c.inner: s.lives[<int>life].nbytes = nbytes
            if at < s.split: split += c.chain.n_links - 1
    s.steps, s.split = steps, split
    return s.find_lives()


# ---- results over operands

cdef int reuse_in_chain(ProgramSchedule s, Step step, int at) except -1:
    """Place results of a chain over operands that no later step reads, and no later call of it."""
    cdef Pointer* y
    cdef Pointer* x
    cdef int i, k, j
    taken = set()
    for i in range(step.n_pointers):
        y = &step.pointers[i]
        if not y.access & WRITES or not is_new(s, step, y, at): continue
        for k in range(i):                          # (what later calls read is not over)
            x = &step.pointers[k]
            if x.life in taken or not is_old(s, x, at) or s.lives[x.life].nbytes != s.lives[y.life].nbytes:
                continue
            if element_bytes(step, x) != element_bytes(step, y): continue
            for j in range(step.n_pointers):
                if step.pointers[j].life != x.life: continue
                if j > i or step.pointers[j].access & WRITES or element_bytes(step, &step.pointers[j]) == 0: break
                if step.pointers[j].offset: break
            else:
                s.lives[y.life].over = x.life
                taken.add(x.life)
                break
    return 0


cdef bint is_new(ProgramSchedule s, Step step, const Pointer* y, int at) noexcept:
    """Whether a result is all of a buffer that the chain is the first to use."""
    return (in_arena(s, y.life) and s.lives[y.life].birth == at and y.offset == 0 and s.lives[y.life].over < 0
            and element_bytes(step, y) != 0)


cdef bint is_old(ProgramSchedule s, const Pointer* x, int at) noexcept:
    """Whether an operand is in a buffer that no later step uses."""
    return (in_arena(s, x.life) and x.access == READS and s.lives[x.life].death == at + 1
            and s.lives[x.life].birth < at)


cdef int element_bytes(Step step, const Pointer* p) noexcept:
    """The bytes of an element, if it has one for each of the results; else 0."""
    cdef Chain* chain = &chain_in(step).chain
    cdef LoopCall* c
    cdef int i, k
    for i in range(chain.n_links):
        c = &chain.links[i].call
        for k in range(c.loop.operands):
            if p.at != &c.a[k].data: continue
            return 0 if needs_strip(c, k, chain.n) or c.a[k].layout.size != chain.n else itemsize(c.a[k].dtype)
    return 0
