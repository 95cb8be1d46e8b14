"""Traces (trace.pxd): virtual memory, the steps of a program, and what stands for the memory outside."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from cygrad.core.graph.tensor cimport (
    NULL_REQ, PyObject_GC_Track, attach, fill, is_tracked, next_number, put_grad, shell,
)
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport (
    EXTERNAL, OTHER, ZEROS, count_again, forget_virtual, new_virtual, set_aside, zeros,
)
from cygrad.core.store.buffer cimport hold as hold_buffer
from cygrad.kernels.array cimport UINT8, itemsize

from bisect import bisect_left
from weakref import ref

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef uintptr_t FIRST_ADDRESS = <uintptr_t>1 << 55   # virtual memory begins here. No system maps memory there.
cdef uintptr_t cursor = FIRST_ADDRESS


cdef int refuse_trace(str action) except -1:
    """If this thread traces a program, raise RuntimeError, because that cannot do `action`."""
    cdef Trace t = trace_of(flags())
    if t is None: return 0
    if t.purpose == PLANNING:
        raise RuntimeError(f"memory.plan: {action} needs values, and a plan computes none; keep it outside the planned "
                           f"function")
    raise RuntimeError(f"capture: {action} cannot be captured, because a net runs operators in planned memory and "
                       f"would not repeat it; keep it outside the captured function")


cdef bint has_values(const Array* a) noexcept nogil:
    """Whether infer() may read the elements of `a`: not if they are virtual, or differ from run to run."""
    if flags().trace == NULL: return True
    with gil: return (<Trace>flags().trace).purpose == PLANNING and <uintptr_t>a.data < FIRST_ADDRESS


cdef Tensor on_buffer(Buffer* b, const Layout* layout, int dtype):
    """A tensor on the buffer `b`, which memory.scope() does not see."""
    cdef Tensor t = shell()
    hold_buffer(b)
    fill(t, b, lay.incref(layout), dtype)
    return t


cdef class Storage:
    """Memory outside the arena."""


cdef class Written:
    """Writes to memory from outside."""


# ---- traces ----------------------------------------------------------------------------------------------------------

cdef class Trace:
    """A trace of one thread."""

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_lives):
            if self.lives[i].buffer != NULL: forget_virtual(self.lives[i].buffer)
            PyMem_Free(self.lives[i])
        PyMem_Free(self.lives)

    cdef Life* new_life(self, size_t nbytes) except NULL:
        """A life of `nbytes` from now on, at new addresses."""
        cdef Life* life
        cdef Life** lives
        global cursor
        if self.n_lives == self.capacity:
            lives = <Life**>PyMem_Realloc(self.lives, (2 * self.capacity + 64) * sizeof(Life*))
            if lives == NULL: raise MemoryError("no memory for a trace")
            self.lives, self.capacity = lives, 2 * self.capacity + 64
        life = <Life*>PyMem_Calloc(1, sizeof(Life))
        if life == NULL: raise MemoryError("no memory for a trace")
        life.data, life.nbytes, life.storage, life.number = <char*>cursor, nbytes, -1, self.n_lives
        life.trace = <void*>self
        life.first_use = life.last_use = -1
        cursor += (nbytes + 255) // 128 * 128       # (a gap, so that no address belongs to two)
        self.lives[self.n_lives] = life
        self.n_lives += 1
        return life

    cdef void use(self, const Buffer* b) noexcept:
        """Register that the next step uses a buffer."""
        cdef Life* life = life_of(b)
        if life == NULL: return
        life.last_use = self.clock
        if life.first_use < 0: life.first_use = self.clock

    cdef int use_gradient(self, Leaf leaf) except -1:
        """Register that the next step uses a .grad that settle() of effects.pyx has put in its place."""
        if leaf.grad is not None: self.use(leaf.grad.buffer)
        (<Storage>self.storages[self.gradient_storage(leaf)]).last_use = self.clock
        return 0

    cdef int new_storage(self, int kind, Tensor tensor, Leaf leaf, key) except -1:
        cdef Storage s = Storage.__new__(Storage)
        s.kind, s.tensor, s.leaf, s.number, s.lives = kind, tensor, leaf, len(self.storages), []
        s.last_use = -1
        self.storages.append(s)
        self.storage_of[key] = s.number
        return s.number

    cdef int storage_on(self, Buffer* b) except -1:
        """The number of the storage of a real buffer."""
        cdef Layout* l
        cdef Py_ssize_t n = b.nbytes
        found = self.storage_of.get(<size_t>b)
        if found is not None: return found
        l = lay.dense(1, &n)
        try: tensor = on_buffer(b, l, UINT8)
        finally: lay.decref(l)
        return self.new_storage(TENSOR, tensor, None, <size_t>b)

    cdef int gradient_storage(self, Leaf leaf) except -1:
        """The number of the storage of a variable's .grad."""
        leaf = self.outside(leaf)
        found = self.storage_of.get(<size_t><void*>leaf)
        return self.new_storage(GRADIENT, None, leaf, <size_t><void*>leaf) if found is None else found

    # ---- what is outside

    cdef Leaf seen(self, Leaf leaf):
        """The accumulator of a variable as the program sees it: Twin.state, if the program has changed it."""
        found = self.twins.get(<size_t><void*>leaf)
        return leaf if found is None else (<Twin>found).state

    cdef Leaf outside(self, Leaf leaf):
        """The accumulator that `leaf`, which may be a Twin.state, stands for."""
        found = self.twins.get(<size_t><void*>leaf)
        return leaf if found is None else (<Twin>found).leaf

    cdef bint is_own(self, Leaf leaf):
        """Whether an accumulator is not shared with other threads."""
        return <size_t><void*>leaf in self.twins or not self.has_outside(leaf)

    cdef Leaf state_of(self, Leaf leaf):
        """The accumulator that the program may change in the place of `leaf`."""
        cdef Twin u
        cdef Leaf state
        cdef Tensor grad
        cdef int number = -1
        found = self.twins.get(<size_t><void*>leaf)
        if found is not None: return (<Twin>found).state
        if not self.has_outside(leaf):
            if self.lists and leaf not in self.inside: self.inside.append(leaf)
            return leaf
        u, state = Twin.__new__(Twin), Leaf.__new__(Leaf)
        PyObject_GC_Track(<PyObject*>state)
        state.layout, state.n_out, state.dtype, state.tensor = lay.incref(leaf.layout), 1, leaf.dtype, leaf.tensor
        u.leaf, u.state, u.tensor, u.aside = leaf, state, <Tensor>leaf.tensor, []
        if self.purpose == PREPARING: number = self.gradient_storage(leaf)
        self.twins[<size_t><void*>leaf] = self.twins[<size_t><void*>state] = u
        self.undo.append(u)
        state.req, state.sparse, state.given, state.collected = leaf.req, leaf.sparse, leaf.given, leaf.collected
        state.fresh, state.incomplete = leaf.fresh, leaf.incomplete
        grad, rows = leaf.grad, leaf.rows           # (from here on another thread may change them)
        if grad is not None: put_grad(state, self.stand_in(u, grad, Py_REFCNT(<PyObject*>grad) > 2, number))
        elif rows is not None: state.rows = self.rows_stand_in(u, rows)
        elif number >= 0: self.stand_for_none(state, number)
        if grad is not None: u.grad = ref(state.grad)
        if self.purpose == PREPARING: u.rows = state.rows
        return state

    cdef Tensor stand_in(self, Twin u, Tensor t, bint shared, int number):
        """A tensor on virtual memory for `t`, a tensor of the gradient of a variable, which is then counted as freed.
        It is `t` itself if others hold its memory, since the program would not free that, or if it is a part of it.
        `shared`: `t` has references beside that of the gradient. `number`: of the gradient's storage, or -1."""
        cdef Tensor kept = shell(), y = shell()     # (first: an allocation may let another thread run)
        cdef Buffer* b = t.buffer
        cdef Buffer* virtual
        cdef Life* life
        cdef bint empty = b.flags & ZEROS
        found = self.shared.get(<size_t>b)          # (two variables can have the same .grad)
        if found is not None: return found
        if b.holders > 1 or b.flags & (EXTERNAL | VIRTUAL) or (number >= 0 and t.layout.offset):
            if number >= 0 and not b.flags & VIRTUAL:
                self.storage_of[<size_t>b] = number
                (<Storage>self.storages[number]).start = t.layout.offset * itemsize(t.dtype)
            return t
        hold_buffer(b)                              # (until the end, so that no other buffer gets its address)
        fill(kept, b, lay.incref(lay.SCALAR), 0)
        if empty and number < 0: virtual = zeros(b.home.size, b.category)
        else:
            life = self.new_life(b.home.size if empty else b.nbytes)
            life.storage = number
            if not empty: set_aside(b)              # (before the stand-in counts)
            try: virtual = new_virtual(life, b.category)
            except:
                if not empty: count_again(b)
                raise
            if number >= 0: (<Storage>self.storages[number]).lives.append(life.number)
        virtual.gradients, virtual.parameters, virtual.optimizer = max(b.gradients, 1) - 1, b.parameters, b.optimizer
        virtual.version, virtual.rewrites = b.version, b.rewrites
        fill(y, virtual, lay.incref(t.layout), t.dtype)
        if is_tracked(t): attach(y, t._node, t._output_nr)
        u.aside.append((ref(y), kept, not empty))
        if number >= 0: self.storage_of[<size_t>b] = number
        if shared: self.shared[<size_t>b] = y
        return y

    cdef object rows_stand_in(self, Twin u, rows):
        """The same for a GradientSlice. A program that makes steps reads the rows themselves."""
        cdef Tensor indices = rows.indices, values = rows.values
        if self.purpose == PREPARING or Py_REFCNT(<PyObject*>rows) > 2: return rows
        return type(rows)(self.stand_in(u, indices, Py_REFCNT(<PyObject*>indices) > 2, -1),
                          self.stand_in(u, values, Py_REFCNT(<PyObject*>values) > 2, -1), rows.shape)

    cdef Written written_on(self, Buffer* b):
        """What the trace knows of the writes to a real buffer."""
        cdef Written w
        found = self.written.get(<size_t>b)
        if found is not None: return found
        w = Written.__new__(Written)
        w.tensor, w.version, w.at = on_buffer(b, lay.SCALAR, 0), b.version, []
        self.written[<size_t>b] = w
        return w

    cdef bint wrote_since(self, Node node, const Slot* s, Buffer* b) except -1:
        """Whether the program has written to `b` since `node` saved it in `s`. Writes of other threads do not count,
        except those that came before the trace."""
        cdef Written w
        if b.flags & VIRTUAL: return s.version != b.version
        found = self.written.get(<size_t>b)
        if found is None: return node.seq < self.first and s.version != b.version
        w = found
        return bool(w.at and w.at[-1] > node.seq) or (node.seq < self.first and s.version != w.version)

    cdef int stand_for_none(self, Leaf leaf, int number) except -1:
        """A variable without a .grad has one of zeros when the program runs first."""
        cdef Life* life = self.new_life(leaf.layout.size * itemsize(leaf.dtype))
        life.storage = number
        (<Storage>self.storages[number]).lives.append(life.number)
        cdef Tensor t = shell()
        fill(t, new_virtual(life, OTHER), lay.dense_like(leaf.layout), leaf.dtype)
        self.of_none[<size_t><void*>leaf] = life.number
        return put_grad(leaf, t)

    cdef bint is_outside(self, Tensor x):
        """Whether a tensor existed before the trace."""
        if x.buffer.flags & VIRTUAL: return False
        found = self.storage_of.get(<size_t>x.buffer)
        return found is None or found >= 0 and (<Storage>self.storages[found]).kind != CONSTANT

    cdef bint has_outside(self, Leaf leaf):
        """Whether a variable existed before the trace, and still does."""
        leaf = self.outside(leaf)
        if leaf.tensor == NULL or not self.is_outside(<Tensor>leaf.tensor): return False
        return not self.roles.get(<size_t><void*>leaf, False)   # (True: the program has made it a variable)

    cdef int constant_made(self, Tensor t) except -1:
        """Keep a tensor that the program made, but no operator computed: steps read its memory."""
        if self.purpose == PLANNING: self.storage_of[<size_t>t.buffer] = -1     # (the program may free it)
        else: self.new_storage(CONSTANT, on_buffer(t.buffer, t.layout, t.dtype), None, <size_t>t.buffer)
        return 0

    cdef int before_write(self, Buffer* b) except -1:
        """Call this before a step that writes to a buffer is emitted."""
        cdef Written w
        if not b.flags & VIRTUAL:
            w = self.written_on(b)
            w.at.append(next_number())
        return self.may_write(b)

    cdef int may_write(self, Buffer* b) except -1:
        """The same before a step that writes to a buffer in some runs only, and not in the trace."""
        cdef Storage s
        if self.purpose != PREPARING: return 0
        if b.flags & VIRTUAL: s = self.storage_of_life(b)
        else:
            s = self.storages[self.storage_on(b)]
            if s.kind == CONSTANT and not s.writes: s.initial = PyBytes_FromStringAndSize(b.data, b.nbytes)
        if s is not None: s.writes += 1
        return 0

    cdef Storage storage_of_life(self, const Buffer* b):
        """The storage that a virtual buffer stands for, or None."""
        cdef int number = b.home.life.storage if b.home.life != NULL else -1
        return None if number < 0 else self.storages[number]

    cdef bint is_free(self, Storage s, const Life* life):
        """Whether the storage is not used after the first use of `life`, nor any other life in it."""
        cdef Life* other
        if s.last_use >= life.first_use: return False
        for k in s.lives:
            other = self.lives[<int>k]
            if other.buffer != NULL or other.last_use >= life.first_use: return False
        return True


