"""Makes recipes, and makes values again by them (recipes.pxd)."""

cimport cython

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cygrad.core.execute.executor cimport begin, end, infer, place_fresh, set_operands
from cygrad.core.execute.forward cimport perform
from cygrad.core.execute.operands cimport release_operands
from cygrad.core.graph.checksums cimport checksum
from cygrad.core.graph.construct cimport copy_plain
from cygrad.core.graph.packed cimport put_packed, watch
from cygrad.core.graph.release cimport decref_later, decref_waiting
from cygrad.core.graph.slots cimport Slot, buffer_in
from cygrad.core.graph.tensor cimport Node, array_of, next_number, slots_of
from cygrad.core.graph.trace cimport on_buffer, traces, version_of
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport hold, release_saved, save
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport UINT8, Array, itemsize

from cygrad.core.errors import InplaceError

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef uint64_t executed = 0      # recipes


def executed_recipes():
    """How often a recipe was executed, in all threads."""
    return executed


# ---- regions ---------------------------------------------------------------------------------------------------------

cdef RecipeScope open_region(const Flags* f):
    """The region that is the thread's packing, or None."""
    return <RecipeScope>f.pack if f.pack != NULL and type(<object>f.pack) is RecipeScope else None


cdef class RecipeScope(Packing):
    def __cinit__(self, keep=frozenset(), bint hashed=False):
        self.outer = open_region(flags())
        self.values = {} if self.outer is None else self.outer.values
        self.keep, self.hashed, self.scope = keep, hashed, "checkpoint()"

    def close(self):
        """End the region: what no slot needs is forgotten."""
        if self.outer is None: self.values.clear()

    cdef Value known(self, Buffer* b):
        """The Value in a buffer now, or None."""
        cdef Value v
        found = self.values.get(<size_t>b)
        if found is None: return None
        v = found
        return v if v.watch.buffer == b and v.version == version_of(b) else None

    cdef Value read(self, Buffer* b):
        """The Value in a buffer that a recipe reads. One that no recipe has made is kept alive."""
        cdef Value v = self.known(b)
        if v is not None:                           # (one that another region reads belongs to the one around both)
            while not v.region.is_around(self): v.region = v.region.outer
            return v
        v = self.new_value(b)
        v.keep(b)
        return v

    cdef int made(self, Buffer* b, Recipe r, int nr) except -1:
        """A recipe has made what is in a buffer."""
        cdef Value v = self.new_value(b)
        v.recipe, v.nr = r, nr
        r.outputs[nr] = <void*>v
        return 0

    cdef Value new_value(self, Buffer* b):
        cdef Value v = Value.__new__(Value)
        v.watch, v.version, v.region = watch(b), version_of(b), self
        self.values[<size_t>b] = v
        return v

    cdef int pack(self, Node node) except -1:
        """The slots of a new node hold Values that recipes have made, and not their memory."""
        cdef Slot* s = slots_of(node)
        cdef Buffer* b
        cdef Value v
        cdef int k
        for k in range(node.n_slots):
            b = buffer_in(&s[k])
            v = None if b == NULL else self.known(b)
            if v is None or v.recipe is None: continue
            if self.hashed and v.checksum is None and not traces(): v.checksum = checksum_of(b)
            put_packed(node, &s[k], v)
        return 0

    cdef int before_write(self, Buffer* b) except -1:
        """What a recipe reads in a buffer, and no recipe has made, is copied before the region overwrites it."""
        cdef Value v = self.known(b)
        cdef Tensor y
        if v is None or v.held != b: return 0
        del self.values[<size_t>b]
        if Py_REFCNT(<PyObject*>v) == 1: return 0   # (nothing else refers to it)
        y = copy_plain(bytes_of(b))
        v.drop()
        return v.keep(y.buffer)

    cdef bint is_around(self, RecipeScope r) noexcept:
        """Whether this is `r`, or a region around it."""
        while r is not None:
            if r is self: return True
            r = r.outer
        return False


cdef Tensor bytes_of(Buffer* b):
    """The memory of a buffer as a tensor of bytes."""
    cdef Py_ssize_t n = b.nbytes
    cdef Layout* l = lay.dense(1, &n)
    try: return on_buffer(b, l, UINT8)
    finally: lay.decref(l)


