"""Begins and ends traces (trace.pyx), and gives virtual memory to the buffers that are allocated meanwhile."""

from cygrad.core.graph.around cimport Around
from cygrad.core.graph.tensor cimport fill, next_number, shell
from cygrad.core.graph.running cimport forget_traced
from cygrad.core.graph.steps cimport trace_zeros
from cygrad.core.graph.trace cimport PREPARING, Storage, Trace, set_trace, trace_of, traces
from cygrad.core.graph.undo cimport Twin
from cygrad.core.late_bound cimport allocate_virtual_t, late_bound, make_virtual_t
from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport OTHER, Buffer, Life, forget_virtual, make, make_virtual, new_virtual, set_tracing
from cygrad.core.thread_state cimport Flags, flags
from cygrad.kernels.array cimport UINT8, Array, Layout, itemsize

import os
from _thread import allocate_lock, get_ident

from cygrad.core.graph.calls import asked
from cygrad.core.thread_state import set_asked

cdef object lock = allocate_lock()           # one trace is open at a time,
cdef list suspended = []                     # and these wait until it ends: (thread, trace)


cdef Trace begin_trace(int purpose):
    """Open a trace in this thread and pause recording. The traced function may open record()."""
    cdef Flags* f = flags()
    cdef Trace t = Trace.__new__(Trace)
    if traces():
        raise RuntimeError("a program is being traced in this thread already: memory.plan and captures do not nest")
    t.purpose, t.split = purpose, -1
    t.steps, t.storages, t.storage_of, t.undo = [], [], {}, []
    t.twins, t.shared, t.written, t.positions, t.roles = {}, {}, {}, {}, {}
    t.of_none, t.empty_rows, t.with_rows, t.inside, t.early = {}, {}, set(), [], set()
    if purpose == PREPARING: t.around = Around()
    elif f.collector != NULL: t.collected = (<object>f.collector).leaves
    if not is_inside(): lock.acquire()              # (nothing below can fail)
    t.recording, t.training, t.pack, t.first = f.recording, f.training, f.pack, next_number()
    t.collector = f.collector
    if t.collected is not None: t.n_collected = len(t.collected)
    f.recording, f.values, f.pack = False, 0, NULL
    set_trace(<void*>t)
    set_asked(asked)
    if purpose == PREPARING: f.collector = NULL     # (a run does not follow the one that is open: core/graph/around)
    set_tracing(True)
    return t


cdef int end_trace(Trace t) except -1:
    """Close the trace. Also after an error."""
    cdef Flags* f = flags()
    cdef int i
    try:
        t.shared = {}
        for u in t.undo: (<Twin>u).clear()
        for i in range(t.n_lives):
            if t.lives[i].buffer != NULL: forget_virtual(t.lives[i].buffer)
        while t.undo: (<Twin>t.undo.pop()).restore()
        if t.collected is not None: del t.collected[t.n_collected:]
        t.twins, t.written, t.positions, t.empty_rows, t.inside = {}, {}, {}, {}, []
    finally:
        set_trace(NULL)
        set_asked(None)
        f.values = 0
        f.recording, f.training, f.pack, f.collector = t.recording, t.training, t.pack, t.collector
        if not is_inside(): set_tracing(False)
        for i in range(t.n_lives):                  # (the program stored their tensors somewhere)
            if t.lives[i].buffer != NULL: forget_virtual(t.lives[i].buffer)
        if not is_inside(): lock.release()
    return 0


cdef bint is_inside() noexcept:
    """Whether a trace of this thread is suspended. (Then this thread has the lock.)"""
    return bool(suspended) and suspended[len(suspended) - 1][0] == get_ident()


cdef Trace suspend_trace():
    """Suspend the trace of this thread and return it, so that another one can begin within it: that of a program that
    a step of this one calls (core/execute/control.pyx)."""
    cdef Trace t = trace_of(flags())
    suspended.append((get_ident(), t))
    set_trace(NULL)
    return t


cdef int resume_trace(Trace t) except -1:
    """Go on with a trace that was suspended. (Recording, mode and scopes are as they were.)"""
    suspended.pop()
    set_trace(<void*>t)
    set_asked(asked)
    return 0


def _after_fork():
    """The child of a fork has none of the traces of other threads."""
    global lock
    lock = allocate_lock()
    if suspended and not is_inside(): suspended.clear()
    set_tracing(traces() or is_inside())
    if traces() or is_inside(): lock.acquire()
    else: forget_traced()


if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)


cdef Tensor virtual_tensor(Trace t, Layout* layout, int dtype, int kind):
    """A virtual tensor for an argument of the program. It takes over one reference to `layout`."""
    cdef Life* life
    cdef Tensor y = shell()
    life = t.new_life(layout.size * itemsize(dtype))
    fill(y, new_virtual(life, OTHER), layout, dtype)
    life.storage = t.new_storage(kind, None, None, <size_t>life)
    (<Storage>t.storages[life.storage]).lives.append(life.number)
    return y


cdef void* allocate_virtual(size_t nbytes, int category) except NULL:
    return new_virtual(trace_of(flags()).new_life(nbytes), category)


cdef int make_zeros(void* buffer, size_t nbytes) except -1:
    """Give virtual memory to a buffer of zeros that the program made, and real memory to one from outside."""
    cdef Flags* f = flags()
    cdef Trace t = trace_of(f)
    cdef Buffer* b = <Buffer*>buffer
    if b.link.trace != <void*>t:
        f.values += 1
        try: return make(b)
        finally: f.values -= 1
    b.link.trace = NULL
    make_virtual(b, t.new_life(nbytes))
    return zero_bytes(b, nbytes)


cdef int zero_bytes(Buffer* b, Py_ssize_t nbytes) except -1:
    """Let the program fill all bytes of `b` with zeros."""
    cdef Layout* l = lay.dense(1, &nbytes)
    cdef Array a
    a.data, a.layout, a.dtype = b.data, l, UINT8
    try: return trace_zeros(a, b)
    finally: lay.decref(l)


late_bound.allocate_virtual = <allocate_virtual_t>allocate_virtual
late_bound.make_virtual = <make_virtual_t>make_zeros
