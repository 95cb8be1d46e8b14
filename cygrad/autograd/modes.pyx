"""The scopes: record, pause, train_mode, predict_mode, no_grad, enable_grad. Each sets one or both flags of the thread,
gives back on exit exactly what it found, and decorates functions, generators and coroutines."""

import functools

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad.core.tape cimport Tape
from cygrad.core.modes cimport Flags, flags

from cygrad.core.errors import described

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    LEAVE = -1              # a flag that the scope does not touch


cdef void set_tape(Flags* f, Tape tape) noexcept:
    """Let `tape` (or None) be the thread's. The thread owns a count on it: a scope may die, or be left by another
    thread, while it is open here."""
    cdef void* before = f.tape
    if tape is not None: Py_INCREF(tape)
    f.tape = <void*>tape if tape is not None else NULL
    Py_XDECREF(<PyObject*>before)


cdef class Scope:
    """A scope of the recording and training flags; it may be entered again, nested or in sequence."""
    cdef int recording, training
    cdef bint opens_tape
    cdef list found         # what each entry found, the innermost last: (thread, recording, training, tape, own tape)
    cdef object __weakref__

    def __enter__(self):
        cdef Flags* f = flags()
        cdef Tape tape = None
        cdef Tape before = <Tape>f.tape if f.tape != NULL else None
        if self.opens_tape: tape = Tape()
        if self.found is None: self.found = []
        self.found.append((PyThread_get_thread_ident(), f.recording, f.training, before, tape))
        if tape is not None: set_tape(f, tape)
        if self.recording != LEAVE: f.recording = self.recording
        if self.training != LEAVE: f.training = self.training
        return tape

    def __exit__(self, *_):
        cdef Flags* f = flags()
        cdef Tape before
        cdef unsigned long thread = PyThread_get_thread_ident()
        cdef Py_ssize_t i = len(self.found or ()) - 1
        while i >= 0 and <unsigned long>self.found[i][0] != thread: i -= 1     # (another thread's entry is its own)
        if i < 0: raise RuntimeError("a scope was left that this thread has not entered")
        _, recording, training, before, tape = self.found.pop(i)
        if tape is not None: set_tape(f, before)
        if self.recording != LEAVE: f.recording = recording
        if self.training != LEAVE: f.training = training

    def __call__(self, f):
        """Decorate: the body runs in this scope and resumes with the flags that it was suspended with."""
        return decorate(self, f)


cdef Scope scope(int recording, int training, bint opens_tape):
    cdef Scope s = Scope.__new__(Scope)
    s.recording, s.training, s.opens_tape = recording, training, opens_tape
    return s


cdef int flag(value, str name) except -2:
    """None leaves a flag; True and False set it. Raises TypeError for anything else."""
    if value is None: return LEAVE
    if value is not True and value is not False:
        raise TypeError(f"{name} is True, False or None (leave it), got {described(value)}")
    return value


cdef object decorated(Scope s, f):
    """The scope itself, or, where it stands bare over a function, that function in the scope."""
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
    """A generator, coroutine or asynchronous generator whose every step runs under flags of its own."""

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
    """The flags that a body has which starts in the scope `s`, from where we are."""
    cdef Flags* f = flags()
    cdef Suspended out = Suspended.__new__(Suspended)
    _tape = s.__enter__()                           # alive until the flags have it
    out.recording, out.training = f.recording, f.training
    out.tape = <Tape>f.tape if f.tape != NULL else None
    s.__exit__()
    return out


def decorate(Scope s, f):
    import inspect                                  # 14 ms, for those who decorate

    if not callable(f): raise TypeError(f"a scope decorates functions, got {described(f)}")
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
        with s: return f(*args, **kwargs)
    return function


def record(train_mode=True):
    """Record operations, in train mode (False: in predict mode; None: in the mode that is). `as` gives the tape:
    `.nodes` and `.saved_bytes` say what the graph recorded in it holds right now."""
    if callable(train_mode): return decorate(scope(True, True, True), train_mode)
    return scope(True, flag(train_mode, "train_mode"), True)


def pause(train_mode=False):
    """Do not record, in predict mode (True: in train mode; None: in the mode that is)."""
    if callable(train_mode): return decorate(scope(False, False, False), train_mode)
    return scope(False, flag(train_mode, "train_mode"), False)


def train_mode(f=None):
    """Train mode; recording is left as it is."""
    return decorated(scope(LEAVE, True, False), f)


def predict_mode(f=None):
    """Predict mode; recording is left as it is."""
    return decorated(scope(LEAVE, False, False), f)


def no_grad(f=None):
    """Do not record; the mode is left as it is."""
    return decorated(scope(False, LEAVE, False), f)


def enable_grad(f=None):
    """Record; the mode is left as it is."""
    return decorated(scope(True, LEAVE, False), f)
