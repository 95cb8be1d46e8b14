"""Attributes: the arguments of an operation other than its inputs, as named fields.

A subclass declares its fields as `cdef readonly` and takes them, in that order, in `__cinit__`. The fields never change
afterwards. Fields that are not readonly are derived from the others, for kernels that run without the GIL. The public
function of the operator checks the values. If every call of an operator makes such an object, a C function makes it by
`__new__` without arguments and sets the fields, since passing the arguments of a Python call takes several times as
long as making the object.

The public function makes equal attributes again from `arguments()`, in which a net stores an operation. Where the
fields of a class are not arguments of the function, it overrides `keywords`. Where the operator decides what they are,
or in which row, it overrides Operator.row_of."""

cimport cython

import numpy as np

from cygrad.core.errors import described


MAX_DEPTH = 8               # most tuples inside each other in an argument


def plain(value, int depth=0):
    """`value` as None, a bool, an int, a float, a string, Ellipsis, a slice or a tuple of these: what a text file can
    hold. A dtype becomes its name, a NumPy number a Python number. Raises TypeError for anything else, ValueError for
    more than MAX_DEPTH levels of tuples."""
    if depth > MAX_DEPTH:
        raise ValueError(f"an argument of an operation is a tuple of more than {MAX_DEPTH} levels; wanted a flat one")
    if value is None or value is Ellipsis or type(value) in (bool, int, float, str): return value
    if isinstance(value, (tuple, list)): return tuple([plain(v, depth + 1) for v in value])
    if isinstance(value, slice): return slice(*[plain(v, depth + 1) for v in (value.start, value.stop, value.step)])
    if isinstance(value, np.dtype): return value.name
    if isinstance(value, np.generic): return plain(value.item())
    for kind in (int, float, str):
        if isinstance(value, kind): return kind(value)
    raise TypeError(f"an argument of an operation must be a number, a string, None, ..., a slice, a dtype or a tuple "
                    f"of these, got {described(value)}")


@cython.binding(False)
@cython.embedsignature.format("clinic")
cdef class Attributes:
    """The base class: equality, hash, printing and pickling by the readonly fields."""

    def fields(self):
        """A dict of the fields, in the order in which they were declared."""
        return {name: getattr(self, name) for cls in reversed(type(self).__mro__) for name, value in vars(cls).items()
                if type(value).__name__ in ("getset_descriptor", "member_descriptor") and not name.startswith("_")}

    def arguments(self):
        """A dict of keyword arguments with which the public function makes equal attributes from the same inputs. What
        the function does not take, such as fields that it derives from the inputs, may be in it."""
        return self.keywords()

    cdef dict keywords(self):
        return self.fields()

    def __repr__(self):
        return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in self.fields().items()])})"

    def __eq__(self, other):
        return type(self) is type(other) and self.fields() == other.fields()

    def __hash__(self):
        return hash((type(self), *self.fields().values()))

    def __reduce__(self):
        return type(self), tuple(self.fields().values())
