"""Programs: the steps of a trace in memory that was planned beforehand.

A program calls the kernels of eager code with the same arguments in the same order, so its results equal those of eager
code bit for bit. The virtual buffers of the trace have places in one arena, so a run allocates nothing, except the
`.grad` of variables that have none."""

cimport cython

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memcpy

from cygrad.core.execute.assigned cimport (
    address_of, check_chained, check_gradient, check_move, fill_zeros, gradients_of, has_others, has_shape, meet,
    was_assigned,
)
from cygrad.core.execute.chaining cimport chain_in, undo_chains
from cygrad.core.execute.composed cimport rename
from cygrad.core.execute.placing cimport Interval
from cygrad.core.execute.recomputing cimport Simulation, recompute
from cygrad.core.execute.reusing cimport drop_unused, place_in
from cygrad.core.execute.schedule cimport ProgramSchedule, find_used, schedule_of
from cygrad.core.execute.inplace cimport check_writable
from cygrad.core.graph.construct cimport copy_plain, zeros_like
from cygrad.core.graph.tensor cimport data_of, ensure_tensor, is_tracked, put_grad, ready
from cygrad.core.interop.creation cimport fill
from cygrad.core.graph.effects cimport ASSIGNED_NONE, REMOVED, ZEROED, Change, change_in, finish
from cygrad.core.graph.steps cimport Pointer, Step, repeats
from cygrad.core.graph.trace cimport (
    CONSTANT, GRADIENT, INPUT, PREPARING, TENSOR, Storage, on_buffer, refuse_trace, trace_of,
)
from cygrad.core.graph.tracing cimport begin_trace, end_trace, virtual_tensor
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport (
    OTHER, VIRTUAL, WORKSPACE, ZEROS, Buffer, allocate_for, counters, drop,
)
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport UINT8, Layout, itemsize

import math

import numpy as np

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import described

cdef enum:
    SHOWN = 24              # operators that an error lists
    LEAST_WORK = 4096       # work of a step, at least, in elements,
    SIGNALS = 32768         # and the work after which Ctrl-C arrives: some microseconds


cdef tuple read_signature(x):
    """(shape, dtype) of an argument, which is a pair of these or data."""
    cdef Tensor t
    if type(x) is tuple and len(x) == 2 and isinstance(x[0], (tuple, list)) and isinstance(x[1], (str, type, np.dtype)):
        l = lay.from_shape(tuple(x[0]))             # (it checks the shape)
        try: return lay.shape_tuple(l), DTYPES[dtype_number(x[1])]
        finally: lay.decref(l)
    t = ensure_tensor(x)
    return t.shape, DTYPES[t.dtype]


cdef object own_results(Trace t, result):
    """`result` with copies of tensors whose memory is not the program's: of arguments and gradients."""
    cdef Tensor y
    if isinstance(result, Tensor):
        y = result
        ready(y)
        outside = y.buffer.flags & VIRTUAL and t.storage_of_life(y.buffer) is not None or y.buffer.gradients
        return copy_plain(y) if outside else y
    if isinstance(result, (tuple, list)): return tuple([own_results(t, item) for item in result])
    if isinstance(result, dict): return {key: own_results(t, item) for key, item in result.items()}
    if result is None: return None
    raise TypeError(f"a captured function returns tensors, or tuples, lists or dicts of them, or None; this one "
                    f"returned {described(result)}")


def own_part(Tensor y):
    """As own_results(), of the first part of a program that is traced: a later copy would be made in the other part."""
    return own_results(trace_of(flags()), y)


cdef class Place:
    """Where an output is in the arena. The offset and the strides count elements."""
    cdef Py_ssize_t offset
    cdef tuple shape, strides
    cdef int dtype


cdef Place new_place(Py_ssize_t offset, const Layout* l, int dtype):
    cdef Place p = Place.__new__(Place)
    p.offset, p.shape, p.strides, p.dtype = offset, lay.shape_tuple(l), lay.strides_tuple(l), dtype
    return p


