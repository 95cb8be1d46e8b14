"""The scopes record, pause, train_mode, predict_mode, no_grad, enable_grad, inference_mode and set_grad_enabled. Each
sets one or both flags of the thread, restores them on exit, and can decorate functions, generators and coroutines."""

import functools

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad.core.graph.tape cimport Tape
from cygrad.core.graph.trace cimport set_mode_scope
from cygrad.core.thread_state cimport Flags, flags

from cygrad.core.errors import described

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    LEAVE = -1              # the scope does not change this flag


cdef void set_tape(Flags* f, Tape tape) noexcept:
    """Make `tape` (or None) the thread's tape. The thread owns a reference to it, because a scope may be freed, or be
    left by another thread, while it is open here."""
    cdef void* before = f.tape
    if tape is not None: Py_INCREF(tape)
    f.tape = <void*>tape if tape is not None else NULL
    Py_XDECREF(<PyObject*>before)


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class ScopeEntry:
    """One entry into a scope, with the state to restore."""
    cdef ScopeEntry outer        # the previous entry, of any thread
    cdef unsigned long thread
    cdef int recording, training
    cdef Tape before, tape  # the thread's previous tape, and the one that the entry opened


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Scope:
    """A scope of the recording and training flags. It can be entered again, nested or in sequence."""
    cdef int recording, training
    cdef bint opens_tape
    cdef ScopeEntry found        # the last entry
    cdef object __weakref__

    cdef Tape enter(self):
        """Everything that can fail runs first, so that an exception leaves the flags unchanged."""
        cdef Flags* f = flags()
        cdef ScopeEntry e = ScopeEntry.__new__(ScopeEntry)
        if self.opens_tape: e.tape = Tape()
        e.thread, e.recording, e.training = PyThread_get_thread_ident(), f.recording, f.training
        e.before = <Tape>f.tape if f.tape != NULL else None
        e.outer = self.found
        self.found = e
        if e.tape is not None: set_tape(f, e.tape)
        if self.recording != LEAVE: f.recording = self.recording
        if self.training != LEAVE:
            f.training = self.training
            set_mode_scope(f, 1)
        return e.tape

    cdef int leave(self) except -1:
        """Leave without allocating, so that this works also when there is no memory."""
        cdef Flags* f = flags()
        cdef ScopeEntry e = self.found, inner = None
        cdef unsigned long thread = PyThread_get_thread_ident()
        while e is not None and e.thread != thread: inner, e = e, e.outer      # (skip entries of other threads)
        if e is None: raise RuntimeError("this thread exits a scope that it has not entered")
        if self.recording != LEAVE: f.recording = e.recording
        if self.training != LEAVE:
            f.training = e.training
            set_mode_scope(f, -1)
        if inner is None: self.found = e.outer
        else: inner.outer = e.outer
        if e.tape is not None: set_tape(f, e.before)

    def __enter__(self):
        return self.enter()

    def __exit__(self, kind=None, value=None, traceback=None):      # (*_ would allocate a tuple)
        self.leave()

    def __call__(self, f):
        """Decorate a function: its body runs in this scope. A generator or coroutine resumes with the flags that it had
        when it was suspended."""
        return decorate(self, f)


cdef Scope scope(int recording, int training, bint opens_tape):
    cdef Scope s = Scope.__new__(Scope)
    s.recording, s.training, s.opens_tape = recording, training, opens_tape
    return s


cdef int flag(value, str name) except -2:
    """The value of a flag: None leaves it unchanged, True and False set it. Raises TypeError for anything else."""
    if value is None: return LEAVE
    if value is not True and value is not False:
        raise TypeError(f"{name} must be True, False or None (unchanged), got {described(value)}")
    return value


cdef int on_or_off(value, str what) except -1:
    """The value of a flag that must be given. Raises TypeError for anything but True and False."""
    if value is not True and value is not False:
        raise TypeError(f"{what}: mode must be True or False, got {described(value)}")
    return value


cdef object decorated(Scope s, f):
    """The scope `s`, or, if it is used as a decorator without a call, the function `f` in it."""
    return s if f is None else decorate(s, f)


cdef class Suspended:
    """The flags of a generator or coroutine while it does not run."""
    cdef int recording, training
    cdef Tape tape

    cdef void swap(self) noexcept:
        """Exchange these flags with the thread's."""
        cdef Flags* f = flags()
        cdef Tape now = <Tape>f.tape if f.tape != NULL else None
        f.recording, self.recording = self.recording, f.recording
        f.training, self.training = self.training, f.training
        set_tape(f, self.tape)
        self.tape = now