cdef bytes checksum_of(Buffer* b):
    cdef Array a = array_of(bytes_of(b))
    return checksum(&a)


# ---- values ----------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Value(Packed):
    def __dealloc__(self):
        self.drop()
        if self.recipe is not None: self.recipe.outputs[self.nr] = NULL

    cdef Buffer* memory(self) noexcept:
        """A buffer that has it, or NULL."""
        cdef Buffer* b = self.watch.buffer
        if self.held != NULL: return self.held if version_of(self.held) == self.held_version else NULL
        return b if b != NULL and version_of(b) == self.version else NULL

    cdef int keep(self, Buffer* b) except -1:
        """Keep memory alive that has it."""
        save(b)
        self.held, self.held_version = b, version_of(b)
        return 0

    cdef void drop(self) noexcept:
        """Keep no memory alive."""
        cdef Buffer* b = self.held
        self.held = NULL
        if b != NULL: release_saved(b)

    cdef Tensor unpack(self, Node node, const Slot* s):
        cdef Buffer* b = self.memory()
        if b == NULL:
            make_again(self)
            b = self.held
        return on_buffer(b, s.layout, s.dtype)


cdef int make_again(Value wanted) except -1:
    """Execute the recipes that make a Value whose memory is gone. What was made in its region, or in one around it, is
    kept for the slots and recipes that need it, because backward comes to them next; what was made in other regions is
    dropped after its last use."""
    cdef list waiting = [wanted]
    cdef dict recipes = {}      # number -> Recipe
    cdef dict readers = {}      # Value -> how many of them read it and have not run
    cdef list alive = []
    cdef Recipe r
    cdef Value v
    cdef int k
    while waiting:
        v = waiting.pop()
        if v.recipe is None: raise_overwritten(v, wanted)
        r = v.recipe
        if r.number in recipes: continue
        recipes[r.number] = r
        for x in r.values:
            if x is None: continue
            v = x
            readers[v] = readers.get(v, 0) + 1
            if v.memory() == NULL: waiting.append(v)
            elif v.held == NULL: alive.append(bytes_of(v.memory()))     # (as long as the recipes run)
    v = None
    for number in sorted(recipes):
        r = recipes.pop(number)
        values = r.values                           # (which r can lose)
        r.execute()
        for k in range(MAX_OUTPUTS):
            if r.outputs[k] == NULL: continue
            v = <Value>r.outputs[k]
            if v.held == NULL: continue             # (its memory is not gone)
            if v.region.is_around(wanted.region):
                r.outputs[k] = NULL
                v.recipe = None
            elif v not in readers: v.drop()
        r = None
        for x in values:
            if x is None: continue
            v = x
            readers[v] -= 1
            if readers[v]: continue
            del readers[v]                          # (it is freed here if no slot and no other recipe needs it)
            if v.recipe is not None: v.drop()
        v = x = values = None
    return 0


cdef int raise_overwritten(Value v, Value wanted) except -1:
    raise InplaceError(f"checkpoint: {wanted.recipe.op.name} cannot be computed again, because a tensor of "
                       f"{v.held.nbytes:,} bytes that the checkpointed function has read was written in place since; "
                       f"write to a copy(), or after backward")


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
        global executed
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
                b = v.memory()
                hold(b)
                lay.incref(self.reads[i].layout)
                x[i].buffer, x[i].array.data = b, b.data + x[i].array.layout.offset * itemsize(x[i].array.dtype)
            set_operands(&e, x, n, self.wanted)
            infer(&e, self.op)
            place_fresh(&e, 0)
            perform(&e, self.op, x, self.attributes)
            executed += 1
            for k in range(e.call.n_out):
                if self.outputs[k] == NULL: continue
                v = <Value>self.outputs[k]
                if v.memory() != NULL: continue
                if v.checksum is not None and not traces() and checksum_of(e.buffers[k]) != v.checksum:
                    raise RuntimeError(f"checkpoint: {self.op.name}, computed again, gave other values than before; "
                                       f"an array that it reads was written through NumPy, or the operator is not "
                                       f"deterministic: keep its results with keep=[{self.op.name!r}]")
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
    if g is None: return None
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
    if r is None or r.op.name in g.keep: return 0
    for k in range(e.call.n_out): g.made(e.buffers[k], r, k)
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
