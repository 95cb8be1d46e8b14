"""Functions that are made of operators: their errors name the function that was called, not an operator inside it."""

import re
from functools import wraps

from cygrad.core.graph.trace cimport Trace, trace_of
from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.thread_state cimport flags
from cygrad.kernels.array cimport Layout

# The name at the start of a message, before what the message says of it.
FIRST = r"([a-z][a-z0-9_.]*)(?=: | in place: | is not | needs | takes | cannot )"
RENAMED = ValueError, TypeError, IndexError, OverflowError


cdef int rename(error, str name, str own=None) except -1:
    """Put `name` in place of the operator or function, other than `own`, that the message of `error` begins with."""
    if not isinstance(error, RENAMED) or len(error.args) != 1 or not isinstance(error.args[0], str): return 0
    found = re.match(FIRST, error.args[0])
    if found is not None and found[1] in late_bound.names and found[1] != own:
        error.args = (name + error.args[0][found.end():],)


cdef int check_broadcast(str name, Tensor x, Tensor y, Tensor z=None) except -1:
    """Raise ValueError if the shapes of an operation on whole tensors do not match."""
    cdef Layout* both = lay.broadcast(name, x.layout, y.layout)
    try:
        if z is not None: lay.decref(lay.broadcast(name, both, z.layout))
    finally:
        lay.decref(both)


def composed(function, str name=None):
    """Decorate a public function that is made of operators. Errors of these then begin with its name (or `name`), in
    a program too."""
    name = name or function.__name__

    @wraps(function)
    def call(*args, **kwargs):
        cdef Trace trace = trace_of(flags())
        cdef str outer
        if trace is not None:
            outer = trace.within
            trace.within = outer or name
        try:
            return function(*args, **kwargs)
        except RENAMED as e:
            rename(e, name)
            raise
        finally:
            if trace is not None: trace.within = outer

    return call
