"""Traces: a program runs without its kernels, in virtual memory.

While a thread has a trace, operators infer shapes and dtypes, but nothing is computed. Results, workspaces and
gradients are virtual buffers: they have addresses, but no memory. So a profile of the trace shows what the program
would allocate and when. A trace that is PREPARING also makes a Step for each kernel call (core/graph/steps.pxd): the
call with its arguments, whose addresses are set later, when the virtual buffers have places in an arena
(core/execute/program.pyx).

A trace changes nothing outside, so other threads work on meanwhile. The gradient of a variable has a Twin, which the
thread of the trace sees in its place, and so has a generator; a write to other memory does not raise its version,
and the trace counts it. Virtual memory does not count in memory.stats(). What remains visible until the trace ends: a
plan may make a tensor from outside a variable, which other threads then record too."""

from libc.stdint cimport uint32_t, uint64_t

from cygrad.core.graph.around cimport Around
from cygrad.core.graph.slots cimport Slot
from cygrad.core.graph.tensor cimport Leaf, Node, Tensor
from cygrad.core.graph.undo cimport Twin
from cygrad.core.store.buffer cimport VIRTUAL, Buffer, Life, life_of
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport Array, Layout

cdef enum Purpose:
    PLANNING = 1            # only the memory is of interest
    PREPARING               # steps are made

cdef enum StorageKind:
    TENSOR                  # the memory of a tensor that existed before the trace
    GRADIENT                # the memory of the .grad that a variable has when the program runs
    CONSTANT                # the memory of a tensor that the program made, but no operator computed
    INPUT                   # an argument of the program, which each run provides

cdef class Storage:
    """Memory outside the arena that steps read or write."""
    cdef readonly int kind, number
    cdef Tensor tensor      # a tensor on all of it, or None
    cdef Leaf leaf          # a GRADIENT has it
    cdef list lives         # the numbers of the lives that are placed in it
    cdef int writes         # the number of steps that write to it
    cdef bint in_use        # by a pass, or by steps that do more than fill it with zeros
    cdef int last_use       # the last step that uses it, not through a life; -1: none
    cdef bint anew          # for a GRADIENT: .grad becomes None before a step writes to it
    cdef bytes initial      # for a CONSTANT that is written: what each run begins with
    cdef size_t start       # for a GRADIENT that is a part of a buffer: the byte at which it begins
    cdef char* address      # as the steps have it; NULL: not set yet


cdef class Written:
    """Memory from outside that a trace writes to."""
    cdef Tensor tensor      # on all of it
    cdef uint32_t version   # before the first of them
    cdef list at            # their places in the order of Node.seq


cdef class Trace:
    cdef readonly int purpose
    cdef uint64_t first                 # nodes with a smaller `seq` existed before
    cdef int clock
    cdef Life** lives
    cdef int n_lives, capacity
    cdef list steps, storages
    cdef dict storage_of                # address of a real buffer, or of a Leaf -> number of a storage
    cdef dict twins                     # address of a Leaf from outside, or of Twin.state -> its Twin
    cdef dict shared                    # address of a buffer -> the stand-in of a gradient that has other references
    cdef dict written                   # address of a real buffer -> its Written
    cdef dict positions                 # address of a generator -> (what stands for it, generator)
    cdef list undo                      # Twins, in order
    cdef dict of_none                   # address of a Twin.state that had no .grad -> number of the life of its zeros
    cdef dict empty_rows                # address of a Twin.state -> the step that gives it a GradientSlice without rows
    cdef set with_rows                  # addresses of Twin.states that a step gives a GradientSlice
    cdef object source                  # where the program is, as set_source() says
    cdef int split                      # the step before which the program can stop, or -1
    cdef list inside                    # the Leafs of variables that the program has made and that have gradients
    cdef set early                      # addresses of Leafs of solvers that were called before a pass reached them
    cdef dict roles                     # address of a Leaf whose grad_req has changed -> whether the program made it
    cdef list collected                 # the accumulators of the thread's open GradientCollector
    cdef Py_ssize_t n_collected         # their number before
    cdef list calls                     # what operators were called, for a net; None: not wanted
    cdef bint lists                     # `calls` is wanted (it is None during a backward pass)
    cdef bint formulas                  # `calls` also has what the formulas of a backward pass execute
    cdef str within                     # the composed function that is running, or None
    cdef Tensor into                    # the next operation that reads this tensor first writes to it; None: none does
    cdef void* write                    # run_into() of core/execute/inplace.pyx, which that calls
    cdef int recording, training        # the thread's flags before
    cdef void* pack                     # the thread's saved_tensors_hooks before
    cdef void* collector                # the thread's GradientCollector before
    cdef Around around                  # what was around it; None: it is PLANNING

    cdef Life* new_life(self, size_t nbytes) except NULL
    cdef void use(self, const Buffer* b) noexcept
    cdef int use_gradient(self, Leaf leaf) except -1
    cdef int new_storage(self, int kind, Tensor tensor, Leaf leaf, key) except -1
    cdef int storage_on(self, Buffer* b) except -1
    cdef int gradient_storage(self, Leaf leaf) except -1
    cdef Leaf seen(self, Leaf leaf)
    cdef Leaf outside(self, Leaf leaf)
    cdef Leaf state_of(self, Leaf leaf)
    cdef bint is_own(self, Leaf leaf)
    cdef Tensor stand_in(self, Twin u, Tensor t, bint shared, int number)
    cdef object rows_stand_in(self, Twin u, rows)
    cdef Written written_on(self, Buffer* b)
    cdef bint wrote_since(self, Node node, const Slot* s, Buffer* b) except -1
    cdef int stand_for_none(self, Leaf leaf, int number) except -1
    cdef bint is_outside(self, Tensor x)
    cdef bint has_outside(self, Leaf leaf)
    cdef int constant_made(self, Tensor t) except -1
    cdef int before_write(self, Buffer* b) except -1
    cdef int may_write(self, Buffer* b) except -1
    cdef Storage storage_of_life(self, const Buffer* b)
    cdef bint is_free(self, Storage s, const Life* life)


