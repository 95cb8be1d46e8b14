"""Late binding: functions and objects that the core uses and a higher module provides (late_bound.pxd)."""

from cpython.object cimport PyObject
from cpython.type cimport PyType_Modified

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict


cdef class LateBound:
    pass


late_bound = LateBound()


def bind(**fields):
    """Bind fields of LateBound. Raises AttributeError for a name that it does not have."""
    for name, value in fields.items(): setattr(late_bound, name, value)


def namespace():
    """cygrad itself, with its public names; None while it is imported."""
    return late_bound.namespace


def bind_methods(type cls, **attributes):
    """Add methods and properties to a compiled class."""
    for name, value in attributes.items():
        (<dict>(<object>(<PyTypeObject*>cls).tp_dict))[name] = value
    PyType_Modified(cls)
