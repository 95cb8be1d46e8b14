"""Programs: the steps of a trace in memory that was planned beforehand.

A program calls the kernels of eager code with the same arguments in the same order, so its results equal those of eager
code bit for bit. The virtual buffers of the trace have places in one arena, so a run allocates nothing, except the
`.grad` of variables that have none."""

cimport cython

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from cygrad.core.execute.composed cimport rename
from cygrad.core.execute.placing cimport ALIGNMENT, bound, place
from cygrad.core.graph.construct cimport computed, copy_plain, zeros_like
from cygrad.core.graph.tensor cimport Leaf, ensure_tensor, fill, is_tracked, put_grad, ready, shell
from cygrad.core.graph.trace cimport (
    CONSTANT, GRADIENT, INPUT, PREPARING, LeafStep, Pointer, Step, Storage, begin_trace, end_trace, on_buffer,
    refuse_trace, virtual_tensor,
)
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER, VIRTUAL, WORKSPACE, Life, hold
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport UINT8, Layout, itemsize

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import described

cdef enum:
    SHOWN = 24              # operators that an error lists


cdef tuple signature_of(argument):
    """(shape, dtype) of an example, which may be such a pair itself."""
    cdef Tensor x
    if isinstance(argument, tuple): return tuple(argument[0]), DTYPES[dtype_number(argument[1])]
    x = ensure_tensor(argument)
    return x.shape, DTYPES[x.dtype]


cdef object copied(result):
    """The result of a traced function, with copies of what is in the memory of an argument."""
    cdef Tensor y
    if isinstance(result, (tuple, list)): return tuple([copied(y) for y in result])
    if isinstance(result, dict): return {key: copied(y) for key, y in result.items()}
    if not isinstance(result, Tensor): return result
    y = <Tensor>result
    return copy_plain(y) if y.buffer.flags & VIRTUAL and is_argument(y) else y


cdef bint is_argument(Tensor y):
    cdef Life* life = <Life*>y.buffer.home
    cdef Trace t = <Trace>flags().trace
    return life.storage >= 0 and (<Storage>t.storages[life.storage]).kind == INPUT


