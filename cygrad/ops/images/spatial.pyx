"""What convolutions and pooling share: arguments with a number for each spatial dimension, images without a batch."""

import operator

from cygrad.core.graph.tensor cimport Tensor, ensure_tensor

from cygrad.core.errors import described
from cygrad.ops.shapes.shape import expand_dims


cdef tuple read_sizes(str name, str what, value, int nd, Py_ssize_t least):
    """An argument that is an integer for all of `nd` dimensions, or a sequence of one for each, as a tuple. Raises
    TypeError for anything else and ValueError for a number below `least`."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(numbers) not in (1, nd):
        raise ValueError(f"{name}: {what} is {described(value)}; wanted an integer, or a tuple of {nd}")
    try:
        if any([isinstance(n, bool) for n in numbers]): raise TypeError
        numbers = tuple([operator.index(n) for n in numbers])
    except TypeError:
        raise TypeError(f"{name}: {what} must be an integer or a tuple of integers, got {described(value)}") from None
    for n in numbers:
        if n < least or n > 0x7fffffff:
            raise ValueError(f"{name}: {what} is {described(value)}; wanted numbers of at least {least} that fit into "
                             f"32 bits")
    return numbers if len(numbers) == nd else numbers * nd


cdef Tensor batched(str name, x, int nd):
    """`x` as (n, channels, `nd` spatial dimensions); n is 1 if x has no such dimension. Raises ValueError for another
    number of dimensions, and for a spatial size of 0."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim != nd + 2 and t.layout.ndim != nd + 1:
        sizes = ", ".join(["depth", "height", "width"][-nd:])
        raise ValueError(f"{name}: x is {t.shape}; wanted (n, channels, {sizes}), or the same without n")
    if 0 in t.shape[-nd:]: raise ValueError(f"{name}: x is {t.shape}; its spatial sizes must be at least 1")
    return t if t.layout.ndim == nd + 2 else expand_dims(t, 0)
