"""A trace for memory.plan(), as a scope."""

cimport cython

from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.thread_state cimport flags
from cygrad.core.graph.calls cimport tensor_item
from cygrad.core.graph.trace cimport PLANNING, Trace, trace_of, traces
from cygrad.core.graph.tracing cimport begin_trace, end_trace
from cygrad.kernels.array cimport itemsize


def item(Tensor t):
    """What a trace lists for a tensor (core/graph/calls.pyx)."""
    return tensor_item(t)


def address(Tensor t):
    """That of the first element, also of a tensor in a trace."""
    return <size_t>t.buffer.data + t.layout.offset * itemsize(t.dtype)


def is_tracing():
    """Whether this thread traces."""
    return traces()


def set_source(source):
    """The steps that a program makes from here on have this `source`, if the thread traces."""
    cdef Trace t = trace_of(flags())
    if t is not None: t.source = source


def split_here():
    """Program.begin() stops here, if the thread traces, and Program.resume() begins here."""
    cdef Trace t = trace_of(flags())
    if t is not None: t.split = t.clock


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class planning:
    """`with planning():` traces the body: nothing is computed, and memory is counted but not allocated."""
    cdef Trace open         # or None

    def __enter__(self):
        self.open = begin_trace(PLANNING)

    def __exit__(self, *_):
        if self.open is None: raise RuntimeError("memory.plan: this scope is not open, so it cannot be closed")
        trace, self.open = self.open, None
        end_trace(trace)

    def __dealloc__(self):
        if self.open is not None: end_trace(self.open)
