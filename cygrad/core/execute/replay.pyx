"""Replay: operations captured once from eager code, then executed again in memory that was planned beforehand.

The capture holds the operators themselves. A replay calls their forward() on fixed buffers, so its results equal those
of eager code bit for bit, and it allocates nothing. Nets are built on this."""

cimport cython

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from cygrad.core.execute.capture cimport Capture, Captured, begin_capture, end_capture, foreign, on_buffer
from cygrad.core.execute.composed cimport rename
from cygrad.core.execute.executor cimport (
    Execution, begin, compute, infer, place_fresh, place_over, release, set_operands,
)
from cygrad.core.execute.operands cimport Operand, prepare, read_operand, release_operands
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.tensor cimport Tensor, ready
from cygrad.core.source cimport refuse_capture
from cygrad.core.store.buffer cimport WORKSPACE, allocate
from cygrad.core.thread_state cimport flags

from cygrad.core.errors import described


cdef class Step:
    """One operation of a replay: an execution whose results have fixed memory."""
    cdef Operator op
    cdef Execution execution
    cdef Operand* operands
    cdef list inputs            # the tensors and numbers that the operands borrow
    cdef object attributes
    cdef Tensor target          # of an in-place write, or None
    cdef str within             # the composed function that executed it, or None

    def __dealloc__(self):
        if self.operands == NULL: return
        release(&self.execution)
        release_operands(self.operands, self.execution.call.n_in)
        PyMem_Free(self.operands)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Replay:
    """`Replay(f, *args, **kwargs)` runs f once on tensors and captures its operations, including in-place writes.
    `run()` executes them again in the same memory, on the present values of the inputs, and returns `outputs`: the
    tensors that f returned. Python control flow inside f runs only once. If f writes to a tensor from outside, each
    run() writes to it again.

    Raises RuntimeError if f runs no operation, or does something that a replay would not repeat: it reads or copies
    values (item, numpy, tensor(x), a gradient that reads them), draws random numbers, runs a backward pass without
    create_graph, adds to a .grad or zeroes it, updates a solver, runs another replay, uses the results of another
    thread, writes to memory that it shares with another library inside f, or computes a result whose shape depends on
    values. Properties of memory that Python reads (x.version, memory.stats) become constants. Raises TypeError if f
    returns anything but a tensor or a tuple of tensors."""
    cdef list steps
    cdef object results
    cdef bint ran, running

    @cython.embedsignature.format("c")
    def __init__(self, f, *args, **kwargs):
        cdef Capture capture
        if flags().capture != NULL: refuse_capture("another Replay")
        self.ran = self.running = False
        capture = begin_capture()
        try:
            result = f(*args, **kwargs)
            others = {<size_t>(<Tensor>t).buffer for t in foreign}
        finally:
            end_capture(capture)
        if not capture.ran: raise RuntimeError("Replay: the function ran no operation on tensors")
        planned = {}                                # address of an eager result's buffer -> the tensor that replaces it
        self.steps = [plan(call, planned, others) for call in capture.calls]
        several = isinstance(result, (tuple, list))
        for y in result if several else (result,):
            if not isinstance(y, Tensor):
                raise TypeError(f"Replay: the function must return a tensor or a tuple of tensors; it returned "
                                f"{described(y)}")
            check_foreign(y, others, "the result")
        self.results = tuple([in_plan(y, planned) for y in result]) if several else in_plan(result, planned)

    @property
    def outputs(self):
        """The tensors that f returned, which run() fills. Raises RuntimeError before the first run()."""
        if not self.ran: raise RuntimeError("Replay: outputs is empty before the first run(); call run() first")
        return self.results

    def run(self):
        """Execute all operations again and return the outputs. Raises RuntimeError if another thread is running this
        replay."""
        cdef Step s = None
        if flags().capture != NULL: refuse_capture("run() of another Replay")
        if self.running: raise RuntimeError("Replay: this replay is already running; wait for it, or make another")
        self.running = True
        try:
            for s in self.steps:
                compute(&s.execution, s.op)
                if s.target is not None: s.target.buffer.version += 1
        except Exception as e:
            if s.within is not None: rename(e, s.within)
            raise
        finally:
            self.running = False
        self.ran = True
        return self.results


cdef Step plan(Captured call, dict planned, set others):
    """Prepare the replay of a captured operation: read its operands and allocate its results and workspace."""
    cdef Step s = Step.__new__(Step)
    cdef Operator op = call.op
    cdef Execution* e = &s.execution
    cdef Tensor y
    cdef int n = len(call.inputs), i, k
    if op.data_dependent_shape:
        raise RuntimeError(f"Replay: the shape of the result of {call.within or op.name} depends on values, so no "
                           f"memory can be planned for it; keep masks and counts outside the captured function")
    for x in call.inputs: check_foreign(x, others, call.within or op.name)
    s.op, s.attributes, s.within = op, call.attributes, call.within
    s.inputs = [in_plan(x, planned) for x in call.inputs]
    for x in s.inputs:
        if isinstance(x, Tensor): ready(<Tensor>x)
    s.operands = <Operand*>PyMem_Malloc(n * sizeof(Operand))
    if s.operands == NULL: raise MemoryError("no memory for a step of a replay")
    for i in range(n): read_operand(&s.operands[i], s.inputs[i])
    e.call.n_in = n                                 # __dealloc__ releases as many operands
    if op.promotes: prepare(op, s.operands, n)      # for Python numbers; casts of tensors are separate steps
    begin(e, op, s.attributes, flags())
    e.thread.op = e.outer                           # begin() set it, but nothing runs yet
    set_operands(e, s.operands, n, call.wanted)
    infer(e, op)
    if call.into:
        check_foreign(call.outputs[0], others, call.within or op.name)
        s.target = in_plan(call.outputs[0], planned)
        place_over(e, s.target)
    else: place_fresh(e, 0)
    for k in range(1 if call.into else 0, e.call.n_out):
        y = on_buffer(e.buffers[k], e.call.y[k].layout, e.call.y[k].dtype)
        planned[<size_t>(<Tensor>call.outputs[k]).buffer] = y
    if e.call.workspace_bytes:
        e.workspace = allocate(e.call.workspace_bytes, WORKSPACE)
        e.call.workspace = e.workspace.data
    return s


cdef int check_foreign(x, set others, str who) except -1:
    """Raise RuntimeError if another thread computed `x` during the capture."""
    if isinstance(x, Tensor) and <size_t>(<Tensor>x).buffer in others:
        raise RuntimeError(f"Replay: {who} uses a result of another thread, which a replay would not compute again; "
                           f"compute it in the capturing thread")
    return 0


cdef object in_plan(x, dict planned):
    """What a replay uses for `x`: the same view of planned memory if a captured operation computed the memory of `x`,
    else `x` itself. (`x` need not be the result of the operation; it may be a view or a detach() of it.)"""
    cdef Tensor y
    if not isinstance(x, Tensor): return x
    y = planned.get(<size_t>(<Tensor>x).buffer)
    return x if y is None else on_buffer(y.buffer, (<Tensor>x).layout, (<Tensor>x).dtype)
