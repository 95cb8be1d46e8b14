"""memory.offload(): slots hold values that are in a file.

While the scope is open, a slot of a new node holds an Offloaded instead of the buffer, one for each buffer. Once
nothing else holds the buffer, the thread of the Spill writes it (spill.pxd), and its memory is released. When backward
comes to the slot, the value is read into a new buffer, and with it the values that were saved before it, because
backward needs those next.

The GIL is the lock of everything here. The thread knows only the Jobs, so memory is released when this module next
looks: as an operation is recorded, as backward comes to a slot, at the end of the scope."""

cimport cython

import os

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint32_t, uint64_t

from cygrad.core.graph.packed cimport Packed, Packing, put_packed, set_packing, watch
from cygrad.core.graph.running cimport passes_begun
from cygrad.core.graph.slots cimport VALUES, Slot, buffer_in
from cygrad.core.graph.tensor cimport Node, Tensor, slots_of
from cygrad.core.graph.trace cimport on_buffer, refuse_trace, traces
from cygrad.core.store.buffer cimport EXTERNAL, OTHER, VIRTUAL, ZEROS, Buffer, allocate, drop, hold, release_saved, save
from cygrad.core.thread_state cimport Flags, flags
from cygrad.memory.spill cimport IDLE, Job, Spill, raise_foreign, raise_unreadable

from cygrad.core.paths import folder_path
from cygrad.core.sizes import read_size
from cygrad.core.store.buffer import is_bounded

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    QUEUE = 16 << 20        # bytes that wait to be written, before who records waits
    QUEUED_MOST = 1024      # values that wait, likewise
    AHEAD = 16 << 20        # bytes that are read before backward needs them
    SCAN = 32               # values that are looked at for each node, of the newest and of the others

cdef list scopes = []       # that are open, in any thread


# ---- what slots hold -------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Offloaded(Packed):
    """What was in a buffer when slots saved it: in memory, in the file, or both."""
    cdef Offloading store
    cdef Buffer* held       # memory that has it, or that it is being read into; or NULL
    cdef uint32_t version   # of `held`
    cdef Job job            # the part of the file
    cdef bint on_disk       # it has been written
    cdef bint is_ahead      # it was read before backward came to it
    cdef int error          # of the last read
    cdef int slots, left    # those that hold it; those that the running pass has not come to
    cdef uint64_t epoch     # backward passes that had begun when `left` was last set
    cdef int place          # among those that wait, from 1 on; 0: it does not
    cdef void* older        # borrowed: the one that was saved before it, and after it
    cdef void* newer

    def __dealloc__(self):
        cdef Offloading s = self.store
        if s is None: return
        if self.place: s.no_longer_waits(self)
        if self.job.state != IDLE:
            s.spill.retract(&self.job, True)
            if not self.job.reads: s.dequeued(self)
        if self.job.offset >= 0: s.give(self)
        if self.older != NULL: (<Offloaded>self.older).newer = self.newer
        if self.newer != NULL: (<Offloaded>self.newer).older = self.older
        else: s.newest = self.older
        s.count -= 1
        self.let_go()
        if not s.count and not s.is_open: s.spill.close()

    cdef Buffer* kept(self) noexcept:
        return self.held

    cdef void let_go(self) noexcept:
        """Keep no memory."""
        cdef Buffer* b = self.held
        if self.is_ahead: self.store.ahead -= self.job.nbytes
        self.held, self.is_ahead = NULL, False
        if b == NULL: return
        try:
            if self.store.known.get(<size_t>b) == <size_t><void*>self: del self.store.known[<size_t>b]
        except MemoryError: self.search_and_forget()
        release_saved(b)

    cdef void search_and_forget(self) noexcept:
        """Be known no more, without memory for a key."""
        cdef dict known = self.store.known
        for key, found in known.items():
            if <size_t>found != <size_t><void*>self: continue
            del known[key]
            return

    cdef bint is_only_holder(self) noexcept:
        """Whether the slots alone keep the memory. (Slots that need the signs alone shrink it.)"""
        cdef Buffer* b = self.held
        return b.holders == 1 + b.signs and b.version == self.version

    cdef int finish(self) except -1:
        """The thread has written it or read it."""
        cdef Offloading s = self.store
        if self.job.reads:
            self.error = self.job.error
            if self.error: self.let_go()
            else: s.read += self.job.nbytes
            return 0
        s.dequeued(self)
        if self.job.error:
            s.give(self)
            if not s.full: s.full, s.error, s.wanted = True, self.job.error, self.job.nbytes
            return 0
        self.on_disk = True
        s.written += self.job.nbytes
        self.let_go()
        return 0

    cdef int request(self) except -1:
        """Let the thread read it into a new buffer."""
        cdef Buffer* b = allocate(self.job.nbytes, OTHER)
        save(b)
        drop(b)
        self.held, self.version = b, b.version
        self.job.data, self.job.reads = b.data, True
        self.store.spill.post(&self.job)
        return 0

    cdef int raise_error(self) except -1:
        cdef int error = self.error
        self.error = 0
        return raise_unreadable(self.store.spill, self.job.nbytes, error)

    cdef int fetch(self) except -1:
        """Have it in memory."""
        cdef Offloading s = self.store
        self.error = 0
        if self.on_disk and self.job.state == IDLE and self.held != NULL and self.held.version != self.version:
            self.let_go()                           # (what was read was written since)
        while self.held == NULL or self.job.reads and self.job.state != IDLE:
            if not s.spill.is_usable(): raise_foreign(s.spill)
            if self.error: self.raise_error()
            if self.held == NULL:
                try: self.request()
                except MemoryError:
                    if not s.forget_ahead(): raise
                    self.request()
            s.read_ahead(self)
            s.spill.wait(&self.job)
            s.settle()
        return 0

    cdef Tensor unpack(self, Node node, const Slot* s):
        cdef Offloading store = self.store
        cdef Buffer* b
        cdef Tensor t
        if traces(): refuse_trace("backward through a node that was recorded in memory.offload()")
        store.settle()
        if self.epoch != passes_begun(): self.epoch, self.left = passes_begun(), self.slots
        if store.epoch != passes_begun():
            store.forget_ahead()
            store.epoch = passes_begun()
        if not self.job.reads and self.job.state != IDLE and store.spill.retract(&self.job, False):
            store.dequeued(self)                    # (it need not be written any more)
            store.give(self)
            store.waits(self)
        self.fetch()
        if self.is_ahead: self.is_ahead, store.ahead = False, store.ahead - self.job.nbytes
        b = self.held
        hold(b)                                     # (the garbage collector may run, and with it settle())
        try: t = on_buffer(b, s.layout, s.dtype)
        finally: drop(b)
        store.read_ahead(self)
        self.left -= 1
        if self.left <= 0 and self.on_disk and self.job.state == IDLE: self.let_go()
        return t


