"""Attributes: the arguments of an operation other than its inputs, as named fields.

A subclass declares its fields as `cdef readonly` and takes them, in that order, in `__cinit__`. The fields never change
afterwards. Fields that are not readonly are derived from the others, for kernels that run without the GIL. The public
function of the operator checks the values. If every call of an operator makes such an object, a C function makes it by
`__new__` without arguments and sets the fields, since passing the arguments of a Python call takes several times as
long as making the object."""


cdef class Attributes:
    """The base class: equality, hash, printing and pickling by the readonly fields."""

    def fields(self):
        """A dict of the fields, in the order in which they were declared."""
        return {name: getattr(self, name) for cls in reversed(type(self).__mro__) for name, value in vars(cls).items()
                if type(value).__name__ in ("getset_descriptor", "member_descriptor") and not name.startswith("_")}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in self.fields().items()])})"

    def __eq__(self, other):
        return type(self) is type(other) and self.fields() == other.fields()

    def __hash__(self):
        return hash((type(self), *self.fields().values()))

    def __reduce__(self):
        return type(self), tuple(self.fields().values())
