"""Makes recipes, and makes values again by them (recipes.pxd)."""

cimport cython

from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cygrad.core.clock cimport seconds
from cygrad.core.execute.executor cimport begin, end, infer, place_fresh, set_operands
from cygrad.core.execute.forward cimport perform
from cygrad.core.execute.operands cimport release_operands
from cygrad.core.graph.checksums cimport bytes_of, checksum_of_memory
from cygrad.core.graph.construct cimport copy_plain
from cygrad.core.graph.packed cimport Watch, put_packed, watch
from cygrad.core.graph.release cimport decref_later, decref_waiting
from cygrad.core.graph.running cimport passes_begun
from cygrad.core.graph.signs cimport set_evicting
from cygrad.core.graph.slots cimport SIGNS, Slot, buffer_in
from cygrad.core.graph.tensor cimport Node, next_number, slots_of
from cygrad.core.graph.trace cimport on_buffer, traces, version_of
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport EXTERNAL, WATCHED, hold, release_saved, save
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport itemsize

from cygrad.core.errors import InplaceError

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

candidates = NULL
n_candidates = 0
cdef int capacity = 0
executing = 0
cdef uint64_t executed = 0      # recipes, in all threads
executed_work = 0
executed_seconds = 0
backward_work = 0


cdef void count_stage(double work) noexcept:
    """A stage of a node's backward runs."""
    global backward_work
    backward_work += work


def executed_recipes():
    """How often a recipe was executed, in all threads."""
    return executed


cdef class Observer:
    cdef Py_ssize_t sample(self, Py_ssize_t nbytes) except -1:
        """So many bytes are about to be taken. Returns how many could be evicted, or less."""

    cdef int evict_planned(self, Py_ssize_t nbytes, Py_ssize_t bound) except -1:
        """Evict what was planned, before so many bytes are taken."""

    cdef int called(self, Recipe r, const Execution* e) except -1:
        """A recipe was made, and its outputs, for the first time."""

    cdef int reads(self, Value v) except -1:
        """Backward is about to read a Value."""

    cdef bint keeps(self, Value v) noexcept:
        """Whether a Value that no slot holds should keep its memory, because others will be made from it."""
        return False

    cdef void saw(self, Value v, Change what) noexcept:
        """Something has changed."""


# ---- regions ---------------------------------------------------------------------------------------------------------

cdef RecipeScope open_region(const Flags* f):
    """The region that is the thread's packing, or None."""
    return <RecipeScope>f.pack if f.pack != NULL and type(<object>f.pack) is RecipeScope else None