cdef Py_ssize_t place_bytes(place):
    """The bytes of an output, which is a tensor or a place."""
    if not isinstance(place, Place): return place.nbytes
    return math.prod((<Place>place).shape) * itemsize((<Place>place).dtype)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Program:
    """`Program(f, *tensors)` traces f, without computing anything, and prepares the kernel calls that it makes:
    operators, backward passes, updates of solvers. `run(*tensors)` makes these calls on other arguments, of the same
    shapes and dtypes, and returns `outputs`, whose memory the next run overwrites. An argument of Program can also be a
    pair (shape, dtype). `arena_bytes` is the memory of all intermediate results, `bound_bytes` the maximum of those
    that are needed at one time.

    Variables, running statistics, generators and states of solvers outside are used and changed by each run as by each
    call of f, and so are arguments that f writes to in place. f receives its arguments without a graph, also those that
    are variables. Python code in f runs once. Raises RuntimeError if f reads values or does something else that a run
    would not repeat. core/graph/around lists what a run follows of what is around it; a run raises RuntimeError for the
    rest."""

    @cython.embedsignature.format("c")
    def __init__(self, f, *arguments, **named):
        cdef Flags* thread = flags()
        cdef void* scope
        cdef Trace t
        cdef list given = []
        if self.steps is not None: raise RuntimeError("Program: __init__ was called before; make another program")
        self.inputs = []
        self.signature = [read_signature(x) for x in arguments]
        t = begin_trace(PREPARING)
        scope, thread.scope = thread.scope, NULL              # (the program keeps what a step needs)
        t.calls, t.formulas = named.pop("_calls", None), named.pop("_formulas", False)     # (core/graph/calls.pyx)
        limit, budget = named.pop("_limit", None), named.pop("_budget", None)     # (core/execute/recomputing.pyx)
        t.lists = t.calls is not None
        try:
            for shape, dtype in self.signature:
                y = virtual_tensor(t, lay.from_shape(shape), dtype_number(dtype), INPUT)
                self.inputs.append(t.storages[<int>(<Tensor>y).buffer.home.life.storage])
                given.append(y)
            result = own_results(t, f(*given, **named))
            finish(t)
            result = own_results(t, result)         # (a result may have become a .grad)
            if t.lists: return                      # (the list is wanted alone)
            self.build(t, limit, budget)
            self.places = self.place_outputs(result)
            self.around = t.around
        finally:
            thread.scope = scope
            end_trace(t)

    def __dealloc__(self):
        PyMem_Free(self.spots)
        PyMem_Free(self.first_spot)

    @property
    def outputs(self):
        """What f returned, with the values of the last run. Raises RuntimeError before the first run()."""
        if not self.ran: raise RuntimeError("outputs is empty before the first run(); call run() first")
        return self.results

    cdef object place_outputs(self, result):
        """`result` with (offset in the arena, shape, strides, dtype) in place of virtual tensors."""
        cdef Tensor y
        if isinstance(result, Tensor):
            y = result
            if not y.buffer.flags & VIRTUAL: return on_buffer(y.buffer, y.layout, y.dtype)
            number = self.schedule.lives[<int>y.buffer.home.life.number].final
            offset = self.schedule.lives[<int>number].offset // itemsize(y.dtype)
            return new_place(y.layout.offset + offset, y.layout, y.dtype)
        if isinstance(result, tuple): return tuple([self.place_outputs(part) for part in result])
        if isinstance(result, dict): return {key: self.place_outputs(part) for key, part in result.items()}
        return None

    @property
    def failed_at(self):
        """The source of the step in which the last run failed (core/graph/planning.pyx); None: not in a step."""
        return (<Step>self.steps[self.at]).source if 0 <= self.at < len(self.steps) else None

    @property
    def output_bytes(self):
        """If f returned a dict: the bytes of each tensor in it, by key."""
        if not isinstance(self.places, dict): return {}
        return {key: place_bytes(y) for key, y in self.places.items() if y is not None}

    @property
    def lives(self):
        """The virtual buffers: (bytes, offset in the arena, first step, last step, storage, address in the trace). The
        offset of a buffer outside the arena is None. Two with one address in the trace have the same content."""
        return self.spans

    @property
    def recomputed(self):
        """(the number of steps that run again, to keep the arena within a limit, their share of the work of all)"""
        return self.repeated, self.repeated_work / self.work if self.work else 0.0

    cdef object placed(self, place):
        """What place_outputs() returned, with tensors in the arena."""
        cdef Layout* l
        cdef Place p
        cdef int d
        if isinstance(place, tuple): return tuple([self.placed(y) for y in place])
        if isinstance(place, dict): return {key: self.placed(y) for key, y in place.items()}
        if not isinstance(place, Place): return place
        p = <Place>place
        l = lay.blank(len(p.shape))
        for d in range(l.ndim): l.shape[d], l.strides[d] = p.shape[d], p.strides[d]
        lay.finish(l)
        l.offset = p.offset
        try: return on_buffer(self.arena.buffer, l, p.dtype)
        finally: lay.decref(l)

    # ---- memory

    cdef int build(self, Trace t, limit, budget) except -1:
        """Place the virtual buffers of a trace that has ended, and set all addresses that are known. `limit`: the most
        bytes that the arena may have. `budget`: the most that may be live in a run. Or None."""
        cdef ProgramSchedule s = schedule_of(t)
        cdef Simulation again
        cdef Step step
        cdef Storage storage
        cdef size_t missing = 0, enough
        self.schedule = s
        self.storages = tuple(s.storages)
        drop_unused(s)
        self.used = find_used(s)
        place_in(s, <size_t>-1)
        if budget is not None:
            left = budget - <Py_ssize_t>(counters.live + <size_t>sum(self.missing))    # (no arena yet)
            limit, missing = max(left, 0), max(-left, 0)
        if limit is not None and (s.size > limit or missing):
            enough = s.size
            undo_chains(s)
            s.place_all()
            again = recompute(s, limit, missing, enough)
            self.repeated, self.repeated_work = again.repeated, again.work
            place_in(s, limit)
            self.outside = {<size_t>storage.tensor.buffer for storage in self.storages
                            if storage.kind == TENSOR and storage.number not in again.shared}
        self.steps, self.split, self.arena_bytes, self.bound_bytes = tuple(s.steps), s.split, s.size, s.bound
        for step in self.steps: self.work += 0 if repeats(step) is not None else step.work
        self.find_spots()
        for storage in self.storages:
            if storage.kind == GRADIENT: storage.tensor = <Tensor>storage.leaf.tensor   # (stays alive)
            elif storage.kind != INPUT: self.bind(storage.number, storage.tensor.buffer.data)
        self.gradients, self.chained = gradients_of(s), any(chain_in(step) is not None for step in self.steps)
        self.followed = [storage for storage in self.storages if storage.kind == GRADIENT and self.uses(storage)]
        self.restored = [storage for storage in self.storages if storage.kind == CONSTANT and storage.writes]
        self.find_leaves(t)
        return self.find_spans(t)

    cdef int find_spans(self, Trace t) except -1:
        """Set `spans`."""
        cdef ProgramSchedule s = self.schedule
        cdef Interval* x
        cdef int i
        self.spans = []
        for i in range(s.n):
            x = &s.lives[i]
            life = t.lives[x.origin]
            if not x.nbytes: self.spans.append((life.nbytes, None, -1, -1, life.storage, <size_t>life.data))
            else: self.spans.append((life.nbytes, x.offset, x.birth, min(x.death, <int>len(self.steps)) - 1, -1,
                                     <size_t>life.data))
        for i in range(s.n):
            if s.lives[i].over < 0: continue        # (what is below ends where this begins)
            nbytes, offset, first, _, number, address = self.spans[s.lives[i].over]
            self.spans[s.lives[i].over] = nbytes, offset, first, s.lives[i].birth - 1, number, address
        return 0

    cdef int find_spots(self) except -1:
        """Set `spots` and `first_spot`."""
        cdef Step s
        cdef Pointer* p
        cdef int i, k, n, arena = len(self.storages)
        cdef int* next_spot
        self.first_spot = <int*>PyMem_Calloc(arena + 3, sizeof(int))
        if self.first_spot == NULL: raise MemoryError("no memory for a program")
        for s in self.steps:                        # count the addresses in each storage, the arena being the last
            for k in range(s.n_pointers):
                p = &s.pointers[k]
                self.first_spot[(arena if p.life >= 0 else p.storage) + 2] += 1
        for i in range(arena + 1): self.first_spot[i + 2] += self.first_spot[i + 1]
        n = self.first_spot[arena + 2]
        self.spots = <Spot*>PyMem_Calloc(max(n, 1), sizeof(Spot))
        if self.spots == NULL: raise MemoryError("no memory for a program")
        next_spot = self.first_spot + 1             # (which becomes first_spot of the following storage)
        for s in self.steps:
            for k in range(s.n_pointers):
                p = &s.pointers[k]
                i = arena if p.life >= 0 else p.storage
                self.spots[next_spot[i]].at = p.at
                self.spots[next_spot[i]].offset = p.offset
                if p.life >= 0: self.spots[next_spot[i]].offset += self.schedule.lives[p.life].offset
                next_spot[i] += 1
        return 0

    cdef int find_leaves(self, Trace t) except -1:
        """Set `leaves`."""
        cdef Storage storage
        cdef Step s
        cdef int k, number
        cdef const Change* change
        first, last, zeroed = {}, {}, {}
        for i, step in enumerate(self.steps):
            s = step
            change = change_in(s)
            if change != NULL:
                number = t.storage_of[<size_t><void*>s.held]
                last[number] = i
                if change.what == REMOVED or change.what == ASSIGNED_NONE:
                    if number not in first: (<Storage>self.storages[number]).anew = True
                if change.what == ZEROED: zeroed.setdefault(number, i)
            for k in range(s.n_pointers):
                if s.pointers[k].life < 0: first.setdefault(s.pointers[k].storage, i)
        self.leaves = [(storage, zeroed.get(storage.number, len(self.steps)),
                        first.get(storage.number, len(self.steps)), last.get(storage.number, -1))
                       for storage in self.storages if storage.kind == GRADIENT]
        return 0

    cdef int take_arena(self) except -1:
        """Allocate the arena, before the first run."""
        cdef Py_ssize_t nbytes = self.arena_bytes
        cdef Layout* l
        cdef Buffer* b
        if self.arena is not None: return 0
        l = lay.dense(1, &nbytes)
        try:
            b = allocate_for(l, UINT8, WORKSPACE)
            try: self.arena = on_buffer(b, l, UINT8)    # (which no memory.scope() frees)
            finally: drop(b)
        finally: lay.decref(l)
        self.point(len(self.storages), self.arena.buffer.data)
        self.results = self.placed(self.places)
        return 0

    cdef int bind(self, int number, char* address) noexcept:
        """Set all addresses in a storage."""
        cdef Storage s = <Storage>self.storages[number]
        if s.address == address: return 0
        s.address = address
        return self.point(number, address)

    cdef int point(self, int number, char* address) noexcept:
        cdef int k
        for k in range(self.first_spot[number], self.first_spot[number + 1]):
            self.spots[k].at[0] = address + self.spots[k].offset
        return 0

    cdef int read_arguments(self, tuple arguments) except -1:
        """Set `held`, after all checks of arguments."""
        cdef Tensor x
        cdef list held = []
        cdef int i
        if len(arguments) != len(self.inputs):
            raise TypeError(f"run: the program takes {len(self.inputs)} tensors, got {len(arguments)}")
        for i in range(len(arguments)):
            x = ensure_tensor(arguments[i])
            self.check_argument(i, x, arguments[i])
            ready(x)
            if not x.layout.dense: x = copy_plain(x)
            if self.settled and (<Storage>self.inputs[i]).address != address_of(x): self.settled = False
            held.append(x)
        self.held = held
        return 0

    cdef bint is_settled(self) except -1:
        """Whether all gradients are where they were in the last run, and as it left them: then its checks hold."""
        cdef Tensor g
        for s in self.followed:
            g = (<Storage>s).leaf.grad
            if g is None or (<Storage>s).leaf.rows is not None or (<Storage>s).anew: return False
            if g.buffer.flags & (ZEROS | VIRTUAL) or (<Storage>s).address != address_of(g): return False
            if not g.layout.dense or is_tracked(g): return False
        return True

    cdef int check_gradients(self) except -1:
        """Raise RuntimeError if a step cannot write to a gradient, or one was assigned that does not fit the steps."""
        cdef Storage s
        for s in self.followed:
            check_gradient(s)
            if self.runs_again(s) or not was_assigned(self.gradients, s): continue
            check_move(s, self.spots + self.first_spot[s.number],
                       self.first_spot[s.number + 1] - self.first_spot[s.number])
            if self.chained: check_chained(s, self.storages)
        return 0

    cdef int bind_arguments(self) except -1:
        """Set the addresses of arguments."""
        cdef Storage s
        cdef Tensor x
        cdef int i
        for i in range(len(self.inputs)):
            s, x = self.inputs[i], self.held[i]
            self.bind(s.number, address_of(x))
            x.buffer.version += s.writes
        return 0

    cdef bint runs_again(self, Storage s):
        """Whether steps run again from the memory of a gradient."""
        g = s.leaf.grad
        return self.outside is not None and g is not None and <size_t>(<Tensor>g).buffer in self.outside

    cdef int bind_gradients(self) except -1:
        """Set the addresses of gradients."""
        cdef Storage s
        cdef Tensor g
        for s in self.followed:
            g = s.leaf.grad
            if g is None and not s.in_use:          # (it stays None)
                s.address = NULL
                self.point(s.number, NULL)
                continue
            if g is not None and s.anew and has_others(g): g = None
            if g is None:
                g = zeros_like(s.tensor, OTHER)
                put_grad(s.leaf, g)
                fill(data_of(g), g.layout.size, g.dtype, -0.0)  # (-0 + x is x, also if x is -0)
            elif is_tracked(g):                     # it has a graph, so it must not be written to
                g = copy_plain(g)
                put_grad(s.leaf, g)
            ready(g)
            if self.runs_again(s) and s.address != g.buffer.data:
                raise RuntimeError(f"run: the .grad of a variable of shape {s.tensor.shape} shares the memory of a "
                                   f"tensor outside from which steps run again under the budget; assign a copy()")
            self.held.append(g)                     # (a step may put a GradientSlice in its place)
            self.bind(s.number, address_of(g))
        return 0

    @property
    def missing(self):
        """The bytes of each buffer that a run will take: gradients (bind_gradients), and its arena, if it has none yet.
        """
        cdef Storage s
        cdef Tensor g
        cdef list sizes = [self.arena_bytes] if self.arena is None else []
        for s in self.storages:
            g = s.leaf.grad if s.kind == GRADIENT else None
            if s.kind != GRADIENT or s.number not in self.used or g is None and not s.in_use: continue
            if g is None or g.buffer.flags & ZEROS or is_tracked(g) or s.anew and has_others(g):
                sizes.append(s.leaf.layout.size * itemsize(s.leaf.dtype))
        return sizes

    @property
    def held_bytes(self):
        """The bytes of its arena; 0 before the first run."""
        return self.arena_bytes if self.arena is not None else 0

    cdef int restore_constants(self) except -1:
        """Restore the constants that steps write to."""
        cdef Storage s
        for s in self.restored: memcpy(s.tensor.buffer.data, <const char*>s.initial, len(s.initial))
        return 0

    cdef bint uses(self, Storage s):
        """Whether a step has an address in a storage. (None has, in that of a gradient that is a GradientSlice.)"""
        return s.number in self.used

    cdef int check_argument(self, int i, Tensor x, given) except -1:
        """Raise ValueError or TypeError unless `x` has the shape and dtype of argument i, and can be written if a step
        writes to it."""
        cdef Storage s = self.inputs[i]
        wanted, dtype = <tuple>self.signature[i]
        if not has_shape(x.layout, wanted):
            raise ValueError(f"run: argument {i} has shape {x.shape}; the program takes {wanted}")
        if DTYPES[x.dtype] is not dtype:
            raise TypeError(f"run: argument {i} is {DTYPES[x.dtype]}; the program takes {dtype}")
        if not s.writes: return 0
        if x is not given:
            raise TypeError(f"run: the program writes to argument {i}, which must be a tensor, got {described(given)}")
        check_writable(x, flags())
        if not x.layout.dense:
            raise ValueError(f"run: the program writes to argument {i}, which must be contiguous; pass a copy()")
        return 0

    cdef int check_apart(self, int i) except -1:
        """Raise ValueError if argument i shares memory with another one that a step writes to, or the reverse, or with
        a gradient or other outside memory that a step writes to."""
        cdef Storage own = self.inputs[i], s
        cdef int k
        for k in range(i):
            s = self.inputs[k]
            if (own.writes or s.writes) and meet(self.held[i], self.held[k]):
                raise ValueError(f"run: arguments {k} and {i} share memory, and the program writes to one of them; "
                                 f"pass a copy()")
        for s in self.storages:
            if s.kind == GRADIENT: other = s.leaf.grad
            elif s.kind == TENSOR and (own.writes or s.writes): other = s.tensor
            else: continue
            if other is not None and meet(self.held[i], other):
                raise ValueError(f"run: argument {i} shares memory with a tensor outside that the program uses, and a "
                                 f"step writes to it; pass a copy()")
        return 0

    # ---- running

    def run(self, *arguments):
        """Make all calls again, on other arguments, and return `outputs`. Raises RuntimeError if another thread is
        running this program, ValueError or TypeError for arguments of other shapes or dtypes; then nothing has
        changed. An error of a step has a note that lists the operators that ran."""
        return self.run_part(arguments, 0, len(self.steps))

    def difference(self, resumes=False):
        """Why a run would not do now what f does, as far as scopes of this thread, variables and solvers decide it; ""
        if it would. `resumes`: begin() has run."""
        self.check_made()
        return self.around.difference(resumes) or ""

    def watch(self, tensors):
        """Compare the roles of these tensors too."""
        self.check_made()
        for x in tensors: self.around.read(x)

    def again(self):
        """run() on the arguments of the last run, whose memory must still be where it was."""
        return self.run_part(None, 0, len(self.steps))

    def begin(self, *arguments):
        """The first part of run(), up to step `split`: where split_here() was called in f."""
        return self.run_part(arguments, 0, self.split)

    def resume(self):
        """The rest of run() after begin(). It can be called again: its first part and what it reads of the other are
        as before. (The arguments and the tensors outside must not have changed meanwhile.)"""
        return self.run_part(None, self.split, len(self.steps))

    cdef int check_made(self) except -1:
        """Raise RuntimeError for an object whose __init__ has not run, or has raised."""
        if self.around is None: raise RuntimeError("this Program was not made by Program(f, *tensors); make another")
        return 0

    cdef object run_part(self, tuple arguments, int first, int stop):
        """Make the calls from step `first` to before step `stop`; arguments: None for those of the last run."""
        cdef str found
        cdef int i
        cdef bint settled
        self.check_made()
        refuse_trace("run() of another program")
        if self.running: raise RuntimeError("run: this program is running already; wait for it, or make another")
        found = self.around.difference(first > 0)
        if found is not None:
            raise RuntimeError(f"run: {found}, which this program does not follow; call the function itself, or make "
                               f"another program")
        self.running = True
        self.at = -1
        self.held = []
        try:
            if self.settled: self.settled = self.outside is None and self.is_settled()
            if arguments is not None: self.read_arguments(arguments)
            settled, self.settled = self.settled, False
            if not settled:
                self.check_gradients()
                if arguments is not None:
                    for i in range(len(self.inputs)): self.check_apart(i)
            if arguments is not None:
                self.take_arena()
                self.bind_arguments()
            if first == 0: self.restore_constants()
            self.bind_gradients()
            self.settled = True
            self.at = first
            self.go(stop)
            self.ran = True
        except BaseException as e:
            self.explain(e)
            raise
        finally:
            self.running = False
            self.held = None
        return self.results

    cdef int go(self, Py_ssize_t stop) except -1:
        cdef Step s
        cdef double work = 0
        while self.at < stop:
            s = <Step>self.steps[self.at]
            s.run()
            work += s.work + LEAST_WORK
            if work >= SIGNALS:                     # (each look at them takes 10 ns)
                PyErr_CheckSignals()
                work = 0
            self.at += 1
        return 0

    cdef int explain(self, e) except -1:
        """After an error, add a note to it and mark the gradients that are incomplete."""
        cdef Storage s
        cdef Step step
        for s, zeroed, first, last in self.leaves:
            if first <= self.at <= last:
                s.leaf.incomplete = True
                s.leaf.fresh = False
            elif zeroed < self.at < first and s.leaf.grad is not None: fill_zeros(s.leaf.grad)
        if not 0 <= self.at < len(self.steps): return 0
        step = self.steps[self.at]
        if step.within is not None: rename(e, step.within)
        names = [(<Step>x).name for x in self.steps[max(self.at - SHOWN, 0):self.at]]
        e.add_note(f"cygrad: in step {self.at + 1} of {len(self.steps)} of a program; it ran "
                   f"{'..., ' if self.at > SHOWN else ''}{', '.join([*names, f'{step.name} <- failed'])}")
        return 0
