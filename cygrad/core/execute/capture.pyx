"""Capturing: the operations that a thread executes are registered, so that they can be executed again (replay.pyx).

A capture holds its own tensor on the memory of each operand and result. So memory that the user frees is not reused,
and the address of a buffer identifies it."""

from cygrad.core.graph.construct cimport copy_plain
from cygrad.core.graph.tensor cimport fill, shell
from cygrad.core.late_bound cimport late_bound
from cygrad.core.source cimport refuse_capture
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport EXTERNAL, hold
from cygrad.core.thread_state cimport Flags, flags

from cygrad.core.source import observe

captures = 0
foreign = []


cdef class Capture:
    """The operations that one thread has captured."""


cdef class Captured:
    """One captured operation."""


cdef Capture begin_capture():
    """Open a capture in this thread and pause recording. The captured function may open record()."""
    global captures
    cdef Flags* f = flags()
    cdef Capture c = Capture.__new__(Capture)
    c.calls, c.constants, c.recording = [], {}, f.recording
    f.capture, f.recording = <void*>c, False
    captures += 1
    return c


cdef int end_capture(Capture c) except -1:
    global captures
    cdef Flags* f = flags()
    f.capture, f.recording = NULL, c.recording
    captures -= 1
    if not captures: foreign.clear()
    return 0


cdef Tensor on_buffer(Buffer* b, const Layout* layout, int dtype):
    """A tensor on the buffer `b`, which memory.scope() does not see."""
    cdef Tensor t = shell()
    hold(b)
    fill(t, b, lay.incref(layout), dtype)
    return t


cdef Captured new_call(Execution* e, Operator op, const Operand* x, object attributes):
    cdef Captured c = Captured.__new__(Captured)
    cdef int i
    c.op, c.attributes, c.wanted = op, attributes, e.call.wanted if e.call.n_out > 1 else 0
    c.within = (<Capture>e.thread.capture).within
    c.inputs = [<object>x[i].tensor if x[i].buffer == NULL
                else on_buffer(x[i].buffer, x[i].array.layout, x[i].array.dtype) for i in range(e.call.n_in)]
    return c


cdef int note_results(Execution* e, Operator op, const Operand* x, object attributes) except -1:
    """Register an operation with new results. A view is not registered, since its memory is that of an input."""
    cdef Captured c
    cdef int k
    cdef list outputs
    if e.thread.capture != NULL: (<Capture>e.thread.capture).ran = True
    if e.call.view >= 0 and not (e.thread.capture != NULL and (<Capture>e.thread.capture).observes): return 0
    outputs = [on_buffer(e.buffers[k], e.call.y[k].layout, e.call.y[k].dtype) for k in range(e.call.n_out)]
    if e.thread.capture == NULL:
        foreign.extend(outputs)
        return 0
    c = new_call(e, op, x, attributes)
    c.outputs = outputs
    (<Capture>e.thread.capture).calls.append(c)
    return 0


cdef int note_write(Execution* e, Operator op, const Operand* x, object attributes, Tensor target) except -1:
    """Register an operation before it writes to `target`. If the memory was made during the capture, but not by an
    operation (by zeros(), from a list), each replay begins by restoring its present values."""
    cdef Capture capture
    cdef Captured c
    cdef Tensor whole
    cdef int k
    outputs = [on_buffer(e.buffers[0], target.layout, target.dtype)]
    if e.thread.capture == NULL:
        foreign.extend(outputs)
        return 0
    capture = <Capture>e.thread.capture
    capture.ran = True
    whole = capture.constants.pop(<size_t>target.buffer, None)
    if whole is not None:
        if target.buffer.flags & EXTERNAL: refuse_capture(f"{op.name} in place over memory of another library")
        c = Captured.__new__(Captured)
        c.op, c.attributes, c.outputs = <Operator>late_bound.operators["copy"], None, [whole]
        c.inputs = [copy_plain(whole)]
        capture.calls.insert(0, c)                  # first: operations before this one may read the memory
    for k in range(1, e.call.n_out): outputs.append(on_buffer(e.buffers[k], e.call.y[k].layout, e.call.y[k].dtype))
    c = new_call(e, op, x, attributes)
    c.outputs, c.into = outputs, True
    capture.calls.append(c)
    return 0


def executed(f, *args, **kwargs):
    """The operations that f(*args, **kwargs) executes in this thread, views too, in order: a list of tuples (operator,
    attributes, inputs, outputs). Inputs are tensors and Python numbers; hidden outputs come last. f may do what cannot
    be captured for a replay, such as reading values."""
    cdef Capture capture = begin_capture()
    cdef Captured c
    capture.observes = True
    observe(True)
    try:
        f(*args, **kwargs)
        return [(c.op, c.attributes, c.inputs, c.outputs) for c in capture.calls]
    finally:
        observe(False)
        end_capture(capture)


cdef void constant_made(t) noexcept:
    """Register a tensor that was made during a capture, but not by an operation."""
    cdef Tensor x = <Tensor>t
    try:
        (<Capture>flags().capture).constants.setdefault(<size_t>x.buffer, on_buffer(x.buffer, x.layout, x.dtype))
    except MemoryError:                             # a write to it is then captured like a write to outside memory
        pass


late_bound.constant_made = constant_made