cdef class RecipeScope(Packing):
    def __cinit__(self, keep=frozenset(), bint hashed=False, bint strong=False):
        self.outer = open_region(flags())
        self.values = {} if self.outer is None else self.outer.values
        self.keep, self.hashed, self.strong = keep, hashed, strong
        if self.outer is not None: self.observer, self.spiller = self.outer.observer, self.outer.spiller
        self.scope = "memory.budget()" if strong else "checkpoint()"

    def close(self):
        """End the region: what no slot needs is forgotten."""
        if self.outer is None: self.values.clear()

    cdef void count(self, Recipe r) noexcept:
        """A recipe of its values was executed."""
        cdef RecipeScope g = self
        while g is not None:
            g.repeated += 1
            g.repeated_work += r.work
            g = g.outer

    cdef Value known(self, Buffer* b):
        """The Value in a buffer now, or None."""
        cdef Watch w
        cdef Value v
        if not b.flags & WATCHED: return None
        w = watch(b)
        if w.value == NULL or w.values is not self.values: return None
        v = <Value>w.value
        return v if v.version == version_of(b) else None

    cdef Value read(self, Buffer* b):
        """The Value in a buffer that a recipe reads."""
        cdef Value v = self.known(b)
        if v is None: v = self.new_value(b)
        else:                                       # (one that another region reads belongs to the one around both)
            while not v.region.is_around(self): v.region = v.region.outer
            if self.strong and v.epoch != passes_begun() and not v.slots and not v.secured: v.forget()
        if not self.strong and (v.region.strong or v.held == NULL):     # (what a checkpoint has made can be made again)
            if v.region.strong and v.recipe is not None and not secure(v): v.forget()
            if v.recipe is None:
                if v.held == NULL: v.keep(b)
                v.secured = True
        v.used = next_number()
        return v

    cdef int made(self, Buffer* b, Recipe r, int nr) except -1:
        """A recipe has made what is in a buffer."""
        cdef Value v
        if self.strong and self.epoch != passes_begun(): self.forget_older()
        v = self.new_value(b)
        v.recipe, v.nr = r, nr
        r.outputs[nr] = <void*>v
        return 0

    cdef void forget_older(self) noexcept:
        """After a backward pass: what is still alive, such as the loss, lets its recipe go, and with it what that
        reads."""
        cdef Value v
        self.epoch = passes_begun()
        for found in [*self.values.values()]:
            v = found
            if v.region.strong and not v.slots and not v.secured: v.forget()

    cdef Value new_value(self, Buffer* b):
        cdef Value v = Value.__new__(Value)
        v.watch, v.version, v.region = watch(b), version_of(b), self
        v.epoch, v.used = passes_begun(), next_number()
        v.number = v.used
        v.watch.value, v.watch.values = <void*>v, self.values
        self.values[<size_t>b] = v                  # (until the buffer is released, or the Value keeps it)
        return v

    cdef int pack(self, Node node) except -1:
        """The slots of a new node hold Values that recipes have made, instead of their memory."""
        cdef Slot* s = slots_of(node)
        cdef SlotValue p
        cdef Buffer* b
        cdef Value v
        cdef int k
        cdef bint spills
        for k in range(node.n_slots):
            b = buffer_in(&s[k])
            if b == NULL or self.strong and s[k].need == SIGNS: continue    # (which take one bit an element)
            v = self.known(b)
            spills = self.strong and self.spiller is not None and self.spiller.takes(b)
            if v is None and spills: v = self.new_value(b)
            if v is None or v.recipe is None and not spills: continue
            p = SlotValue.__new__(SlotValue)
            if self.strong and v.held == NULL: v.keep(b)
            p.value, p.watch = v, v.watch
            v.slots += 1
            if self.hashed and v.checksum is None and not traces(): v.checksum = checksum_of_memory(b)
            put_packed(node, &s[k], p)
        return 0

    cdef int before_write(self, Buffer* b) except -1:
        """Before the region overwrites a Value that is kept, it is let go, or copied if it cannot be made again."""
        cdef Value v
        cdef Tensor y
        if self.strong and self.epoch != passes_begun(): self.forget_older()    # (a solver writes after backward)
        v = self.known(b)
        if v is None: return 0
        self.values.pop(<size_t>b, None)
        v.watch.value = NULL
        if v.held != b or Py_REFCNT(<PyObject*>v) == 1: return 0        # (nothing else refers to it)
        if v.is_elsewhere() or v.recipe is not None and secure(v):
            v.drop()
            return 0
        y = copy_plain(bytes_of(b))
        v.drop()
        return v.keep(y.buffer)

    cdef bint is_around(self, RecipeScope r) noexcept:
        """Whether this is `r`, or a region around it."""
        while r is not None:
            if r is self: return True
            r = r.outer
        return False


# ---- values ----------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Value:
    def __dealloc__(self):
        self.drop()
        self.forget()
        if self.spilled is not None: self.spilled.value = NULL
        if self.observer is not None: self.observer.saw(self, GONE)
        if self.watch is not None and self.watch.value == <void*>self: self.watch.value = NULL

    cdef void forget(self) noexcept:
        """Let it have no recipe."""
        if self.recipe is None: return
        self.recipe.outputs[self.nr] = NULL
        self.recipe = None

    cdef Buffer* memory(self) noexcept:
        """A buffer that has it, or NULL."""
        cdef Buffer* b = self.watch.buffer
        if self.held != NULL: return self.held if version_of(self.held) == self.held_version else NULL
        return b if b != NULL and version_of(b) == self.version else NULL

    cdef int keep(self, Buffer* b) except -1:
        """Keep memory alive that has it."""
        if self.region.strong and (self.recipe is not None or self.region.spiller is not None): add_candidate(self)
        save(b)
        self.held, self.held_version = b, version_of(b)
        if self.observer is not None: self.observer.saw(self, KEPT)
        if self.watch.values is not None and self.watch.buffer != NULL:
            self.watch.values.pop(<size_t>self.watch.buffer, None)      # (or the table would keep it, too)
        return 0

    cdef void drop(self) noexcept:
        """Keep no memory alive."""
        cdef Buffer* b = self.held
        if self.place: remove_candidate(self)
        self.is_elsewhere()
        self.held = NULL
        if b == NULL: return
        if self.observer is not None: self.observer.saw(self, DROPPED)
        release_saved(b)

    cdef bint is_elsewhere(self) noexcept:
        """Whether it can be read again without its memory. If not, it is not written any more."""
        if self.spilled is None: return False
        if self.spilled.is_written(): self.secured = True
        else: self.spilled = None
        return self.spilled is not None

    cdef bint can_spill(self) noexcept:
        """Whether a copy of it can be made. (A hook or a Function may have written to its memory.)"""
        return (self.held != NULL and self.memory() == self.held and self.region.spiller is not None
                and self.region.spiller.takes(self.held))

    cdef int begin_to_spill(self) except -1:
        """Copy it, without waiting."""
        self.spilled = self.region.spiller.begin(self.held, self.number, <void*>self)

    cdef int spill(self) except -1:
        """Copy it, and wait for that. Returns whether it can be read again."""
        if self.spilled is None and self.can_spill(): self.begin_to_spill()
        if self.spilled is not None: self.spilled.finish()
        return self.is_elsewhere()

    cdef int read_again(self) except -1:
        """Have it in memory, from where it was copied."""
        cdef Spilled s = self.spilled
        cdef Buffer* b
        while self.memory() == NULL:
            b = s.read()
            if b == NULL: continue
            try:
                if self.memory() == NULL:
                    self.drop()
                    self.keep(b)
            finally: release_saved(b)
        return 0


