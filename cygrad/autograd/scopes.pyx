"""Scopes that change how tensors are saved and how gradients are stored: GradientCollector, detect_anomaly,
saved_tensors_hooks and disable_saved_tensors_hooks. Each acts on the thread that opened it."""

cimport cython
from cygrad.core.graph.packed cimport Packing, set_packing
from cygrad.core.graph.packing cimport HookPacking
from cygrad.core.graph.trace cimport lists_calls, refuse_trace, set_mode_scope
from cygrad.core.thread_state cimport FORWARD, Flags, flags

from _thread import _local as local

from cygrad.autograd.passes import backward
from cygrad.autograd.variables import clear_leaf
from cygrad.core.backward.deposit import Collected, open_collected
from cygrad.core.errors import described

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class GradientCollector:
    """`with GradientCollector() as gc: ...; gc.backward(loss)`: a scope that records in train mode and accumulates
    gradients. Inside it, the first gradient of a variable overwrites .grad and those of later backward calls are added
    to it, for grad_req "write" and "add" alike; "null" stores none. Only one can be open in a thread: opening another
    raises RuntimeError."""
    cdef object collected
    cdef int recording, training
    cdef bint open
    cdef unsigned long thread

    def __cinit__(self):
        check_none_open()

    @cython.embedsignature.format("c")
    def __init__(self):                             # (without it Cython takes any arguments)
        pass

    def __enter__(self):
        cdef Flags* f = flags()
        check_none_open()
        self.collected = Collected()
        self.recording, self.training, self.thread = f.recording, f.training, PyThread_get_thread_ident()
        open_collected(self.collected)
        f.recording = f.training = True
        set_mode_scope(f, 1)
        self.open = True
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        self.leave()

    def close(self):
        """Close the scope and restore recording and training. Further calls do nothing. Raises RuntimeError in a thread
        other than the one that opened it."""
        self.leave()

    cdef int leave(self) except -1:
        cdef Flags* f = flags()
        if not self.open: return 0
        if self.thread != PyThread_get_thread_ident():
            raise RuntimeError("GradientCollector: it was opened in another thread, and only that thread can close it")
        f.recording, f.training = self.recording, self.training
        set_mode_scope(f, -1)
        self.open = False
        open_collected(None)

    def __dealloc__(self):
        if self.open: self.collected.abandoned = True       # it stays in effect until another one is opened

    def backward(self, outputs, gradients=None, retain_graph=None, *, create_graph=False, inputs=None):
        """Compute gradients as cygrad.backward does, accumulated by this scope. Raises RuntimeError if it is not
        open."""
        if not self.open or self.thread != PyThread_get_thread_ident():
            raise RuntimeError("GradientCollector.backward: not open in this thread; call it inside the with block")
        backward(outputs, gradients, retain_graph, create_graph=create_graph, inputs=inputs)

    def zero_gradients(self):
        """Set the gradients accumulated so far to zeros, including NaN. Later gradients are added to these."""
        if self.collected is None: return
        for leaf in self.collected.leaves: clear_leaf(leaf)


cdef int check_none_open() except -1:
    cdef Flags* f = flags()
    if f.collector != NULL and not (<object>f.collector).abandoned:
        raise RuntimeError("GradientCollector: another one is open in this thread; close it first, or call its "
                           "backward several times")


@cython.final
@cython.no_gc_clear
cdef class ThreadEntry:
    """One entry into a scope, with the state to restore."""
    cdef ThreadEntry outer        # the previous entry, of any thread
    cdef unsigned long thread
    cdef Packing pack
    cdef object message


