"""The operator that is running and the line of the user's program that called it, for error messages and memory events.
An operation costs two stores for this; a query does the rest."""

import os
import sys
import warnings

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from cygrad.core.thread_state cimport Flags

from types import CodeType

from cygrad import bundles

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyFrameObject* PyEval_GetFrame()                        # borrowed; the two below return new references
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame)
    PyCodeObject* PyFrame_GetCode(PyFrameObject* frame)
    int PyFrame_GetLasti(PyFrameObject* frame)
    int PyCode_Addr2Line(PyCodeObject* code, int instruction)

cdef str PACKAGE = os.path.join(os.path.dirname(os.path.abspath(bundles.__file__)), "")
cdef tuple PROGRAMS = tuple([PACKAGE + name + os.sep for name in ("demo", "estimators")])   # user programs


cdef bint ours(str filename):
    """Whether a file belongs to the package, and not to one of its programs."""
    return filename.startswith(PACKAGE) and not filename.startswith(PROGRAMS)


cdef object nearest(int* instruction):
    """The code object of the innermost frame outside the package, and its current instruction; None if there is
    none."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef PyCodeObject* p
    if frame == NULL: return None
    Py_INCREF(<object>frame)
    while frame != NULL:
        p = PyFrame_GetCode(frame)
        code = <object><PyObject*>p
        Py_XDECREF(<PyObject*>p)
        if not ours(code.co_filename):
            instruction[0] = PyFrame_GetLasti(frame)
            Py_XDECREF(<PyObject*>frame)
            return code
        back = PyFrame_GetBack(frame)
        Py_XDECREF(<PyObject*>frame)
        frame = back
    return None


def line_of(code, int instruction):
    """The line number of an instruction of a code object. Raises TypeError for another object."""
    if not isinstance(code, CodeType): raise TypeError(f"line_of takes a code object, got {type(code).__name__}")
    return PyCode_Addr2Line(<PyCodeObject*>code, instruction)


cpdef tuple where():
    """(file name, line, function) of the innermost Python frame outside this package; ("", 0, "") if there is none."""
    cdef int instruction = 0
    code = nearest(&instruction)
    return ("", 0, "") if code is None else (code.co_filename, line_of(code, instruction), code.co_name)


cdef int warn_here(str text, category) except -1:
    """Warn at the line of the innermost Python frame outside this package, so that the filters of `warnings` apply to
    that line."""
    frame = sys._getframe()
    while frame is not None and ours(frame.f_code.co_filename): frame = frame.f_back
    if frame is None: frame = sys._getframe()
    names = frame.f_globals
    module = names.get("__name__") or "<string>"        # for None, Python drops the warning
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, module,
                           names.setdefault("__warningregistry__", {}))


cdef str doing(const Flags* f):
    """The name of what runs in this thread: "mul", "mul (backward)", another allocating call, or ""."""
    if f.node != NULL:
        name = (<object>f.node).name()
        return ".grad" if name == "leaf" else name + " (backward)"
    if f.op == NULL: return ""
    return <str>(<object>f.op) if isinstance(<object>f.op, str) else (<object>f.op).name