@cython.no_gc
cdef class SlotValue(Packed):
    def __dealloc__(self):
        cdef Value v = self.value
        if v is None: return
        v.slots -= 1
        if v.region.strong and not is_kept(v) and (v.recipe is not None or v.is_elsewhere() or not v.secured): v.drop()

    cdef Buffer* kept(self) noexcept:
        return self.value.held

    cdef Tensor unpack(self, Node node, const Slot* s):
        cdef Value v = self.value
        cdef Tensor t
        if v.region.strong and v.region.epoch != passes_begun(): v.region.forget_older()
        if v.observer is not None: v.observer.reads(v)
        if v.memory() == NULL:
            if v.is_elsewhere(): v.read_again()
            else: make_again(v)
        else: v.is_elsewhere()                      # (a hook may write to it)
        v.used = next_number()
        t = on_buffer(v.memory(), s.layout, s.dtype)
        if v.region.spiller is not None: v.region.spiller.read_ahead(v.number)
        return t


cdef int make_again(Value wanted) except -1:
    """Execute the recipes that make a Value whose memory is gone, in the order of the first time. What was made in its
    region, or in one around it, is kept for the slots and recipes that need it, because backward comes to them next;
    what was made in other regions is dropped after its last use. In the region of a budget, what slots hold is kept,
    and can be evicted again."""
    cdef list waiting = [wanted]
    cdef dict recipes = {}      # number -> Recipe
    cdef dict readers = {}      # Value -> how many of them read it and have not run
    cdef list alive = []
    cdef Recipe r
    cdef Value v
    global executing
    while waiting:
        v = waiting.pop()
        if v.recipe is None: raise_overwritten(v, wanted.recipe.op if wanted.recipe is not None else None)
        r = v.recipe
        if r.number in recipes: continue
        recipes[r.number] = r
        for x in r.values:
            if x is None: continue
            v = x
            readers[v] = readers.get(v, 0) + 1
            if v.memory() == NULL:
                if not v.is_elsewhere(): waiting.append(v)
            elif v.held == NULL: alive.append(bytes_of(v.memory()))     # (as long as the recipes run)
    v = x = r = None
    for x in readers: (<Value>x).pins += 1
    executing += 1
    try:
        x = None
        for number in sorted(recipes): run_recipe(recipes.pop(number), wanted, readers)
    finally:
        executing -= 1
        for x in readers: (<Value>x).pins -= 1
    return 0


cdef int run_recipe(Recipe r, Value wanted, dict readers) except -1:
    """Execute one recipe of make_again(), and let go what nothing needs any more."""
    cdef list values = r.values
    cdef Value v
    cdef int k
    r.execute()
    for k in range(MAX_OUTPUTS):
        if r.outputs[k] == NULL: continue
        v = <Value>r.outputs[k]
        if v.held == NULL: continue                 # (its memory is not gone)
        if v.region.strong:
            if v not in readers and not is_kept(v): v.drop()
        elif v.region.is_around(wanted.region): v.forget()
        elif v not in readers: v.drop()
    r = None                                        # (with it, `values` are freed that nothing else needs)
    for x in values:
        if x is None: continue
        v = x
        readers[v] -= 1
        if readers[v]: continue
        del readers[v]
        v.pins -= 1
        if (v.recipe is not None or v.is_elsewhere()) and not (v.region.strong and is_kept(v)): v.drop()
    return 0


