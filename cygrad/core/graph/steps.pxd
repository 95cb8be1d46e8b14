"""Calls of kernels, which a program repeats.

All work on memory that is not the call of an operator goes through call(): copies, zeros, sums of gradients, draws,
running statistics, rows of gradients, updates of solvers. In eager code it calls the kernel. While the thread traces,
it makes a Step of the call, with the addresses of its arrays and a copy of its parameters. What calls it does not ask
whether there is a trace."""

from libc.string cimport memset

from cygrad.core.graph.packed cimport will_write
from cygrad.core.graph.tensor cimport Tensor, ready
from cygrad.core.graph.trace cimport Trace
from cygrad.core.store.buffer cimport Buffer
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Array, Layout, itemsize
from cygrad.kernels.driver cimport Loop, LoopCall

cdef enum Access:           # what a call does with the elements at an address
    READS = 1
    WRITES = 2              # what was there before does not matter
    UPDATES = 3             # it reads them and writes in place, or writes only some

cdef struct Pointer:        # an address in a step
    char** at
    int access              # an Access
    int life                # the number of the Life that it points into, or -1
    int storage             # else the number of the Storage
    size_t offset


cdef struct Arrays:         # what a kernel works on
    int n
    Array at[3]
    Buffer* buffers[3]
    int access[3]           # an Access for each


ctypedef int (*Kernel)(Array* a, const void* parameters, object held) except -1


cdef class Step:
    """One call of a program: kernel(arrays, parameters, held), unless a subclass has another run()."""
    cdef Pointer* pointers
    cdef const Layout** layouts         # references
    cdef int n_pointers, n_layouts, n_written
    cdef Buffer* written[2]     # held: buffers from outside that the call writes to in place
    cdef Kernel kernel
    cdef char* room             # arrays and parameters, in one allocation
    cdef Array* arrays
    cdef void* parameters
    cdef object held            # or None
    cdef bint writes_unseen     # it also writes to memory outside that it has no address of
    cdef bint pure              # the same call again, on the same values, does the same and nothing else
    cdef double work            # in elements of an elementwise operation
    cdef readonly str name      # name of the operator, for errors
    cdef str within             # the composed function that called it, or None
    cdef readonly object source         # Trace.source at that time

    cdef int take(self, int n_pointers, int n_layouts, size_t room) except -1
    cdef const Layout* hold(self, const Layout* l) noexcept
    cdef int point(self, Trace t, char** at, Buffer* b, int access) except -1
    cdef int point_to_storage(self, Trace t, char** at, int number) except -1
    cdef int write(self, Buffer* b) except -1
    cdef int run(self) except -1
    cdef bint find_loop(self, LoopCall* l) noexcept


cdef int emit(Trace t, Step s) except -1
cdef Step new_step(Trace t, str name, Kernel kernel, const Arrays* x, const void* parameters, size_t nbytes,
                   object held)
cdef bint trace_call(str name, Kernel kernel, const Arrays* x, int writes, const void* parameters, size_t nbytes,
                     object held) except -1
cdef int trace_loop(str name, const Loop* loop, const Arrays* x) except -1
cdef int trace_zeros(Array a, Buffer* b) except -1
cdef int fill_zeros(Array* a, const void* parameters, object held) except -1
cdef int copy_elements(Array* a, const void* parameters, object held) except -1
cdef bint zeroes(Step s) noexcept
cdef Step repeated(Step s)
cdef Step repeats(Step s)


cdef inline Array elements_in(Tensor t) noexcept:
    """The elements of a tensor that has memory, perhaps virtual memory."""
    cdef Array a
    a.data, a.layout, a.dtype = t.buffer.data + t.layout.offset * itemsize(t.dtype), t.layout, t.dtype
    return a


cdef inline void put_array(Arrays* x, Array a, Buffer* b, int access) noexcept:
    """Append an array in the buffer `b` to those of a call."""
    x.at[x.n], x.buffers[x.n], x.access[x.n] = a, b, access
    x.n += 1


cdef inline int put(Arrays* x, Tensor t, int access) except -1:
    """The same for the elements of a tensor."""
    ready(t)
    put_array(x, elements_in(t), t.buffer, access)
    return 0


cdef inline bint call(Flags* f, str name, Kernel kernel, Arrays* x, int writes, const void* parameters, size_t nbytes,
                      object held) except -1:
    """Call kernel(arrays, parameters, held) and return True. A thread that traces computes nothing: it makes a step of
    the call, with a copy of the `nbytes` of parameters, and returns False. The first `writes` arrays are written in
    place, so the versions of their buffers rise."""
    cdef int k
    for k in range(writes): will_write(f, x.buffers[k])
    if f.trace != NULL: return trace_call(name, kernel, x, writes, parameters, nbytes, held)
    kernel(x.at, parameters, held)
    for k in range(writes): x.buffers[k].version += 1
    return True


cdef inline int call_loop(Flags* f, str name, const Loop* loop, Arrays* x) except -1:
    """The same for an elementwise loop, whose last array is the result."""
    return driver.each(loop, x.at) if f.trace == NULL else trace_loop(name, loop, x)


cdef inline int fill_with_zeros(Tensor t) except -1:
    """The same for zeros, written to the elements of a dense tensor."""
    ready(t)
    if flags().trace != NULL: return trace_zeros(elements_in(t), t.buffer)
    memset(t.buffer.data + t.layout.offset * itemsize(t.dtype), 0, t.layout.size * itemsize(t.dtype))
    return 0