cdef class Entered:
    """A scope of the thread that enters it. It can be entered again, nested or in sequence."""
    cdef ThreadEntry last

    cdef ThreadEntry entry(self):
        """A new entry of this thread, for push()."""
        cdef ThreadEntry e = ThreadEntry.__new__(ThreadEntry)
        e.thread = PyThread_get_thread_ident()
        return e

    cdef void push(self, ThreadEntry e) noexcept:
        e.outer = self.last
        self.last = e

    cdef ThreadEntry pop(self):
        """Remove and return this thread's last entry, or return None if it has none. It allocates nothing."""
        cdef ThreadEntry e = self.last, inner = None
        cdef unsigned long thread = PyThread_get_thread_ident()
        while e is not None and e.thread != thread: inner, e = e, e.outer
        if e is None: return None
        if inner is None: self.last = e.outer
        else: inner.outer = e.outer
        return e


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class detect_anomaly(Entered):
    """A scope in which each node stores the line that recorded it, and backward raises RuntimeError at the first
    gradient formula that returns NaN for gradients without NaN. With forward=True, so does each operation that returns
    NaN for operands without NaN. The error names the operation and the line. It is slow, because every gradient, and
    every result, is searched."""

    cdef int step

    @cython.embedsignature.format("c")
    def __init__(self, bint forward=False):
        self.step = 1 + FORWARD * forward

    def __enter__(self):
        self.push(self.entry())
        flags().inspecting += self.step
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.pop() is None: raise RuntimeError("detect_anomaly: this scope is not open, so it cannot be closed")
        flags().inspecting -= self.step


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class saved_tensors_hooks(Entered):
    """A scope in which each tensor that an operation saves for backward is passed to `pack(tensor)`, and the object
    that `pack` returns is saved instead. When backward needs the tensor, `unpack(object)` must return one of the same
    shape and dtype. If the tensor is written in place after packing, backward still raises InplaceError. Scopes nest,
    and the innermost one applies. Raises TypeError unless both are functions, RuntimeError inside of
    disable_saved_tensors_hooks."""
    cdef HookPacking hooks

    @cython.embedsignature.format("c")
    def __init__(self, pack, unpack):
        if not callable(pack) or not callable(unpack):
            raise TypeError(f"saved_tensors_hooks takes two functions, pack and unpack, got {type(pack).__name__} and "
                            f"{type(unpack).__name__}")
        self.hooks = HookPacking(pack, unpack)

    def __enter__(self):
        cdef Flags* f = flags()
        cdef ThreadEntry e = self.entry()
        if lists_calls(): refuse_trace("saved_tensors_hooks")
        refuse_disabled()
        e.pack = <Packing>f.pack if f.pack != NULL else None
        self.push(e)
        set_packing(f, self.hooks)
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        cdef ThreadEntry e = self.pop()
        if e is None: raise RuntimeError("saved_tensors_hooks: this scope is not open, so it cannot be closed")
        set_packing(flags(), e.pack)


disabled = local()                                  # .message: of the innermost disable_saved_tensors_hooks, or None


cdef int refuse_disabled() except -1:
    """Raise RuntimeError with the message of the innermost open disable_saved_tensors_hooks."""
    message = getattr(disabled, "message", None)
    if message is not None: raise RuntimeError(message)
    return 0


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class disable_saved_tensors_hooks(Entered):
    """A scope in which saved_tensors_hooks raises RuntimeError with `message`, as this does where such hooks are open.
    Use it around code that relies on what nodes save. Scopes nest, and the innermost message applies. offload, budget
    and checkpoint are not affected. Raises TypeError unless `message` is a string."""
    cdef str message

    @cython.embedsignature.format("c")
    def __init__(self, message):
        if not isinstance(message, str):
            raise TypeError(f"disable_saved_tensors_hooks takes the message of an error, got {described(message)}")
        self.message = message

    def __enter__(self):
        cdef Flags* f = flags()
        cdef ThreadEntry e = self.entry()
        if f.pack != NULL and isinstance(<object>f.pack, HookPacking): raise RuntimeError(self.message)
        e.message = getattr(disabled, "message", None)
        disabled.message = self.message
        self.push(e)
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        cdef ThreadEntry e = self.pop()
        if e is None: raise RuntimeError("disable_saved_tensors_hooks: this scope is not open, so it cannot be closed")
        disabled.message = e.message
