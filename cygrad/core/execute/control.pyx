"""Steps that choose and repeat programs: the If and While of a net that is planned (cygrad/nets/branches.py).

Such a step has programs, which are traced within the trace of the program that it belongs to. They read its inputs and
write its outputs where these are. Only one of them runs at a time, so they share the memory of one arena, which has a
place in that of the program around it. So its plan counts what they need, and a run allocates nothing.

An If whose gradient is wanted has programs in two parts: the gradient is the second part of the one that was chosen.
What both parts need is kept from the first step to the second, the larger of both nets' needs.

The values of each turn that a While keeps for its gradient are in one buffer, its history: the number of turns, the
positions of the generators before each turn, and a row of carried values for each turn. The body writes its results to
the row of the next turn, so they are not copied."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Malloc, PyMem_Free
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from cygrad.core.execute.generator cimport seen
from cygrad.core.execute.placing cimport ALIGNMENT, Interval, place
from cygrad.core.execute.program cimport Spot
from cygrad.core.execute.schedule cimport ProgramSchedule
from cygrad.core.graph.calls cimport in_train_mode
from cygrad.core.graph.construct cimport computed
from cygrad.core.graph.steps cimport READS, WRITES, Arrays, call, copy_elements, elements_in, emit, put
from cygrad.core.graph.tensor cimport ready
from cygrad.core.graph.trace cimport INPUT, Storage, made_here, preparing, refuse_trace, trace_of
from cygrad.core.graph.tracing cimport resume_trace, suspend_trace, virtual_tensor
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER, WORKSPACE, Life, life_of
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport UINT8, is_real, itemsize
from cygrad.kernels.by_dtype cimport number, put_number

from cygrad.core.dtypes import DTYPES, dtype_number


cdef inline Py_ssize_t aligned(Py_ssize_t nbytes) noexcept:
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


cdef bint is_true(const char* x, int dtype) noexcept:
    """The truth of an element, as in NumPy: whether it is not zero. NaN is true."""
    cdef int k
    if is_real(dtype): return number(dtype, x, 0) != 0
    for k in range(itemsize(dtype)):
        if x[k]: return True
    return False


# ---- programs within a program ---------------------------------------------------------------------------------------

cdef class SubProgram(Program):

    def __init__(self, bint parts, f, *signature):
        """Trace f, a function of tensors, within the trace of this thread. It returns or yields tensors. `parts`: it
        calls split_here(). (The second part does not read the results of the first, which may have changed.)"""
        cdef Trace outer = making("a branch")
        cdef list numbers = [], shapes = [], generators = [], results = []
        cdef list n_first = [0]
        outer = suspend_trace()

        def traced(*xs):
            for y in f(*xs):
                results.append(y)                   # (so that no gradient is written over it)
                numbers.append(put_result(<Tensor>y, shapes, parts and trace_of(flags()).split < 0))
                n_first[0] += trace_of(flags()).split < 0
            results.clear()
            generators.extend([g for _, g in trace_of(flags()).positions.values()])

        try: Program.__init__(self, traced, *signature)
        finally: resume_trace(outer)
        self.inputs += [self.storages[k] for k in numbers]
        self.shapes, self.generators, self.n_first = shapes, tuple(generators), n_first[0]
        self.work_bytes = self.arena_bytes
        if self.split < len(self.steps): self.divide()
        if self.around.training >= 0: in_train_mode(flags())        # (so that the program around it follows the mode,
        for generator in generators: seen(<Generator>generator)     # and knows that it draws)

    cdef int divide(self) except -1:
        """Place the buffers that both parts need apart from the others: their offsets begin after those of the others.
        """
        cdef ProgramSchedule s = self.schedule
        cdef Interval* placed = <Interval*>PyMem_Malloc(2 * max(s.n, 1) * sizeof(Interval))
        cdef int* root = <int*>PyMem_Malloc(3 * max(s.n, 1) * sizeof(int))      # which buffer a buffer is placed over,
        cdef int* both = root + s.n                 # by root: whether both parts need it,
        cdef int* at = both + s.n                   # and its position in `placed`
        cdef Interval* x
        cdef int n[2]
        cdef int i, k
        if placed == NULL or root == NULL:
            PyMem_Free(placed)
            PyMem_Free(root)
            raise MemoryError("no memory for a program")
        try:
            n[0], n[1] = 0, s.n                     # (the second ones begin in the middle)
            for i in range(s.n):
                root[i], both[i], at[i] = i, False, -1
                while s.lives[root[i]].over >= 0: root[i] = s.lives[root[i]].over
            for i in range(s.n):
                if s.lives[i].nbytes and s.lives[i].birth < s.split < s.lives[i].death: both[root[i]] = True
            for i in range(s.n):
                x, k = &s.lives[i], root[i]
                if not x.nbytes: continue
                if at[k] < 0:
                    at[k] = n[both[k]]
                    n[both[k]] += 1
                    placed[at[k]] = s.lives[k]
                placed[at[k]].birth = min(placed[at[k]].birth, x.birth)
                placed[at[k]].death = max(placed[at[k]].death, x.death)
            self.work_bytes, self.kept_bytes = place(placed, n[0]), place(placed + s.n, n[1] - s.n)
            for i in range(s.n):
                if not s.lives[i].nbytes: continue
                s.lives[i].offset = placed[at[root[i]]].offset + (self.work_bytes if both[root[i]] else 0)
        finally:
            PyMem_Free(placed)
            PyMem_Free(root)
        PyMem_Free(self.spots)
        PyMem_Free(self.first_spot)
        self.spots, self.first_spot = NULL, NULL
        return self.find_spots()

    cdef int place_at(self, char* arena, char* kept) noexcept:
        """Set the addresses of the memory."""
        cdef int last = len(self.storages), k
        cdef Spot* spot
        if self.arena_at == arena and self.kept_at == kept: return 0
        self.arena_at, self.kept_at = arena, kept
        for k in range(self.first_spot[last], self.first_spot[last + 1]):
            spot = &self.spots[k]
            spot.at[0] = arena + spot.offset if <Py_ssize_t>spot.offset < self.work_bytes else (
                kept + (<Py_ssize_t>spot.offset - self.work_bytes))
        return 0

    cdef int call_on(self, char** arguments, char* arena, char* kept, int first, int stop) except -1:
        """Run the steps from `first` to before `stop`. `arguments`: the addresses of the arguments, then of the
        results; NULL for one that these steps do not use."""
        cdef int i
        for i in range(len(self.inputs)): self.bind((<Storage>self.inputs[i]).number, arguments[i])
        self.place_at(arena, kept)
        if first == 0: self.restore_constants()
        self.at = first
        try: self.go(stop)
        except BaseException as e:
            self.explain(e)
            raise
        return 0


cdef int put_result(Tensor y, list shapes, bint copied) except -1:
    """Let a program write a result to memory outside of its arena. Returns the number of the storage of that. What
    computes the result writes there, unless it is to be `copied`, or `y` is not all of a buffer of the program."""
    cdef Trace t = trace_of(flags())
    cdef Tensor z
    cdef Life* life
    cdef Arrays a
    ready(y)
    shapes.append((y.shape, DTYPES[y.dtype]))
    life = life_of(y.buffer)
    if not copied and made_here(y.buffer) and life.storage < 0 and y.layout.dense and life.nbytes == <size_t>y.nbytes:
        life.storage = t.new_storage(INPUT, None, None, <size_t>life)
        (<Storage>t.storages[life.storage]).lives.append(life.number)
        return life.storage
    z = virtual_tensor(t, lay.dense_like(y.layout), y.dtype, INPUT)
    a.n = 0
    put(&a, y, READS)
    put(&a, z, WRITES)
    call(flags(), "copy", copy_elements, &a, 0, NULL, 0, None)
    return z.buffer.home.life.storage


def refuse_planning(str what):
    """Raise RuntimeError if this thread traces, but makes no steps."""
    if preparing(flags()) is None: refuse_trace(what)


def dense(Tensor x not None):
    """`x` without gaps: x itself, or a copy, recorded as any."""
    ready(x)
    return x if x.layout.dense else x.copy()


# ---- steps -----------------------------------------------------------------------------------------------------------

cdef int save_positions(list generators, uint64_t* p) noexcept:
    cdef int k
    for k in range(len(generators)):
        p[2 * k], p[2 * k + 1] = (<Generator>generators[k]).key, (<Generator>generators[k]).counter


cdef int set_positions(list generators, const uint64_t* p) noexcept:
    cdef int k
    for k in range(len(generators)): (<Generator>generators[k]).key, (<Generator>generators[k]).counter = (
        p[2 * k], p[2 * k + 1])


cdef list results_for(list shapes):
    """Tensors for the results of a program."""
    return [computed(lay.from_shape(shape), dtype_number(dtype), OTHER) for shape, dtype in shapes]


cdef class ControlStep(Step):

    cdef int begin(self, Trace t, str name, tuple programs, int n_at) except -1:
        """Set what all have, and allocate room for `n_at` addresses, of which the first is that of the arena."""
        cdef SubProgram p
        cdef Py_ssize_t arena = 0
        self.name, self.programs, self.generators, self.n_at = name, programs, [], 0
        self.take(n_at, 0, n_at * sizeof(char*))
        self.at = <char**>self.room
        for p in programs:
            for g in p.generators:
                if g not in self.generators: self.generators.append(g)
            arena, self.most = max(arena, p.work_bytes), max(self.most, p.work)
        self.pure, self.work = not self.generators, self.most
        return self.put_room(t, arena)

    cdef int put_tensor(self, Trace t, Tensor x, int access) except -1:
        """Append the address of a dense tensor."""
        ready(x)
        self.at[self.n_at] = elements_in(x).data
        if x.layout.size: self.point(t, &self.at[self.n_at], x.buffer, access)
        self.n_at += 1
        return 0

    cdef int put_all(self, Trace t, list tensors, int access) except -1:
        for x in tensors: self.put_tensor(t, <Tensor>x, access)
        return 0

    cdef int put_room(self, Trace t, Py_ssize_t nbytes) except -1:
        """Append the address of workspace, NULL for none."""
        if nbytes == 0: return self.skip(1)
        return self.put_tensor(t, room(nbytes, WORKSPACE), WRITES)

    cdef int skip(self, int n) except -1:
        """Append addresses that are NULL."""
        self.n_at += n                              # (Step.take() has filled them with zeros)
        return 0


cdef Tensor room(Py_ssize_t nbytes, int category):
    return computed(lay.dense(1, &nbytes), UINT8, category)


cdef class ChoiceStep(ControlStep):
    # addresses: arena, condition, what both parts need (or NULL), arguments, results

    cdef int run(self) except -1:
        cdef SubProgram p = self.programs[0 if is_true(self.at[1], self.dtype) else 1]
        return p.call_on(self.at + 3, self.at[0], self.at[2], p.split if self.part == 2 else 0,
                         p.split if self.part == 1 else len(p.steps))


cdef Trace making(str name):
    """The trace of a program that is being made."""
    cdef Trace t = preparing(flags())
    if t is None: raise RuntimeError(f"{name} is a step of a program, and none is being made here; run it in a net")
    return t


def choose(str name, Tensor condition not None, tuple programs, list inputs, int part=0, Tensor kept=None):
    """Emit the step of an If, or of its gradient. `inputs`: dense tensors, the arguments of both programs. `part`: 1 or
    2 for one part of programs that have two; the first part has the first arguments, and gives the first results.
    Returns (results, what the first part has kept); the second part gets that, None if there is nothing."""
    cdef Trace t = making(name)
    cdef SubProgram p = programs[0], other = programs[1]
    cdef ChoiceStep s = ChoiceStep.__new__(ChoiceStep)
    cdef Py_ssize_t nbytes = max(p.kept_bytes, other.kept_bytes)
    cdef int n = len(p.inputs) - len(p.shapes)      # arguments
    cdef list outputs
    s.begin(t, name, programs, 3 + len(p.inputs))
    s.dtype, s.part = condition.dtype, part
    s.put_tensor(t, condition, READS)
    if part == 1 and nbytes: kept = room(nbytes, OTHER)
    if kept is None: s.skip(1)
    else: s.put_tensor(t, kept, WRITES if part == 1 else READS)
    s.put_all(t, inputs, READS)
    s.skip(n - len(inputs) + (p.n_first if part == 2 else 0))
    outputs = results_for(p.shapes[p.n_first:] if part == 2 else p.shapes[:p.n_first] if part == 1 else p.shapes)
    s.put_all(t, outputs, WRITES)
    emit(t, s)
    return outputs, kept


cdef class LoopStep(ControlStep):
    # addresses: arena, spare row of carried values (or NULL), history (or NULL), inputs, outputs
    # programs: the condition and the body

    def __dealloc__(self):
        PyMem_Free(self.sizes)
        PyMem_Free(self.arguments)

    cdef char* carried(self, Py_ssize_t turn, int i) noexcept:
        """Where carried value `i` is at the beginning of a turn, of the second or a later one."""
        cdef Py_ssize_t row = 0, before = 0
        cdef int k
        if not self.keeps and turn & 1 or turn == self.bound and self.keeps: return self.at[3 + self.n_in + i]
        for k in range(self.n_out):
            if k < i: before += aligned(self.sizes[k])
            row += aligned(self.sizes[k])
        if not self.keeps: return self.at[1] + before
        return self.at[2] + history_head(self.bound, len(self.generators)) + turn * row + before

    cdef int run(self) except -1:
        cdef SubProgram condition = self.programs[0], body = self.programs[1]
        cdef Py_ssize_t turn = 0
        cdef char** a = self.arguments
        cdef int i
        start = [(<Generator>g).state for g in self.generators]
        for i in range(self.n_in): a[i] = self.at[3 + i]
        while True:
            a[self.n_in] = self.truth
            condition.call_on(a, self.at[0], NULL, 0, len(condition.steps))
            if not is_true(self.truth, self.dtype): break
            if turn == self.bound:
                for g, state in zip(self.generators, start): g.state = state
                refuse_turns(self.bound)
            if self.keeps:
                save_positions(self.generators, <uint64_t*>self.at[2] + 8 + 2 * turn * len(self.generators))
                for i in range(self.n_out if turn == 0 else 0): memcpy(self.carried(0, i), a[i], self.sizes[i])
            for i in range(self.n_out): a[self.n_in + i] = self.carried(turn + 1, i)
            body.call_on(a, self.at[0], NULL, 0, len(body.steps))
            for i in range(self.n_out): a[i] = a[self.n_in + i]
            turn += 1
            PyErr_CheckSignals()
        for i in range(self.n_out):
            if a[i] != self.at[3 + self.n_in + i]: memcpy(self.at[3 + self.n_in + i], a[i], self.sizes[i])
        if self.keeps: (<int64_t*>self.at[2])[0] = turn
        return 0


def refuse_turns(Py_ssize_t bound):
    """Raise RuntimeError, because a loop has more turns than its bound."""
    raise RuntimeError(f"While: the condition is still true after {bound:,} turn{'s' * (bound != 1)}, the most that "
                       f"turns={bound} allows; state a larger bound, or change the condition")


cdef Py_ssize_t history_head(Py_ssize_t bound, Py_ssize_t generators) noexcept:
    """The bytes of a history before its rows: the number of turns, in a line of 64 bytes, and the positions."""
    return 64 + aligned(16 * bound * generators)


def repeat(str name, tuple programs, list inputs, Py_ssize_t bound, bint keeps):
    """Emit the step of a While: `programs` are those of the condition and of the body, `inputs` dense tensors, the
    arguments of both. The results of the body take the places of the first inputs. `bound`: the most turns; -1: any.
    Returns (outputs, history, the generators whose positions it has); without `keeps`, the history is None."""
    cdef Trace t = making(name)
    cdef SubProgram condition = programs[0], body = programs[1]
    cdef LoopStep s = LoopStep.__new__(LoopStep)
    cdef list outputs = results_for(body.shapes)
    cdef Tensor history = None
    cdef Py_ssize_t n = 0
    s.n_in, s.n_out, s.bound, s.keeps = len(inputs), len(outputs), bound, keeps
    s.begin(t, name, programs, 3 + s.n_in + s.n_out)
    s.work, s.dtype = s.most * max(bound, <Py_ssize_t>1), dtype_number(condition.shapes[0][1])
    s.sizes = <Py_ssize_t*>PyMem_Malloc(max(s.n_out, 1) * sizeof(Py_ssize_t))
    s.arguments = <char**>PyMem_Malloc((s.n_in + s.n_out + 1) * sizeof(char*))
    if s.sizes == NULL or s.arguments == NULL: raise MemoryError("no memory for a step of a program")
    for k, y in enumerate(outputs):
        s.sizes[<int>k] = (<Tensor>y).nbytes
        n += aligned(s.sizes[<int>k])
    s.put_room(t, 0 if keeps else n)
    if keeps:
        history = room(history_head(bound, len(s.generators)) + bound * n, OTHER)
        s.put_tensor(t, history, WRITES)
    else: s.put_room(t, 0)
    s.put_all(t, inputs, READS)
    s.put_all(t, outputs, WRITES)
    emit(t, s)
    return outputs, history, s.generators


cdef class LoopBackStep(ControlStep):
    # addresses: arena, spare row of gradients, history, inputs that are not carried, gradients of the results;
    # then the outputs: gradients of carried inputs, sums of the gradients of other inputs
    # program: of carried values, other inputs, gradients of results and sums, which it adds to; results: gradients

    def __dealloc__(self):
        PyMem_Free(self.sizes)
        PyMem_Free(self.dtypes)
        PyMem_Free(self.arguments)

    cdef int run(self) except -1:
        cdef SubProgram p = self.programs[0]
        cdef Py_ssize_t turns = (<int64_t*>self.at[2])[0], turn, row = 0, before
        cdef char** a = self.arguments
        cdef char** out = self.at + 3 + self.n_in + self.n_out
        cdef int c = self.n_carried, i, k, n_generators = len(self.generators)
        cdef int grads = c + self.n_in, sums = grads + self.n_out, results = sums + self.n_sums
        cdef const Py_ssize_t* sizes = self.sizes + c
        for i in range(c): row += aligned(self.sizes[i])
        for i in range(self.n_in + self.n_out): a[c + i] = self.at[3 + i]
        for k in range(self.n_sums):
            a[sums + k] = out[self.n_out + k]
            fill_sum(a[sums + k], sizes[self.n_out + k], self.dtypes[k], turns > 0)
        now = [(<Generator>g).state for g in self.generators]
        try:
            for turn in range(turns - 1, -1, -1):
                before = 0
                for i in range(c):
                    a[i] = self.at[2] + history_head(self.bound, n_generators) + turn * row + before
                    before += aligned(self.sizes[i])
                before = 0
                for i in range(self.n_out):
                    a[results + i] = self.at[1] + before if turn & 1 else out[i]
                    before += aligned(sizes[i])
                set_positions(self.generators, <uint64_t*>self.at[2] + 8 + 2 * turn * n_generators)
                p.call_on(a, self.at[0], NULL, 0, len(p.steps))
                for i in range(self.n_out): a[grads + i] = a[results + i]
                PyErr_CheckSignals()
        finally:
            for g, state in zip(self.generators, now): g.state = state
        if not turns:
            for i in range(self.n_out): memcpy(out[i], a[grads + i], sizes[i])
        return 0


cdef int fill_sum(char* x, Py_ssize_t nbytes, int dtype, bint used) except -1:
    """Set a sum to zeros; if something will be added, to -0, since -0 + x is x, also if x is -0."""
    cdef Py_ssize_t k
    for k in range(nbytes // itemsize(dtype)): put_number(dtype, x, k, -0.0 if used else 0.0)
    return 0


def repeat_back(str name, SubProgram program not None, Tensor history not None, list generators, list others,
                list gradients, list carried, list wanted, Py_ssize_t bound):
    """Emit the step of the gradient of a While. `program`: of the gradient of one turn. `history`, `generators`: from
    repeat(). `others`: the inputs that are not carried. `gradients`: those of the results that can have one. `carried`:
    (shape, dtype) of all carried values, and `wanted` the same of the other inputs whose gradients are wanted. Returns
    the gradients of the carried inputs that can have one, and of the wanted ones."""
    cdef Trace t = making(name)
    cdef LoopBackStep s = LoopBackStep.__new__(LoopBackStep)
    cdef list outputs = results_for(program.shapes), sums
    cdef Py_ssize_t n = 0
    cdef int k, c = len(carried), m = len(wanted)
    sums = results_for(wanted)
    s.n_in, s.n_out, s.n_carried, s.n_sums, s.bound = len(others), len(outputs), c, m, bound
    s.begin(t, name, (program,), 3 + s.n_in + 2 * s.n_out + m)
    s.work, s.generators = s.most * bound, generators
    s.sizes = <Py_ssize_t*>PyMem_Malloc((c + s.n_out + m + 1) * sizeof(Py_ssize_t))
    s.dtypes = <int*>PyMem_Malloc((m + 1) * sizeof(int))
    s.arguments = <char**>PyMem_Malloc((c + s.n_in + 2 * s.n_out + m + 1) * sizeof(char*))
    if s.sizes == NULL or s.dtypes == NULL or s.arguments == NULL:
        raise MemoryError("no memory for a step of a program")
    for k in range(c):
        shape, dtype = carried[k]
        s.sizes[k] = bytes_of(shape, dtype)
    for k in range(s.n_out):
        s.sizes[c + k] = (<Tensor>outputs[k]).nbytes
        n += aligned(s.sizes[c + k])
    for k in range(m):
        s.sizes[c + s.n_out + k], s.dtypes[k] = (<Tensor>sums[k]).nbytes, (<Tensor>sums[k]).dtype
    s.put_room(t, n if bound > 1 else 0)
    s.put_tensor(t, history, READS)
    s.put_all(t, others, READS)
    s.put_all(t, gradients, READS)
    s.put_all(t, outputs, WRITES)
    s.put_all(t, sums, WRITES)
    emit(t, s)
    return outputs, sums


cdef Py_ssize_t bytes_of(shape, dtype) except -1:
    cdef Py_ssize_t n = itemsize(dtype_number(dtype))
    for size in shape: n *= size
    return n
