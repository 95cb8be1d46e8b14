"""The forward calls of a program (core/graph/steps.pxd): executions whose operands and results have fixed addresses."""

from cygrad.core.execute.executor cimport LARGE_WORK, compute
from cygrad.core.graph.operator cimport input_bit
from cygrad.core.graph.tensor cimport is_tracked
from cygrad.core.graph.calls cimport item_of, tensor_item
from cygrad.core.graph.steps cimport READS, UPDATES, WRITES, emit
from cygrad.core.graph.trace cimport PREPARING, Trace, is_frozen, refuse_trace, trace_of
from cygrad.core.store.buffer cimport WORKSPACE, allocate
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Array, has_gradients, itemsize
from cygrad.kernels.driver cimport LoopCall


cdef class ForwardStep(Step):
    """A prepared execution of an operator."""

    cdef int run(self) except -1:
        if self.large:
            with nogil: self.op.forward(&self.call)
        else: self.op.forward(&self.call)
        if self.n_written: self.written[0].version += 1
        return 0

    cdef bint find_loop(self, LoopCall* l) noexcept:
        return self.op.forward_loop(&self.call, l)


cdef int refuse_shape(Operator op) except -1:
    cdef str name = trace_of(flags()).within or op.name
    return refuse_trace(f"a result whose shape depends on values, that of {name},")


cdef int trace_forward(Execution* e, Operator op, const Operand* x, object attributes, Tensor target) except -1:
    """Instead of compute(), during a trace: allocate the workspace, and prepare the call if steps are made. `target`
    is the tensor that an in-place write changes, or None."""
    cdef Call* c = &e.call
    cdef Trace t = trace_of(e.thread)
    if c.workspace_bytes and c.workspace == NULL:
        e.workspace = allocate(c.workspace_bytes, WORKSPACE)
        c.workspace = e.workspace.data
    if t.purpose != PREPARING: return 0
    return emit(t, prepare(e, op, x, attributes, target, t))


cdef int perform(Execution* e, Operator op, const Operand* x, object attributes) except -1:
    """Compute, or what a trace does instead."""
    return compute(e, op) if trace_of(e.thread) is None else trace_forward(e, op, x, attributes, None)


cdef int drop_frozen(const Operand* x, int n, uint64_t* wanted) except -1:
    """During a trace: remove the variables that the program has frozen from a mask of tracked inputs."""
    cdef int i
    wanted[0] = 0
    for i in range(n):
        if x[i].buffer == NULL or not (<Tensor>x[i].tensor)._tracked: continue      # (current since wanted_inputs)
        if not is_frozen(<Tensor>x[i].tensor): wanted[0] |= input_bit(i)
    return 0


cdef int read_outside(Trace t, const Operand* x, int n) except -1:
    """A recorded operation reads its operands: a program compares those from outside at each run."""
    cdef int i
    if t.around is None: return 0
    for i in range(n):
        if x[i].buffer != NULL and t.is_outside(<Tensor>x[i].tensor): t.around.read(<Tensor>x[i].tensor)
    return 0


cdef tuple note_inputs(Execution* e, const Operand* x):
    """For note_call(): (the inputs, whether one of them has a graph). Inputs are items or Python numbers."""
    cdef list inputs = []
    cdef bint tracked = False
    cdef int i
    for i in range(e.call.n_in):
        if x[i].buffer == NULL: inputs.append(<object>x[i].tensor)
        else:
            inputs.append(tensor_item(<Tensor>x[i].tensor))
            tracked = tracked or is_tracked(<Tensor>x[i].tensor)
    return inputs, tracked


cdef int note_call(Execution* e, Operator op, tuple inputs, object attributes, Node node, Tensor target) except -1:
    """List an operation: ("operator", op, attributes, inputs, outputs, into, recorded, tracked, within, training)."""
    cdef Call* c = &e.call
    cdef Trace t = trace_of(e.thread)
    cdef list outputs = []
    cdef Array a
    cdef int k
    if target is not None: outputs.append(tensor_item(target))
    else:
        for k in range(c.n_out - c.hidden):
            a = c.y[k]
            if c.view >= 0: a.data = e.buffers[k].data + a.layout.offset * itemsize(a.dtype)
            outputs.append(item_of(&a, node if has_gradients(a.dtype) else None, k, None, True, e.buffers[k]))
    t.calls.append(("operator", op, attributes, inputs[0], outputs, target is not None, node is not None, inputs[1],
                    t.within, bool(e.thread.training)))
    return 0


cdef ForwardStep prepare(Execution* e, Operator op, const Operand* x, object attributes, Tensor target, Trace t):
    cdef ForwardStep s = ForwardStep.__new__(ForwardStep)
    cdef const Call* c = &e.call
    cdef Py_ssize_t work = c.work
    cdef Array* xs
    cdef double* numbers            # the operands that are Python numbers
    cdef int i
    s.take(c.n_in + c.n_out + 1, c.n_in + c.n_out, c.n_in * (sizeof(Array) + sizeof(double)))
    xs = <Array*>s.room
    numbers = <double*>(xs + c.n_in)
    s.op, s.held, s.name, s.pure = op, attributes, op.name, True
    s.call = c[0]
    s.call.x, s.call.attributes = xs, <void*>attributes
    for i in range(c.n_in):
        xs[i] = c.x[i]
        s.hold(c.x[i].layout)
        if x[i].buffer == NULL:
            numbers[i] = x[i].number
            xs[i].data = <char*>&numbers[i]
        else:
            s.point(t, &xs[i].data, x[i].buffer, READS)
    for i in range(c.n_out):
        s.hold(c.y[i].layout)
        s.point(t, &s.call.y[i].data, e.buffers[i], WRITES if target is None else UPDATES)
    if e.workspace != NULL: s.point(t, &s.call.workspace, e.workspace, WRITES)
    if target is not None: s.write(target.buffer)
    if work == 0:
        work = c.y[0].layout.size
        for i in range(c.n_in): work = max(work, <Py_ssize_t>c.x[i].layout.size)
    s.work, s.large = work, work >= LARGE_WORK
    return s