cdef Tensor on_buffer(Buffer* b, const Layout* layout, int dtype)
cdef int refuse_trace(str action) except -1
cdef void* set_trace(void* trace) noexcept
cdef Leaf touch_leaf(Leaf leaf)
cdef Leaf seen_leaf(Leaf leaf)
cdef bint is_frozen(Tensor x) except -1
cdef uint32_t version_of(const Buffer* b)
cdef uint32_t writes_of(const Buffer* b)
cdef uint32_t version_saved(Node node, const Slot* s, const Buffer* b)


cdef bint has_values(const Array* a) noexcept nogil


cdef inline void raise_version(const Flags* f, Buffer* b) noexcept:
    """Register a write to `b`. A trace has done so before, by before_write(), and raises the version of its own memory
    only."""
    if f.trace == NULL or b.flags & VIRTUAL: b.version += 1


cdef inline Trace trace_of(const Flags* f):
    """The thread's trace, or None. For the modules that make programs; others need not know of it."""
    return None if f.trace == NULL else <Trace>f.trace


cdef inline bint traces() noexcept:
    """Whether this thread traces a program."""
    return flags().trace != NULL


cdef inline bint made_here(const Buffer* b) noexcept:
    """Whether a buffer is virtual and belongs to the trace of this thread."""
    cdef const Life* life = life_of(b)
    return life != NULL and life.trace == flags().trace


cdef inline bint is_outside(Tensor x):
    """Whether a tensor existed before the thread's trace."""
    return flags().trace == NULL or (<Trace>flags().trace).is_outside(x)


cdef inline bint was_rewritten(Node node, const Slot* s, Buffer* b) except -1:
    """Whether `b`, which slot `s` of `node` has saved, was written since; during a trace, whether the program has."""
    if flags().trace == NULL: return b.version != s.version
    return (<Trace>flags().trace).wrote_since(node, s, b)


cdef inline void set_mode_scope(const Flags* f, int by) noexcept:
    """A scope that sets the mode begins (1) or ends (-1)."""
    if f.trace != NULL and (<Trace>f.trace).around is not None: (<Trace>f.trace).around.modes += by


cdef inline Trace preparing(const Flags* f):
    """The thread's trace if it is PREPARING, else None."""
    if f.trace == NULL or (<Trace>f.trace).purpose != PREPARING: return None
    return <Trace>f.trace


cdef inline int refuse_step(str action) except -1:
    """refuse_trace() if the trace makes steps."""
    return 0 if preparing(flags()) is None else refuse_trace(action)


cdef inline int refuse_call(str action) except -1:
    """refuse_trace() if the calls of the program are listed for a net."""
    return refuse_trace(action) if flags().trace != NULL and (<Trace>flags().trace).calls is not None else 0


cdef inline dict positions_of(const Flags* f):
    """What stands for generators in the thread's trace, or None."""
    return None if f.trace == NULL else (<Trace>f.trace).positions


cdef inline bint lists_calls() noexcept:
    """Whether this thread traces a program that becomes a net."""
    return flags().trace != NULL and (<Trace>flags().trace).lists


cdef inline int declare_write(const Flags* f, Buffer* b) except -1:
    """Call this before a call that writes to a buffer: a trace registers it."""
    return 0 if f.trace == NULL else (<Trace>f.trace).before_write(b)