cdef inline bint is_kept(Value v) noexcept:
    """Whether a Value of a budget keeps its memory although nothing is about to read it."""
    return v.slots > 0 or v.observer is not None and v.observer.keeps(v)


cdef bint is_private(const Buffer* b) noexcept:
    """Whether only tensors can write to a buffer. (Through NumPy it could change unnoticed.)"""
    return not b.flags & EXTERNAL and not b.leases


cdef bint secure(Value v) except -1:
    """Whether a Value can be made again after its memory is gone. If so, what its recipes read and cannot make is kept
    from now on."""
    cdef dict made = {}         # number of a recipe -> the Values that it makes, among those that v depends on
    cdef set able = set(), seen = {v}       # able: those that their recipes can make
    cdef list waiting = [v], alive = []
    cdef Value x, y
    if v.secured: return True
    if v.recipe is None: return False
    while waiting:
        x = waiting.pop()
        made.setdefault(x.recipe.number, []).append(x)
        for found in x.recipe.values:
            if found is None or found in seen: continue
            seen.add(found)
            y = found
            if y.secured or y.recipe is None: continue
            waiting.append(y)
    for number in sorted(made):                     # (operands first)
        for found in made[number]:
            if can_be_made(<Value>found, able, alive): able.add(found)
    if v not in able: return False
    waiting, seen = [v], {v}
    while waiting:                                  # keep what v needs, and no more
        x = waiting.pop()
        x.secured = True
        for found in x.recipe.values:
            if found is None or found in seen: continue
            seen.add(found)
            y = found
            if y in able: waiting.append(y)
            elif not y.secured:
                y.forget()                          # (its memory is all there is)
                y.secured = True
                if y.region.spiller is None: be_stuck(y)
                if y.held == NULL: y.keep(y.memory())
    return True


cdef bint can_be_made(Value v, set able, list alive) except -1:
    """Whether the recipe of a Value can read all its operands: those that are `able` or secured, and those in memory
    that can be kept, which `alive` keeps meanwhile."""
    cdef Buffer* b
    cdef Value y
    for x in v.recipe.values:
        if x is None or x in able: continue
        y = x
        if y.secured: continue
        b = y.memory()
        if b == NULL or not is_private(b): return False
        alive.append(bytes_of(b))
    return True


cdef int be_stuck(Value v) noexcept:
    """A Value cannot be made again."""
    v.stuck = True
    if v.observer is not None: v.observer.saw(v, STUCK)
    return 0


cdef int evict(Value v, bint spills) except -1:
    """Drop a Value, if it can be made again, or be read again, which is tried first if it `spills`."""
    cdef bint able = spills and v.spill() or v.recipe is not None and secure(v) or not spills and v.spill()
    if not able: be_stuck(v)
    else:
        set_evicting(True)
        v.drop()
        set_evicting(False)
    return 0


# ---- candidates for eviction -----------------------------------------------------------------------------------------

cdef int add_candidate(Value v) except -1:
    global candidates, capacity, n_candidates
    cdef void** more
    if n_candidates == capacity:
        more = <void**>PyMem_Realloc(candidates, (2 * capacity + 64) * sizeof(void*))
        if more == NULL: raise MemoryError("no memory for a recipe")
        candidates, capacity = more, 2 * capacity + 64
    candidates[n_candidates] = <void*>v
    n_candidates += 1
    v.place = n_candidates
    return 0


cdef void remove_candidate(Value v) noexcept:
    global n_candidates
    cdef void* last = candidates[n_candidates - 1]
    candidates[v.place - 1] = last
    (<Value>last).place = v.place
    v.place = 0
    n_candidates -= 1


cdef int raise_overwritten(Value v, Operator reader) except -1:
    nbytes = f" of {v.held.nbytes:,} bytes" if v.held != NULL else ""
    name = reader.name if reader is not None else "an operation"
    raise InplaceError(f"{name} cannot be computed again for backward, because a tensor{nbytes} that it depends on was "
                       f"written in place since; with checkpoint() and memory.budget(), write to a copy(), or after "
                       f"backward")


