"""Tensors that cannot be read: freed ones (freed.pyx) and those that wait for their shape (waiting.pyx).

A Tensor becomes, in place, an object of such a class, whose every use raises an error. So other tensors need no check.
To C code that still holds it, it is an empty tensor without memory: code that takes a tensor from Python and reads its
fields calls check_readable() first, or ensure_tensor(), which does."""

cimport cython
from cpython.object cimport PyObject_GenericGetAttr

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport Tensor

import cygrad.core.graph.cycles  # no-cython-lint: before the classes are made, which inherit what it sets in Tensor
from cygrad.core.late_bound import bind_methods

cdef Py_ssize_t zero = 0
EMPTY = lay.dense(1, &zero)


cdef int refuse(x, y=None) except -1:
    """Raise RuntimeError, because one of the two cannot be read."""
    if not isinstance(x, Unreadable): x = y
    raise RuntimeError(type(x).reason(x))


@cython.binding(False)
@cython.embedsignature.format("clinic")
@cython.no_gc
cdef class Unreadable(Tensor):
    """The base of tensors that cannot be read. Every use raises, except hashing and what a subclass allows. The class
    defines each of Python's slots, because the interpreter calls a slot without looking up an attribute."""

    allowed = frozenset({"__class__"})              # the attributes that can be read

    @staticmethod
    def reason(Tensor x):
        """Why it cannot be read, and what to do."""
        raise NotImplementedError

    def __getattribute__(self, name):
        if name not in type(self).allowed: refuse(self)
        return PyObject_GenericGetAttr(self, name)

    def __setattr__(self, name, value):
        refuse(self)

    def __delattr__(self, name):
        refuse(self)

    def __hash__(self):
        return Tensor.__hash__(self)

    def __getbuffer__(self, Py_buffer* view, int wanted):
        refuse(self)

    def __array_ufunc__(self, *_, **__):
        refuse(self)

    def __array_function__(self, *_, **__):
        refuse(self)

    def __dir__(self):
        refuse(self)

    def __add__(x, y):
        refuse(x, y)

    def __sub__(x, y):
        refuse(x, y)

    def __mul__(x, y):
        refuse(x, y)

    def __truediv__(x, y):
        refuse(x, y)

    def __matmul__(x, y):
        refuse(x, y)

    def __mod__(x, y):
        refuse(x, y)

    def __floordiv__(x, y):
        refuse(x, y)

    def __divmod__(x, y):
        refuse(x, y)

    def __and__(x, y):
        refuse(x, y)

    def __or__(x, y):
        refuse(x, y)

    def __xor__(x, y):
        refuse(x, y)

    def __lshift__(x, y):
        refuse(x, y)

    def __rshift__(x, y):
        refuse(x, y)

    def __abs__(self):
        refuse(self)

    def __invert__(self):
        refuse(self)

    def __pow__(x, y, modulo):
        refuse(x, y)

    def __imatmul__(self, y):
        refuse(self)

    def __imod__(self, y):
        refuse(self)

    def __ifloordiv__(self, y):
        refuse(self)

    def __iand__(self, y):
        refuse(self)

    def __ior__(self, y):
        refuse(self)

    def __ixor__(self, y):
        refuse(self)

    def __ipow__(self, y):
        refuse(self)

    def __iadd__(self, y):
        refuse(self)

    def __isub__(self, y):
        refuse(self)

    def __imul__(self, y):
        refuse(self)

    def __itruediv__(self, y):
        refuse(self)

    def __richcmp__(self, y, int op):
        refuse(self)

    def __neg__(self):
        refuse(self)

    def __pos__(self):
        refuse(self)

    def __bool__(self):
        refuse(self)

    def __float__(self):
        refuse(self)

    def __int__(self):
        refuse(self)

    def __index__(self):
        refuse(self)

    def __len__(self):
        refuse(self)

    def __iter__(self):
        refuse(self)

    def __bytes__(self):
        refuse(self)

    def __copy__(self):
        refuse(self)

    def __getitem__(self, index):
        refuse(self)

    def __setitem__(self, index, value):
        refuse(self)

    def __delitem__(self, index):
        refuse(self)


bind_methods(Unreadable, __new__=staticmethod(Tensor.__new__))      # which raises