cdef inline bint in_arena(const Life* life) noexcept:
    return life.storage < 0 and life.nbytes > 0 and life.first_use >= 0


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Program:
    """`Program(f, *tensors)` traces f, without computing anything, and prepares the kernel calls that it makes:
    operators, backward passes, updates of solvers. `run(*tensors)` makes these calls on other arguments, of the same
    shapes and dtypes, and returns `outputs`, whose memory the next run overwrites. `arena_bytes` is the memory of all
    intermediate results, `bound_bytes` the maximum of those that are needed at one time.

    Variables, running statistics, generators and states of solvers outside are used and changed by each run as by each
    call of f. Python code in f runs once. Raises RuntimeError if f reads values or does something else that a run
    would not repeat."""

    @cython.embedsignature.format("c")
    def __init__(self, f, *arguments, calls=None, **named):
        cdef Trace t
        cdef Tensor x
        cdef list given = []
        self.signature = [signature_of(a) for a in arguments]
        self.inputs = []
        t = begin_trace(PREPARING)
        t.calls = calls
        try:
            for shape, dtype in self.signature:
                y = virtual_tensor(t, lay.from_shape(shape), dtype_number(dtype), INPUT)
                self.inputs.append((<Life*>(<Tensor>y).buffer.home).storage)
                given.append(y)
            result = copied(f(*given, **named))
            t.finish()
            self.build(t)
            self.outputs = self.place_outputs(t, result)
        finally:
            end_trace(t)

    def __dealloc__(self):
        PyMem_Free(self.spots)
        PyMem_Free(self.first_spot)
        PyMem_Free(self.intervals)

    def place_outputs(self, Trace t, result):
        """The outputs of a run: `result` with tensors in the memory of the program."""
        if isinstance(result, Tensor): return self.placed(t, <Tensor>result)
        if isinstance(result, (tuple, list)): return tuple([self.place_outputs(t, y) for y in result])
        if isinstance(result, dict): return {key: self.place_outputs(t, y) for key, y in result.items()}
        if result is None: return None
        raise TypeError(f"a captured function returns tensors, or tuples, lists or dicts of them, or None; this one "
                        f"returned {described(result)}")

    @property
    def lives(self):
        """The virtual buffers: (bytes, offset in the arena, first step, last step, storage). The offset of a buffer
        outside the arena is None."""
        return [(nbytes, self.intervals[i].offset if self.intervals[i].nbytes else None, first, last, storage)
                for i, (nbytes, first, last, storage) in enumerate(self.uses)]

    cdef Tensor placed(self, Trace t, Tensor y):
        """The tensor `y` of the trace, in the memory of the program."""
        cdef Life* life
        cdef Layout* l
        cdef Storage s
        cdef Py_ssize_t d
        cdef Tensor whole
        cdef size_t offset = 0
        if not y.buffer.flags & VIRTUAL: return on_buffer(y.buffer, y.layout, y.dtype)
        life = <Life*>y.buffer.home
        if life.storage < 0:
            whole = self.arena
            offset = self.intervals[life.number].offset
        else:
            s = self.storages[life.storage]
            whole = s.leaf.grad                     # (an INPUT was copied)
        l = lay.blank(y.layout.ndim)
        for d in range(y.layout.ndim): l.shape[d], l.strides[d] = y.layout.shape[d], y.layout.strides[d]
        lay.finish(l)
        l.offset = y.layout.offset + offset // itemsize(y.dtype)
        try: return on_buffer(whole.buffer, l, y.dtype)
        finally: lay.decref(l)

    # ---- memory

    cdef int build(self, Trace t) except -1:
        """Place the virtual buffers of a trace that has ended, and set all addresses that are known."""
        cdef Life* life
        cdef Interval* packed
        cdef Step s
        cdef Storage storage
        cdef Pointer* p
        cdef Py_ssize_t nbytes
        cdef int i, k, n = 0, number
        cdef int* next_spot
        self.steps, self.storages, self.n_intervals = tuple(t.steps), tuple(t.storages), t.n_lives
        self.intervals = <Interval*>PyMem_Calloc(max(t.n_lives, 1), sizeof(Interval))
        packed = <Interval*>PyMem_Calloc(max(t.n_lives, 1), sizeof(Interval))
        self.first_spot = <int*>PyMem_Calloc(len(t.storages) + 2, sizeof(int))
        try:
            if packed == NULL or self.intervals == NULL or self.first_spot == NULL:
                raise MemoryError("no memory for a program")
            for i in range(t.n_lives):
                life = t.lives[i]
                if not in_arena(life): continue
                packed[n].nbytes = (life.nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
                packed[n].birth = life.first_use
                packed[n].death = t.clock + 1 if life.buffer != NULL else life.last_use + 1
                n += 1
            self.bound_bytes = bound(packed, n)
            self.arena_bytes = place(packed, n)
            n = 0
            for i in range(t.n_lives):
                if not in_arena(t.lives[i]): continue
                self.intervals[i] = packed[n]
                n += 1
        finally:
            PyMem_Free(packed)
        nbytes = self.arena_bytes
        flags().values += 1
        try: self.arena = computed(lay.dense(1, &nbytes), UINT8, WORKSPACE)
        finally: flags().values -= 1
        for s in self.steps:                        # count the addresses in each storage
            for k in range(s.n_pointers):
                p = &s.pointers[k]
                number = t.lives[p.life].storage if p.life >= 0 else p.storage
                if number >= 0: self.first_spot[number + 2] += 1
        for i in range(len(t.storages)): self.first_spot[i + 2] += self.first_spot[i + 1]
        n = self.first_spot[len(t.storages) + 1]
        self.spots = <Spot*>PyMem_Calloc(max(n, 1), sizeof(Spot))
        if self.spots == NULL: raise MemoryError("no memory for a program")
        next_spot = self.first_spot + 1             # (which becomes first_spot of the following storage)
        for s in self.steps:
            for k in range(s.n_pointers):
                p = &s.pointers[k]
                number = t.lives[p.life].storage if p.life >= 0 else p.storage
                if number < 0: p.at[0] = self.arena.buffer.data + self.intervals[p.life].offset + p.offset
                else:
                    self.spots[next_spot[number]].at = p.at
                    self.spots[next_spot[number]].offset = p.offset
                    next_spot[number] += 1
        for storage in self.storages:
            if storage.kind == GRADIENT: storage.tensor = <Tensor>storage.leaf.tensor   # (stays alive)
            elif storage.kind != INPUT: self.bind(storage.number, storage.tensor.buffer.data)
        self.find_leaves(t)
        self.uses = [(t.lives[i].nbytes, t.lives[i].first_use, t.lives[i].last_use, t.lives[i].storage)
                     for i in range(t.n_lives)]
        return 0

    def find_leaves(self, Trace t):
        """Set `leaves`."""
        cdef Storage storage
        cdef Step s
        cdef int k, number
        first, last = {}, {}
        for i, step in enumerate(self.steps):
            s = step
            if isinstance(s, LeafStep): last[t.storage_of[<size_t><void*>(<LeafStep>s).leaf]] = i
            for k in range(s.n_pointers):
                number = t.lives[s.pointers[k].life].storage if s.pointers[k].life >= 0 else s.pointers[k].storage
                if number >= 0: first.setdefault(number, i)
        self.leaves = [(storage, first.get(storage.number, len(self.steps)), last.get(storage.number, -1))
                       for storage in self.storages if storage.kind == GRADIENT]

    cdef int bind(self, int number, char* address) noexcept:
        """Set all addresses in a storage."""
        cdef Storage s = <Storage>self.storages[number]
        cdef int k
        if s.address == address: return 0
        s.address = address
        for k in range(self.first_spot[number], self.first_spot[number + 1]):
            self.spots[k].at[0] = address + self.spots[k].offset
        return 0

    cdef int bind_all(self, tuple arguments) except -1:
        """Set the addresses that may have changed since the last run: of arguments and of gradients."""
        cdef Storage s
        cdef Tensor x, g
        cdef Leaf leaf
        cdef int i, number
        if len(arguments) != len(self.inputs):
            raise TypeError(f"run: the program takes {len(self.inputs)} tensors, got {len(arguments)}")
        self.held = []
        for i, number in enumerate(self.inputs):
            x = ensure_tensor(arguments[i])
            ready(x)
            self.check_argument(i, x)
            if not x.layout.dense: x = copy_plain(x)
            self.held.append(x)
            self.bind(number, x.buffer.data + x.layout.offset * itemsize(x.dtype))
        for s in self.storages:
            if s.kind == CONSTANT and s.written: memcpy(s.tensor.buffer.data, <const char*>s.initial, len(s.initial))
            if s.kind != GRADIENT: continue
            leaf = s.leaf
            g = leaf.grad
            if leaf.rows is not None:
                raise RuntimeError(f"run: the gradient of a variable of shape {s.tensor.shape} is a GradientSlice; "
                                   f"assign None to its .grad")
            if g is None or is_tracked(g):
                g = zeros_like(s.tensor, OTHER)
                put_grad(leaf, g)
            ready(g)
            if not g.layout.dense:
                raise RuntimeError(f"run: the .grad of a variable of shape {s.tensor.shape} is not contiguous; assign "
                                   f"a copy()")
            self.bind(s.number, g.buffer.data + g.layout.offset * itemsize(g.dtype))
        return 0

    def check_argument(self, int i, Tensor x):
        """Raise ValueError or TypeError unless `x` has the shape and dtype of argument i."""
        wanted, dtype = self.signature[i]
        if x.shape != wanted: raise ValueError(f"run: argument {i} has shape {x.shape}; the program takes {wanted}")
        if DTYPES[x.dtype] != dtype:
            raise TypeError(f"run: argument {i} is {DTYPES[x.dtype]}; the program takes {dtype}")

    # ---- running

    def run(self, *arguments):
        """Make all calls again, on other arguments, and return `outputs`. Raises RuntimeError if another thread is
        running this program, ValueError or TypeError for arguments of other shapes or dtypes; then nothing has
        changed. An error of a step has a note that lists the operators that ran."""
        if flags().trace != NULL: refuse_trace("run() of another program")
        if self.running: raise RuntimeError("run: this program is running already; wait for it, or make another")
        self.running = True
        self.at = 0
        try:
            self.bind_all(arguments)
            self.go()
        except BaseException as e:
            self.explain(e)
            raise
        finally:
            self.running = False
            self.held = None
        return self.outputs

    cdef int go(self) except -1:
        cdef Step s
        cdef Py_ssize_t n = len(self.steps)
        while self.at < n:
            s = <Step>self.steps[self.at]
            s.run()
            PyErr_CheckSignals()
            self.at += 1
        return 0

    def explain(self, e):
        """After an error, add a note to it and mark the gradients that are incomplete."""
        cdef Storage s
        cdef Step step
        for s, first, last in self.leaves:
            if first <= self.at <= last:
                s.leaf.incomplete = True
                s.leaf.fresh = False
        if self.at >= len(self.steps): return
        step = self.steps[self.at]
        if step.within is not None: rename(e, step.within)
        names = [(<Step>x).name for x in self.steps[max(self.at - SHOWN, 0):self.at]]
        e.add_note(f"cygrad: in step {self.at + 1} of {len(self.steps)} of a program; it ran "
                   f"{'..., ' if self.at > SHOWN else ''}{', '.join([*names, f'{step.name} <- failed'])}")