# ---- what a thread saves ---------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Offloading(Packing):
    """What memory.offload() makes the packing of its thread."""
    cdef Spill spill
    cdef size_t smallest
    cdef bint is_open
    cdef dict known             # address of a buffer in memory -> that of its Offloaded
    cdef void* newest           # borrowed: the Offloaded that was made last
    cdef size_t count           # of them
    cdef void** waiting         # borrowed: those whose memory something else may hold
    cdef int n_waiting, capacity, at
    cdef size_t queued, n_queued        # bytes to be written, and in how many values
    cdef size_t ahead           # bytes that are read ahead
    cdef size_t written, read
    cdef uint64_t epoch         # backward passes that had begun when one last read
    cdef bint full              # a write has failed, so nothing more is written
    cdef int error              # of that write, until it is raised
    cdef size_t wanted          # its bytes

    def __cinit__(self, str folder, size_t smallest):
        self.known, self.smallest, self.scope = {}, smallest, "memory.offload()"
        self.spill = Spill(folder, "memory.offload")
        self.is_open = True

    def __dealloc__(self):
        PyMem_Free(self.waiting)

    cdef int pack(self, Node node) except -1:
        """The slots of a new node hold an Offloaded instead of a buffer that is large enough."""
        cdef Slot* s = slots_of(node)
        cdef Buffer* b
        cdef Offloaded p
        cdef int k
        if not self.is_open or not self.spill.is_usable(): return 0
        self.settle()
        self.report()
        for k in range(node.n_slots if not self.full else 0):
            b = buffer_in(&s[k])
            if b == NULL or b.nbytes < self.smallest or not b.nbytes or s[k].need != VALUES: continue
            if b.parameters or b.flags & (EXTERNAL | VIRTUAL | ZEROS): continue
            p = self.of(b)
            p.slots += 1
            put_packed(node, &s[k], p)
        self.send(2 * SCAN)
        if self.queued: self.wait_for_room()
        return 0

    cdef Offloaded of(self, Buffer* b):
        """The Offloaded of what is in a buffer now."""
        cdef Offloaded p
        found = self.known.get(<size_t>b)
        if found is not None and (<Offloaded><void*><size_t>found).version == b.version:
            return <Offloaded><void*><size_t>found
        p = Offloaded.__new__(Offloaded)
        p.watch, p.version, p.job.nbytes, p.job.offset = watch(b), b.version, b.nbytes, -1
        p.job.owner = <void*>p
        self.waits(p)
        try: self.known[<size_t>b] = <size_t><void*>p
        except MemoryError:
            self.no_longer_waits(p)
            raise
        p.store, p.held, p.older = self, b, self.newest
        save(b)
        if p.older != NULL: (<Offloaded>p.older).newer = <void*>p
        self.newest = <void*>p
        self.count += 1
        return p

    # ---- from memory to the file

    cdef int waits(self, Offloaded p) except -1:
        cdef void** more
        if self.n_waiting == self.capacity:
            more = <void**>PyMem_Realloc(self.waiting, (2 * self.capacity + 64) * sizeof(void*))
            if more == NULL: raise MemoryError("no memory for a saved value")
            self.waiting, self.capacity = more, 2 * self.capacity + 64
        self.waiting[self.n_waiting] = <void*>p
        self.n_waiting += 1
        p.place = self.n_waiting
        return 0

    cdef void no_longer_waits(self, Offloaded p) noexcept:
        cdef void* last = self.waiting[self.n_waiting - 1]
        self.waiting[p.place - 1] = last
        (<Offloaded>last).place = p.place
        p.place = 0
        self.n_waiting -= 1

    cdef int send(self, int most) except -1:
        """Of those that wait, queue what nothing else holds: look at the newest, and at some of the others in turn."""
        cdef Offloaded p
        cdef int k, i = self.n_waiting
        if self.full: return 0
        for k in range(min(most, self.n_waiting)):
            if k < SCAN or most > 2 * SCAN: i -= 1
            else:
                self.at = (self.at if 0 < self.at < self.n_waiting else self.n_waiting) - 1
                i = self.at
            if i < 0 or i >= self.n_waiting: break
            p = <Offloaded>self.waiting[i]
            if not p.is_only_holder(): continue
            p.job.offset = self.spill.take(p.job.nbytes)
            self.no_longer_waits(p)
            self.queued += p.job.nbytes
            self.n_queued += 1
            p.job.data, p.job.reads = p.held.data, False
            self.spill.post(&p.job)
        return 0

    cdef void dequeued(self, Offloaded p) noexcept:
        self.queued -= p.job.nbytes
        self.n_queued -= 1

    cdef int wait_for_room(self) except -1:
        """Wait until less waits to be written. (What does would otherwise take the place of results in a limit.)"""
        cdef size_t most = 0 if is_bounded() else QUEUE
        while self.queued > most or self.n_queued > QUEUED_MOST: self.wait()
        return 0

    cdef int wait(self) except -1:
        self.spill.wait(NULL)
        return self.settle()

    cdef int settle(self) except -1:
        """Finish what the thread has done."""
        cdef Offloaded p
        cdef Job* j
        while True:
            j = self.spill.next_done()
            if j == NULL: return 0
            p = <Offloaded>j.owner
            p.finish()

    cdef void give(self, Offloaded p) noexcept:
        """A part of the file is free again."""
        try: self.spill.give(p.job.offset, p.job.nbytes)
        except MemoryError: pass                    # (then the file grows)
        p.job.offset, p.on_disk = -1, False

    cdef int report(self) except -1:
        """Raise the error of a failed write, once."""
        cdef int error = self.error
        self.error = 0
        return raise_full(self, error) if error else 0

    # ---- from the file to memory

    cdef int read_ahead(self, Offloaded p) except -1:
        """Request what was saved before `p`."""
        cdef void* o = p.older
        cdef Offloaded x
        cdef int _
        if is_bounded(): return 0
        for _ in range(4 * SCAN):
            if o == NULL: break
            x = <Offloaded>o
            if x.on_disk and x.held == NULL:
                if self.ahead and self.ahead + x.job.nbytes > AHEAD: break
                try: x.request()
                except MemoryError: break           # (backward may need less than this)
                x.is_ahead = True
                self.ahead += x.job.nbytes
            o = x.older
        return 0

    cdef bint forget_ahead(self) noexcept:
        """Release what was read and not used. Returns whether that was anything."""
        cdef void* o = self.newest
        cdef bint any_released = False
        cdef Offloaded x
        while o != NULL:
            x = <Offloaded>o
            if x.on_disk and x.held != NULL and x.job.state == IDLE:
                x.let_go()
                any_released = True
            o = x.older
        return any_released

    # ---- the scope

    cdef int drain(self) except -1:
        """Write what nothing else holds, and wait until it is written."""
        if not self.spill.is_usable(): return 0
        self.settle()
        self.send(self.n_waiting + 2 * SCAN + 1)
        while self.queued: self.wait()
        return self.report()


