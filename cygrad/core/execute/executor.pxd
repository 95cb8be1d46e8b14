"""The one executor: begin, infer, place the results, compute, end.

Eager operations (run.pyx), in-place writes (inplace.pyx) and steps of programs (forward.pyx) differ only in where the
results are placed: in new memory, in the memory of a tensor, or in planned memory."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint64_t
from libc.string cimport memset

from cygrad.core.execute.operands cimport Operand
from cygrad.core.graph.operator cimport MAX_OUTPUTS, N_INLINE, Call, Operator
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER, WORKSPACE, Buffer, allocate, allocate_for, drop, hold
from cygrad.core.thread_state cimport Flags
from cygrad.kernels.array cimport Array, itemsize

cdef enum:
    LARGE_WORK = 32768      # elements; larger operations release the GIL while they compute, which costs 50 ns

cdef struct Execution:
    Call call
    Buffer* buffers[MAX_OUTPUTS]    # buffers of the outputs, held
    Buffer* workspace
    Flags* thread
    void* outer             # the operator that called this one, or NULL
    Array inline_x[N_INLINE]

cdef inline void begin(Execution* e, Operator op, object attributes, Flags* thread) noexcept:
    """Clear the call, and make `op` the thread's running operator. end() must follow, also after an error."""
    cdef Call* c = &e.call
    cdef int i
    for i in range(MAX_OUTPUTS): c.y[i].layout = NULL
    memset(e.buffers, 0, sizeof(e.buffers))
    e.workspace = NULL
    e.thread, e.outer = thread, thread.op
    thread.op = <void*>op
    c.n_out, c.hidden, c.view = 1, 0, -1
    c.workspace_bytes, c.work, c.workspace, c.attributes = 0, 0, NULL, <void*>attributes
    c.x = e.inline_x

cdef inline int set_operands(Execution* e, const Operand* x, int n, uint64_t wanted) except -1:
    """Fill in the inputs of the call."""
    cdef Call* c = &e.call
    cdef int i
    c.n_in, c.wanted = n, wanted
    if n > N_INLINE:
        c.x = <Array*>PyMem_Malloc(n * sizeof(Array))
        if c.x == NULL:
            c.x = e.inline_x
            raise MemoryError("no memory for the operands")
    for i in range(n): c.x[i] = x[i].array

cdef inline int infer(Execution* e, Operator op) except -1:
    """Let the operator declare its outputs and its workspace."""
    return op.infer(&e.call)                        # (with the GIL, which guards the reference counts of layouts)

cdef inline int place_fresh(Execution* e, int first) except -1:
    """Place output `first` and those after it in new memory."""
    cdef Call* c = &e.call
    cdef int i
    for i in range(first, c.n_out):
        e.buffers[i] = allocate_for(c.y[i].layout, c.y[i].dtype, OTHER)
        c.y[i].data = e.buffers[i].data

cdef inline void place_view(Execution* e, const Operand* x) noexcept:
    """Place output 0 in the memory of the input that it is a view of."""
    e.buffers[0] = x[e.call.view].buffer
    hold(e.buffers[0])

cdef inline int place_over(Execution* e, Tensor target) except -1:
    """Place output 0 in `target`, which has its shape and dtype, and hidden outputs in new memory."""
    cdef Call* c = &e.call
    place_fresh(e, 1)
    lay.decref(c.y[0].layout)
    c.y[0].layout = lay.incref(target.layout)
    c.y[0].data = target.buffer.data + target.layout.offset * itemsize(target.dtype)
    e.buffers[0] = target.buffer
    hold(target.buffer)

cdef inline int compute(Execution* e, Operator op) except -1:
    """Compute the outputs, which have been placed. Large work runs without the GIL."""
    cdef Call* c = &e.call
    cdef Py_ssize_t work = c.work
    cdef int i
    if c.workspace_bytes and c.workspace == NULL:
        e.workspace = allocate(c.workspace_bytes, WORKSPACE)
        c.workspace = e.workspace.data
    if work == 0:
        work = c.y[0].layout.size
        for i in range(c.n_in): work = max(work, <Py_ssize_t>c.x[i].layout.size)
    if work < LARGE_WORK: return op.forward(c)
    with nogil: op.forward(c)

cdef inline void release(Execution* e) noexcept:
    """Release everything that an execution holds. Results that were moved to tensors are NULL."""
    cdef Call* c = &e.call
    cdef int i
    for i in range(c.n_out):
        if e.buffers[i] != NULL: drop(e.buffers[i])
        if c.y[i].layout != NULL: lay.decref(c.y[i].layout)
    if e.workspace != NULL: drop(e.workspace)
    if c.x != e.inline_x: PyMem_Free(c.x)

cdef inline void end(Execution* e) noexcept:
    """End an execution and release everything that it holds."""
    e.thread.op = e.outer
    release(e)

cdef Node record(Execution* e, Operator op, const Operand* x, object attributes, uint64_t wanted)