class Resumed:
    """A generator, coroutine or asynchronous generator that runs every step with its own flags."""

    def __init__(self, suspended, body):
        self._flags = suspended
        self._body = body

    def _step(self, step, *args):
        cdef Suspended s = self._flags
        s.swap()
        try:
            return step(*args)
        finally:
            s.swap()

    def send(self, value):
        return self._step(self._body.send, value)

    def throw(self, *args):
        return self._step(self._body.throw, *args)

    def close(self):
        return self._step(self._body.close)

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        return self._step(self._body.send, None)


cdef Suspended entered(Scope s):
    """The flags of a body that starts in the scope `s`, opened from the thread's current flags."""
    cdef Flags* f = flags()
    cdef Suspended out = Suspended.__new__(Suspended)
    s.enter()
    out.recording, out.training = f.recording, f.training
    out.tape = <Tape>f.tape if f.tape != NULL else None
    s.leave()
    return out


def decorate(Scope s, f):
    import inspect                                  # takes 14 ms, so only decorating imports it

    if not callable(f): raise TypeError(f"a scope can decorate only functions, got {described(f)}")
    if inspect.isgeneratorfunction(f):
        @functools.wraps(f)
        def generator(*args, **kwargs):
            return (yield from Resumed(entered(s), f(*args, **kwargs)))
        return generator
    if inspect.iscoroutinefunction(f):
        @functools.wraps(f)
        async def coroutine(*args, **kwargs):
            return await Resumed(entered(s), f(*args, **kwargs))
        return coroutine
    if inspect.isasyncgenfunction(f):
        @functools.wraps(f)
        async def asynchronous(*args, **kwargs):
            body, flags_of_body = f(*args, **kwargs), entered(s)
            step = body.asend(None)
            try:
                while True:
                    value = await Resumed(flags_of_body, step)
                    try:
                        value = yield value
                    except GeneratorExit:
                        await Resumed(flags_of_body, body.aclose())
                        raise
                    except BaseException as e:
                        step = body.athrow(e)
                    else:
                        step = body.asend(value)
            except StopAsyncIteration:
                return
        return asynchronous

    @functools.wraps(f)
    def function(*args, **kwargs):
        s.enter()
        try:                                        # (a with statement would allocate a tuple for an exception)
            return f(*args, **kwargs)
        finally:
            s.leave()
    return function


def record(train_mode=True):
    """A scope that records operations in train mode (train_mode=False: in predict mode; None: in the current mode).
    `as` gives the tape: `.nodes` is the number of live operations recorded in it, `.saved_bytes` the bytes that they
    save. Raises TypeError for another value of train_mode."""
    if callable(train_mode): return decorate(scope(True, True, True), train_mode)
    return scope(True, flag(train_mode, "train_mode"), True)


def pause(train_mode=False):
    """A scope that does not record, in predict mode (train_mode=True: in train mode; None: in the current mode). Raises
    TypeError for another value of train_mode."""
    if callable(train_mode): return decorate(scope(False, False, False), train_mode)
    return scope(False, flag(train_mode, "train_mode"), False)


def train_mode(f=None):
    """A scope in train mode. It does not change recording."""
    return decorated(scope(LEAVE, True, False), f)


def predict_mode(f=None):
    """A scope in predict mode. It does not change recording."""
    return decorated(scope(LEAVE, False, False), f)


def no_grad(f=None):
    """A scope that does not record. It does not change the mode."""
    return decorated(scope(False, LEAVE, False), f)


def enable_grad(f=None):
    """A scope that records. It does not change the mode."""
    return decorated(scope(True, LEAVE, False), f)


def inference_mode(mode=True):
    """PyTorch's name for a scope that does not record (mode=False: one that records). It does not change the train
    mode. Its results are ordinary tensors, as those of no_grad. Raises TypeError for another value of mode."""
    if callable(mode): return decorate(scope(False, LEAVE, False), mode)
    return scope(not on_or_off(mode, "inference_mode"), LEAVE, False)


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class set_grad_enabled(Scope):
    """`set_grad_enabled(mode)` sets whether this thread records, at once: True or False. As a context manager it
    restores at the end what it found when it was made; as a decorator it changes only the calls of the function. It
    does not change the train mode. Raises TypeError for another value of mode."""
    cdef int before
    cdef bint pending           # it has set the flag, and no scope that restores it was entered

    @cython.embedsignature.format("c")
    def __init__(self, mode):
        self.recording, self.training = on_or_off(mode, "set_grad_enabled"), LEAVE
        self.before, self.pending = flags().recording, True
        flags().recording = self.recording

    cdef Tape enter(self):
        cdef bint pending = self.pending
        self.pending = False
        try: Scope.enter(self)
        except:
            if pending: flags().recording = self.before
            raise
        if pending: self.found.recording = self.before
        return None

    def __call__(self, f):
        """Decorate a function: its body runs with the flag. What was before holds around it."""
        if self.pending: flags().recording = self.before
        self.pending = False
        return decorate(self, f)