# ---- what the thread of a trace sees --------------------------------------------------------------------------------

cdef Leaf touch_leaf(Leaf leaf):
    """The accumulator to change in the place of `leaf`: another one only if the thread traces."""
    cdef Flags* f = flags()
    return leaf if f.trace == NULL else (<Trace>f.trace).state_of(leaf)


cdef Leaf seen_leaf(Leaf leaf):
    """The accumulator to read in the place of `leaf`: another one only if the thread traces."""
    cdef Flags* f = flags()
    return leaf if f.trace == NULL else (<Trace>f.trace).seen(leaf)


cdef bint is_frozen(Tensor x) except -1:
    """Whether the thread's trace has frozen the variable `x` ("null"), which other threads still record."""
    if flags().trace == NULL or x._node is None or x._node.op is not None: return False
    return seen_leaf(<Leaf>x._node).req == NULL_REQ


cdef uint32_t version_of(const Buffer* b):
    """The version of a buffer, with the writes of the thread's trace."""
    cdef Flags* f = flags()
    if f.trace == NULL or b.flags & VIRTUAL: return b.version
    found = (<Trace>f.trace).written.get(<size_t>b)
    return b.version if found is None else b.version + <uint32_t>len((<Written>found).at)


cdef uint32_t version_saved(Node node, const Slot* s, const Buffer* b):
    """The version at which `node` saved a buffer in `s`, with the writes of the thread's trace before."""
    cdef Flags* f = flags()
    if f.trace == NULL or b == NULL or b.flags & VIRTUAL: return s.version
    found = (<Trace>f.trace).written.get(<size_t>b)
    return s.version if found is None else s.version + <uint32_t>bisect_left((<Written>found).at, node.seq)


cdef uint32_t writes_of(const Buffer* b):
    """A number that rises with each write to a buffer; during a trace, with its own writes only."""
    cdef Flags* f = flags()
    if f.trace == NULL or b.flags & VIRTUAL: return b.version
    found = (<Trace>f.trace).written.get(<size_t>b)
    return 0 if found is None else <uint32_t>len((<Written>found).at)


cdef void* set_trace(void* trace) noexcept:
    """Make `trace`, or NULL, that of this thread. Returns the previous one."""
    cdef void* before = flags().trace
    flags().trace = trace
    return before