cdef int raise_full(Offloading s, int error) except -1:
    cdef size_t total = 0
    cdef void* o = s.newest
    while o != NULL:
        if (<Offloaded>o).on_disk: total += (<Offloaded>o).job.nbytes
        o = (<Offloaded>o).older
    raise OSError(error, f"{s.spill.who}: {s.wanted:,} bytes could not be written in {s.spill.folder!r} "
                         f"({os.strerror(error)}), beside {total:,} bytes that its file has; nothing is lost: what is "
                         f"not in the file stays in memory, and backward works; this scope writes no more; make room, "
                         f"or pass another folder")


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc_clear
cdef class offload:
    """A scope in which what nodes save for backward goes to a file in the folder `directory`, and comes back in
    backward, with the same bits.

        with cg.memory.offload("/tmp") as o:
            with cg.record(): loss = model(x).sum()
            loss.backward()

    A thread writes each saved buffer once, as soon as nothing but slots of nodes holds it. What stays in memory:
    variables, what a Python name, a view or another object holds, external memory, signs (one bit an element), and
    buffers of less than `smallest` bytes. At most 16 MiB, or one value, wait to be written: then the program waits. In
    backward, up to 16 MiB are read before they are needed, in the reverse order of saving. In a memory.limit() or
    memory.budget() nothing waits and nothing is read early. The end of the scope waits until all is written. Backward
    may run after it, and in another thread. The file belongs to the scope and has no
    name, so nothing is left of it after a crash. It is closed when the scope has ended and no graph needs it.

    `.written_bytes` and `.read_bytes` count what was written and read, `.file_bytes` is the most that the file has had,
    and `.waited_seconds` is how long the program has waited for the disk. In nested scopes (also memory.budget(),
    checkpoint() and saved_tensors_hooks) the innermost one decides what a node saves. A captured step runs as eager
    code in the scope. A child of a fork writes nothing, and cannot run backward through what the file has.

    Raises OSError if no file can be made. If a write fails, because the disk is full, the next operation that is
    recorded raises OSError, or else the end of the scope does; an exception that ends the scope gets a note instead.
    Nothing is lost: the value stays in memory, the graph so far is whole, and the scope writes nothing more. Backward
    raises RuntimeError, with the operation, for what cannot be read or has changed. TypeError or ValueError for what is
    no folder or no size. RuntimeError when it is closed in another thread, or opened twice."""
    cdef Offloading made
    cdef Packing before         # the thread's packing before, or None
    cdef unsigned long thread   # that opened it
    cdef str folder
    cdef size_t smallest
    cdef bint is_open

    @cython.embedsignature.format("c")
    def __init__(self, directory, smallest="64KiB"):
        if self.is_open: raise RuntimeError("this memory.offload() is open, so it cannot be set up again")
        self.folder = folder_path(directory, "memory.offload", "spill")
        self.smallest = min(read_size(smallest, "memory.offload"), 1 << 62)

    def __enter__(self):
        cdef Flags* f = flags()
        if self.is_open or self.folder is None:
            raise RuntimeError("this memory.offload() is already open; make another one for a scope inside it")
        refuse_trace("memory.offload()")
        self.made = Offloading(self.folder, self.smallest)
        self.before = <Packing>f.pack if f.pack != NULL else None
        self.thread = PyThread_get_thread_ident()
        scopes.append(<size_t><void*>self)
        set_packing(f, self.made)
        self.is_open = True
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if not self.is_open: raise RuntimeError("memory.offload: this scope is not open, so it cannot be closed")
        if self.thread != PyThread_get_thread_ident():
            raise RuntimeError("memory.offload: it was opened in another thread, and only that thread can close it")
        self.leave()
        try:
            if value is None: self.made.drain()
            else: self.made.settle()
            self.made.report()
        except OSError as e:
            if value is None: raise
            value.add_note(str(e))
        finally:
            if not self.made.count: self.made.spill.close()

    cdef int leave(self) except -1:
        """Save as before from now on."""
        cdef Flags* f = flags()
        cdef offload o
        self.is_open = self.made.is_open = False
        scopes.remove(<size_t><void*>self)
        if f.pack == <void*>self.made: set_packing(f, self.before)
        for address in scopes:                      # (one that was opened inside and is closed later)
            o = <offload><void*><size_t>address
            if o.before is self.made: o.before = self.before
        self.before = None
        return 0

    def __dealloc__(self):
        if self.is_open: self.leave()

    @property
    def written_bytes(self):
        """The bytes that were written to the file."""
        return self.counted(0)

    @property
    def read_bytes(self):
        """The bytes that were read from the file."""
        return self.counted(1)

    @property
    def file_bytes(self):
        """The most bytes that the file has had."""
        return self.made.spill.most if self.made is not None else 0

    @property
    def waited_seconds(self):
        """How long the program has waited for the disk."""
        return self.made.spill.waited if self.made is not None else 0.0

    cdef object counted(self, bint read):
        if self.made is None: return 0
        self.made.settle()
        return self.made.read if read else self.made.written