# ---- recipes ---------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Recipe:
    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.values is None: return
        for i in range(len(self.values)):
            if self.reads[i].layout != NULL: lay.decref(<Layout*>self.reads[i].layout)
        PyMem_Free(self.reads)
        Py_INCREF(self.values)
        decref_later(<void*>self.values)            # (a chain of recipes can be long)
        self.values = None
        decref_waiting()

    cdef int execute(self) except -1:
        """Compute the outputs again, in new memory that their Values keep alive."""
        cdef Flags* f = flags()
        cdef Execution e
        cdef Value v
        cdef Buffer* b
        cdef int n = len(self.values), i, k
        cdef Operand* x = <Operand*>PyMem_Calloc(max(n, 1), sizeof(Operand))
        cdef double begun
        cdef bint counted = False
        global executed, executed_work, executed_seconds
        if x == NULL: raise MemoryError("no memory for the operands")
        begin(&e, self.op, self.attributes, f)
        try:
            for i in range(n):
                x[i].array.dtype, x[i].array.layout = self.reads[i].dtype, <Layout*>self.reads[i].layout
                if self.values[i] is None:
                    x[i].number = self.reads[i].number
                    x[i].array.data = <char*>&x[i].number
                    continue
                v = self.values[i]
                if v.memory() == NULL and v.is_elsewhere(): v.read_again()
                b = v.memory()
                if b == NULL: raise_overwritten(v, self.op)     # (by another thread)
                hold(b)
                lay.incref(self.reads[i].layout)
                x[i].buffer, x[i].array.data = b, b.data + x[i].array.layout.offset * itemsize(x[i].array.dtype)
            set_operands(&e, x, n, self.wanted)
            infer(&e, self.op)
            place_fresh(&e, 0)
            begun = seconds()
            perform(&e, self.op, x, self.attributes)
            executed_seconds += seconds() - begun
            executed += 1
            executed_work += self.work
            for k in range(e.call.n_out):
                if self.outputs[k] == NULL: continue
                v = <Value>self.outputs[k]
                if not counted: v.region.count(self)
                counted = True
                if v.memory() != NULL: continue
                if v.checksum is not None and not traces() and checksum_of_memory(e.buffers[k]) != v.checksum:
                    raise RuntimeError(f"checkpoint: {self.op.name}, computed again, gave other values than before; "
                                       f"an array that it reads was written through NumPy, the number of threads is "
                                       f"another one, or the operator is not deterministic: keep its results with "
                                       f"keep=[{self.op.name!r}]")
                v.drop()                            # (memory that was written)
                v.keep(e.buffers[k])
        finally:
            end(&e)
            release_operands(x, n)
            PyMem_Free(x)
        return 0


cdef Recipe begin_recipe(Execution* e, Operator op, const Operand* x, object attributes):
    """The recipe of an execution that is about to run, or None if no region is open."""
    cdef RecipeScope g = open_region(e.thread)
    cdef Recipe r
    cdef int i, n = e.call.n_in
    if g is None or g.strong and not e.thread.recording: return None    # (a budget evicts what is recorded)
    r = Recipe.__new__(Recipe)
    r.op, r.attributes, r.wanted, r.number, r.values = op, attributes, e.call.wanted, next_number(), []
    r.reads = <Read*>PyMem_Calloc(max(n, 1), sizeof(Read))
    if r.reads == NULL: raise MemoryError("no memory for a recipe")
    for i in range(n):
        r.values.append(None if x[i].buffer == NULL else g.read(x[i].buffer))
        r.reads[i].number, r.reads[i].dtype = x[i].number, e.call.x[i].dtype
        r.reads[i].layout = lay.incref(e.call.x[i].layout)
    return r


cdef int finish_recipe(Recipe r, Execution* e) except -1:
    """The execution has run. The results of operators that the region keeps are as those of no recipe."""
    cdef RecipeScope g = open_region(e.thread)
    cdef int k
    if r is None: return 0
    r.work = e.call.work if e.call.work else e.call.y[0].layout.size
    for k in range(e.call.n_in if not e.call.work else 0): r.work = max(r.work, <double>e.call.x[k].layout.size)
    g.work += r.work
    if r.op.name in g.keep: return 0
    for k in range(e.call.n_out): g.made(e.buffers[k], r, k)
    if g.strong: g.observer.called(r, e)
    return 0


cdef int finish_recipe_over(Recipe r, Execution* e, Tensor target) except -1:
    """The same for one that has written to `target`, which must fill its buffer."""
    cdef RecipeScope g = open_region(e.thread)
    cdef const Layout* l = target.layout
    if r is None: return 0
    if l.dense and not l.offset and l.size * itemsize(target.dtype) == <Py_ssize_t>target.buffer.nbytes:
        return finish_recipe(r, e)
    g.values.pop(<size_t>target.buffer, None)
    return 0
