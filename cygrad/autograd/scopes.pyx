"""Scopes that change how operations are kept and how gradients are taken: GradientCollector, detect_anomaly,
saved_tensors_hooks. Each belongs to the thread that opened it."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF

from cygrad.core.thread_state cimport Flags, flags

from cygrad.autograd.passes import backward
from cygrad.autograd.variables import clear_leaf
from cygrad.core.backward.deposit import Collected, open_collected

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class GradientCollector:
    """`with GradientCollector() as gc: ...; gc.backward(loss)`: a scope that records in train mode and takes gradients
    in its own way: the first that reaches a variable inside it overwrites .grad, and those of further backward calls
    are added, whether the variable says "write" or "add" ("null" takes none). One may be open in a thread."""
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
        self.open = True
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        self.leave()

    def close(self):
        """End collecting; recording and training are what they were. A second time is harmless. Raises RuntimeError in
        another thread than the one that opened it."""
        self.leave()

    cdef int leave(self) except -1:
        cdef Flags* f = flags()
        if not self.open: return 0
        if self.thread != PyThread_get_thread_ident():
            raise RuntimeError("GradientCollector: it was opened in another thread, which alone can close it")
        f.recording, f.training = self.recording, self.training
        self.open = False
        open_collected(None)
        return 0

    def __dealloc__(self):
        if self.open: self.collected.abandoned = True       # it collects on until another one is opened

    def backward(self, outputs, gradients=None, retain_graph=None, *, create_graph=False, inputs=None):
        """Compute gradients as cygrad.backward does, collected by this scope. Raises RuntimeError when it is closed."""
        if not self.open or self.thread != PyThread_get_thread_ident():
            raise RuntimeError("GradientCollector.backward: not open in this thread; call it inside the with block")
        backward(outputs, gradients, retain_graph, create_graph=create_graph, inputs=inputs)

    def zero_gradients(self):
        """Set the gradients that were collected so far to zeros, NaN too; the next ones are added to those."""
        if self.collected is None: return
        for leaf in self.collected.leaves: clear_leaf(leaf)


cdef int check_none_open() except -1:
    cdef Flags* f = flags()
    if f.collector != NULL and not (<object>f.collector).abandoned:
        raise RuntimeError("GradientCollector: another one is open in this thread; close it first, or call its "
                           "backward several times")
    return 0


@cython.final
@cython.no_gc_clear
cdef class ThreadEntry:
    """One entry into a scope, and what it found."""
    cdef ThreadEntry outer        # the entry before it, of any thread
    cdef unsigned long thread
    cdef object pack


cdef class Entered:
    """A scope of the thread that enters it, which may be entered again, nested or in sequence."""
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
        """This thread's last entry, taken out; None: it has none. Asks for no memory."""
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
    """A scope in which nodes know the line that recorded them, and a backward raises RuntimeError at the first NaN that
    a gradient formula makes of gradients without one, naming operation and line. Slow: each gradient is searched."""

    @cython.embedsignature.format("c")
    def __init__(self):                             # (without it Cython takes any arguments)
        pass

    def __enter__(self):
        self.push(self.entry())
        flags().anomaly += 1
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        if self.pop() is None: raise RuntimeError("detect_anomaly: this scope is not open, it cannot be left")
        flags().anomaly -= 1


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class saved_tensors_hooks(Entered):
    """A scope in which each tensor that an operation keeps for backward is given to `pack(tensor)`, and what that
    returns is kept in its place; backward gets the tensor back by `unpack`, of the same shape and dtype. Memory that
    was written to after it was packed still raises InplaceError. Scopes nest, the innermost one has its way.

    Raises TypeError unless both are functions."""
    cdef tuple hooks

    @cython.embedsignature.format("c")
    def __init__(self, pack, unpack):
        if not callable(pack) or not callable(unpack):
            raise TypeError(f"saved_tensors_hooks wants two functions, pack and unpack, got {type(pack).__name__} and "
                            f"{type(unpack).__name__}")
        self.hooks = (pack, unpack)

    def __enter__(self):
        cdef Flags* f = flags()
        cdef ThreadEntry e = self.entry()
        e.pack = <object>f.pack if f.pack != NULL else None
        self.push(e)
        set_pack(f, self.hooks)
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        cdef ThreadEntry e = self.pop()
        if e is None: raise RuntimeError("saved_tensors_hooks: this scope is not open, it cannot be left")
        set_pack(flags(), e.pack)


cdef void set_pack(Flags* f, object hooks) noexcept:
    """Let `hooks`, or None, be the thread's, which counts them: a scope may die without having been left."""
    cdef void* before = f.pack
    Py_XINCREF(<PyObject*>hooks if hooks is not None else NULL)
    f.pack = <void*>hooks if hooks is not None else NULL
    Py_XDECREF(<PyObject*>before)
