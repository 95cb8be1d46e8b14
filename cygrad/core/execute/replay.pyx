"""Replay: operations captured once from eager code, then run again over memory planned beforehand.

What is captured are the operators themselves; a replay calls the same forward() over fixed buffers, so it computes
eager's bits and allocates nothing. This is what a net is made of."""

cimport cython

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.execute cimport run as running
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, data_of
from cygrad.core.store.buffer cimport OTHER, WORKSPACE, hold
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.execute.run cimport Operand, give_plain, prepare, release_operands
from cygrad.core.source cimport refuse_capture
from cygrad.core.graph.construct cimport fresh, new_tensor
from cygrad.kernels.array cimport UINT8, Array, Layout

from cygrad.core.errors import described


cdef class Step:
    """One operation of a replay."""
    cdef Operator op
    cdef Call c
    cdef list inputs            # tensors and numbers
    cdef list outputs           # what it fills, hidden outputs last; of its own: no user can let go of their memory
    cdef object attributes
    cdef Tensor workspace
    cdef Operand* operands

    def __dealloc__(self):
        if self.operands != NULL: release_operands(self.operands, self.c.n_in)
        PyMem_Free(self.operands)
        PyMem_Free(self.c.x)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Replay:
    """`Replay(f, *args, **kwargs)` runs f once on tensors and takes note of the operations; `run()` runs those again,
    on what the inputs hold then, into the same memory, and returns `outputs`, the tensors that f returned. Python
    control flow inside f is not seen again. Raises RuntimeError if f runs no operation, or does what a replay would
    not do again: it writes in place, reads or copies values (item, numpy, tensor(x), a gradient that reads them),
    draws random numbers, runs a backward pass without create_graph, adds to a .grad or zeroes it, updates a solver,
    runs another replay, uses what another thread computes, or makes a result whose shape depends on values. What Python
    knows of memory (x.version, memory.stats) is a constant. Raises TypeError if f returns anything but a tensor or a
    tuple of them."""
    cdef list steps
    cdef object results
    cdef bint ran

    @cython.embedsignature.format("c")
    def __init__(self, f, *args, **kwargs):
        cdef Flags* thread = flags()
        cdef void* before = thread.capture
        cdef int recording = thread.recording
        cdef list calls = []
        if before != NULL: refuse_capture("another Replay")
        self.ran = False
        thread.capture = <void*>calls
        thread.recording = False
        running.captures += 1
        try:
            result = f(*args, **kwargs)
            others = {<size_t>(<Tensor>t).buffer for t in running.foreign}
        finally:
            thread.capture, thread.recording = before, recording
            running.captures -= 1
            if not running.captures: running.foreign.clear()
        if not calls: raise RuntimeError("Replay: the function ran no operation on tensors")
        planned = {}                                # the buffer of an eager result -> what replays fill instead
        self.steps = [self.plan(op, inputs, attributes, outputs, wanted, planned, others)
                      for op, inputs, attributes, outputs, wanted in calls if outputs is not None]
        several = isinstance(result, (tuple, list))
        for y in result if several else (result,):
            if not isinstance(y, Tensor):
                raise TypeError(f"Replay: the function must return a tensor or a tuple of tensors; among what it "
                                f"returned is {described(y)}")
            check_foreign(y, others, "the result")
        self.results = tuple([in_plan(y, planned) for y in result]) if several else in_plan(result, planned)

    @property
    def outputs(self):
        """What f returned, as tensors that run() fills. Raises RuntimeError before the first run()."""
        if not self.ran: raise RuntimeError("Replay: outputs holds nothing before the first run(); call that first")
        return self.results

    cdef Step plan(self, Operator op, list inputs, attributes, outputs, uint64_t wanted, dict planned, set others):
        """Everything that a step needs, allocated."""
        cdef Step s = Step.__new__(Step)
        cdef int n = len(inputs), i, k
        cdef Tensor y
        if op.data_dependent_shape:
            raise RuntimeError(f"Replay: the shape of what {op.name} gives depends on values, so no memory can be "
                               f"planned for it; keep masks and counts outside of what is captured")
        s.op, s.attributes = op, attributes
        for x in inputs: check_foreign(x, others, op.name)
        s.inputs = [in_plan(x, planned) for x in inputs]
        s.c.x = <Array*>PyMem_Malloc(n * sizeof(Array))
        s.operands = <Operand*>PyMem_Malloc(n * sizeof(Operand))
        if s.operands == NULL or s.c.x == NULL: raise MemoryError("no memory for a step of a replay")
        for i in range(n): give_plain(&s.operands[i], s.inputs[i])
        s.c.n_in = n
        if op.promotes: prepare(op, s.operands, n)  # the inputs have one dtype already: casts are steps of their own
        for i in range(n): s.c.x[i] = s.operands[i].array
        s.c.n_in, s.c.n_out, s.c.hidden, s.c.view, s.c.wanted = n, 1, 0, -1, wanted
        s.c.attributes = <void*>attributes
        op.infer(&s.c)
        s.outputs = []
        for k in range(s.c.n_out):
            y = fresh(<Layout*>s.c.y[k].layout, s.c.y[k].dtype, OTHER)
            s.c.y[k].data = data_of(y)
            s.outputs.append(y)
            planned[<size_t>(<Tensor>outputs[k]).buffer] = y
        if s.c.workspace_bytes:
            s.workspace = fresh(lay.from_shape(s.c.workspace_bytes), UINT8, WORKSPACE)
            s.c.workspace = data_of(s.workspace)
        return s

    def run(self):
        """Run all operations again; returns the outputs."""
        cdef Step s
        if flags().capture != NULL: refuse_capture("run() of another Replay")
        for s in self.steps: s.op.forward(&s.c)
        self.ran = True
        return self.results


cdef int check_foreign(x, set others, str who) except -1:
    """That no other thread has computed `x` during the capture."""
    if isinstance(x, Tensor) and <size_t>(<Tensor>x).buffer in others:
        raise RuntimeError(f"Replay: {who} uses what another thread computed meanwhile, which a replay would not "
                           f"compute again; compute it in the thread that captures")
    return 0


cdef object in_plan(x, dict planned):
    """What a replay reads instead of an eager operand: the same view of planned memory, if its own is a captured
    result (also where a formula, detach() or another view made the tensor), else itself."""
    cdef Tensor y
    if not isinstance(x, Tensor): return x
    y = planned.get(<size_t>(<Tensor>x).buffer)
    if y is None: return x
    hold(y.buffer)
    return new_tensor(y.buffer, lay.incref((<Tensor>x).layout), (<Tensor>x).dtype)
