"""Calls of kernels (steps.pxd), and the steps that a trace makes of them."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memcpy, memset

from cygrad.core.graph.trace cimport PREPARING, Storage, raise_version, trace_of
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport VIRTUAL, Life, drop, life_of
from cygrad.core.store.buffer cimport hold as hold_buffer
from cygrad.core.thread_state cimport flags
from cygrad.kernels.driver cimport copy_all, find, has

cdef enum:
    LARGE = 32768           # elements, as LARGE_WORK of core/execute/executor.pxd

cdef Loop* COPY = find("copy")


cdef class Step:
    """One call of a program."""

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_layouts): lay.decref(self.layouts[i])
        for i in range(self.n_written): drop(self.written[i])
        PyMem_Free(self.pointers)
        PyMem_Free(self.layouts)
        PyMem_Free(self.room)

    cdef int take(self, int n_pointers, int n_layouts, size_t room) except -1:
        """Allocate room for as many pointers, references to layouts and bytes."""
        self.pointers = <Pointer*>PyMem_Calloc(max(n_pointers, 1), sizeof(Pointer))
        self.layouts = <const Layout**>PyMem_Calloc(max(n_layouts, 1), sizeof(Layout*))
        self.room = <char*>PyMem_Calloc(max(room, <size_t>1), 1)
        if self.pointers == NULL or self.layouts == NULL or self.room == NULL:
            raise MemoryError("no memory for a step of a program")
        return 0

    cdef const Layout* hold(self, const Layout* l) noexcept:
        """Hold a reference to `l`."""
        self.layouts[self.n_layouts] = lay.incref(l)
        self.n_layouts += 1
        return l

    cdef int point(self, Trace t, char** at, Buffer* b, int access) except -1:
        """Register the address `at`, which points into `b` now."""
        cdef Pointer* p = &self.pointers[self.n_pointers]
        cdef Life* life = life_of(b)
        p.at, p.access = at, access
        p.offset = at[0] - b.data
        p.life = life.number if life != NULL else -1
        t.use(b)
        p.storage = -1 if life != NULL else t.storage_on(b)
        if life == NULL:
            p.offset -= (<Storage>t.storages[p.storage]).start
            (<Storage>t.storages[p.storage]).last_use = t.clock
        self.n_pointers += 1
        return 0

    cdef int point_to_storage(self, Trace t, char** at, int number) except -1:
        """Register an address that is the start of a storage, which the step writes."""
        cdef Pointer* p = &self.pointers[self.n_pointers]
        (<Storage>t.storages[number]).last_use = t.clock
        p.at, p.access, p.life, p.storage, p.offset = at, WRITES, -1, number, 0
        self.n_pointers += 1
        return 0

    cdef int write(self, Buffer* b) except -1:
        """The call writes to `b` in place: each run raises its version. (Program does so for its arguments.)"""
        if b.flags & VIRTUAL: return 0
        hold_buffer(b)
        self.written[self.n_written] = b
        self.n_written += 1
        return 0

    cdef int run(self) except -1:
        cdef int i
        self.kernel(self.arrays, self.parameters, self.held)
        for i in range(self.n_written): self.written[i].version += 1
        return 0


    cdef bint find_loop(self, LoopCall* l) noexcept:
        """Whether the step is one call of a loop, which is then written to `l`."""
        cdef int k
        if self.kernel == run_loop: l.loop = (<const Loop**>self.parameters)[0]
        elif self.kernel == copy_elements and has(COPY, self.arrays.dtype): l.loop = COPY
        else: return False
        l.coded, l.bits = False, 0
        for k in range(l.loop.operands): l.a[k] = self.arrays[k]
        return True


cdef int emit(Trace t, Step s) except -1:
    """Append a step."""
    s.within, s.source = t.within, t.source
    t.steps.append(s)
    t.clock += 1
    return 0


cdef bint zeroes(Step s) noexcept:
    """Whether a step only fills memory with zeros, unless the address is NULL."""
    return s.kernel == fill_zeros


cdef Step new_step(Trace t, str name, Kernel kernel, const Arrays* x, const void* parameters, size_t nbytes,
                   object held):
    """A step that is not emitted yet. An array without a buffer is at the start of a storage, which the caller sets."""
    cdef Step s = Step.__new__(Step)
    cdef int k
    s.take(x.n, x.n, x.n * sizeof(Array) + nbytes)
    s.name, s.kernel, s.held, s.pure = name, kernel, held, held is None
    s.arrays, s.parameters = <Array*>s.room, s.room + x.n * sizeof(Array)
    if nbytes: memcpy(s.parameters, parameters, nbytes)
    for k in range(x.n):
        s.arrays[k] = x.at[k]
        s.hold(x.at[k].layout)
        s.work = max(s.work, <double>x.at[k].layout.size)
        if x.buffers[k] != NULL and x.at[k].layout.size: s.point(t, &s.arrays[k].data, x.buffers[k], x.access[k])
    return s


cdef bint trace_call(str name, Kernel kernel, const Arrays* x, int writes, const void* parameters, size_t nbytes,
                     object held) except -1:
    """Instead of a call, during a trace: register it and return False."""
    cdef Flags* f = flags()
    cdef Trace t = trace_of(f)
    cdef Step s
    cdef int k
    for k in range(writes):
        t.before_write(x.buffers[k])
        raise_version(f, x.buffers[k])
    if t.purpose != PREPARING: return False
    s = new_step(t, name, kernel, x, parameters, nbytes, held)
    for k in range(writes): s.write(x.buffers[k])
    emit(t, s)
    return False


cdef int run_elsewhere(Array* a, const void* parameters, object held) except -1:
    """A kernel: run the step `held` with other addresses."""
    cdef Step s = <Step>held
    swap(s, <char**>parameters)
    try: s.run()
    finally: swap(s, <char**>parameters)
    return 0


cdef void swap(Step s, char** addresses) noexcept:
    """Exchange the addresses in a step for others."""
    cdef int k
    for k in range(s.n_pointers): addresses[k], s.pointers[k].at[0] = s.pointers[k].at[0], addresses[k]


cdef Step repeated(Step s):
    """A step that runs `s` again, in places that can differ. It has the pointers of `s`."""
    cdef Step r = Step.__new__(Step)
    cdef char** addresses
    cdef int k
    r.take(s.n_pointers, 0, s.n_pointers * sizeof(char*))
    addresses = <char**>r.room
    r.parameters, r.kernel, r.held, r.pure, r.n_pointers = addresses, run_elsewhere, s, s.pure, s.n_pointers
    r.name, r.within, r.source, r.work = s.name + " (again)", s.within, s.source, s.work
    memcpy(r.pointers, s.pointers, s.n_pointers * sizeof(Pointer))
    for k in range(s.n_pointers): r.pointers[k].at = &addresses[k]
    return r


cdef Step repeats(Step s):
    """The step that `s` runs again, or None."""
    return <Step>s.held if s.kernel == run_elsewhere else None


cdef int fill_zeros(Array* a, const void* parameters, object held) except -1:
    """A kernel: a = 0 for a dense array, unless it has no memory."""
    if a.data != NULL: memset(a.data, 0, a.layout.size * itemsize(a.dtype))
    return 0


cdef int copy_elements(Array* a, const void* parameters, object held) except -1:
    """A kernel: a[1] = a[0], of which a[1] is dense."""
    copy_all(a[1].data, &a[0])
    return 0


cdef int run_loop(Array* a, const void* parameters, object held) except -1:
    """A kernel: an elementwise loop, without the GIL if it is large."""
    cdef const Loop* loop = (<const Loop**>parameters)[0]
    if a.layout.size < LARGE: return driver.each(loop, a)
    with nogil: driver.each(loop, a)
    return 0


cdef int trace_loop(str name, const Loop* loop, const Arrays* x) except -1:
    """Instead of a loop, during a trace."""
    trace_call(name, run_loop, x, 0, &loop, sizeof(loop), None)
    return 0


cdef int trace_zeros(Array a, Buffer* b) except -1:
    """Instead of memset(), during a trace: the dense array `a` in `b` becomes zeros."""
    cdef Arrays x
    x.n = 0
    put_array(&x, a, b, WRITES)
    trace_call("zeros", fill_zeros, &x, 0, NULL, 0, None)
    return 0
