"""r_ and c_, NumPy's objects that join what stands between their brackets."""

from typing import Any

import numpy as np

from cygrad.core.dtypes import get_default_dtype
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import arange, linspace
from cygrad.core.interop.numpy import asarray, tensor
from cygrad.ops.shapes.join import concat
from cygrad.ops.shapes.shape import permute, reshape

NUMBERS = bool, int, float


class Joiner:
    """Joins tensors, arrays, numbers and ranges along an axis, as numpy.r_ and numpy.c_ do: r_[x, y] along the first
    one, c_[x, y] vectors as columns. start:stop:step is arange(start, stop, step), or linspace(start, stop, n) if the
    step is n * 1j.

    A text before them, "axis,ndim,place", gives the axis, the least number of dimensions, and the place of the first
    dimension of those that have fewer; new dimensions have size 1. Raises ValueError for another text."""

    def __init__(self, axis: int, ndim: int, place: int) -> None:
        self.how = axis, ndim, place

    def __getitem__(self, key: Any) -> Tensor:
        parts = list(key) if isinstance(key, tuple) else [key]
        how = self.read(parts.pop(0)) if parts and isinstance(parts[0], str) else self.how
        if not parts: raise ValueError("r_ and c_ need something to join, got nothing between the brackets")
        numbers = [v for v in parts if isinstance(v, NUMBERS)]
        others = [v if isinstance(v, NUMBERS) else self.between(v) if isinstance(v, slice) else asarray(v)
                  for v in parts]
        dtype = self.dtype(numbers, [v.dtype for v in others if not isinstance(v, NUMBERS)])
        xs = [tensor(v, dtype) if isinstance(v, NUMBERS) else v for v in others]
        return concat([self.raised(x, *how[1:]) for x in xs], how[0])

    def read(self, text):
        """(axis, ndim, place) of a text, which can leave out the last ones."""
        try: given = [int(n) for n in text.split(",")]
        except ValueError: given = []
        if not 1 <= len(given) <= 3:
            raise ValueError(f"r_ and c_ take a text of one to three integers, \"axis,ndim,place\", got "
                             f"{described(text)}; there is no class of matrices")
        return (*given, *self.how[len(given):])

    def between(self, v):
        """The numbers of a range."""
        if v.stop is None: raise ValueError(f"r_ and c_: a range needs an end, as in start:stop, got {described(v)}")
        start, step = v.start or 0, 1 if v.step is None else v.step
        return linspace(start, v.stop, int(abs(step))) if isinstance(step, complex) else arange(start, v.stop, step)

    def dtype(self, numbers, dtypes):
        """The dtype of numbers beside tensors of these dtypes."""
        if not numbers or not dtypes: return tensor(numbers).dtype if numbers else None
        common = np.result_type(*dtypes, *numbers)
        return common if common.kind != "f" or "f" in [d.kind for d in dtypes] else get_default_dtype()

    def raised(self, x, ndim, place):
        """`x` with new dimensions, so that it has `ndim`: its first one goes to `place`."""
        new = ndim - x.ndim
        if new <= 0: return x
        first, order = place if place >= 0 else place + new + 1, range(ndim)
        return permute(reshape(x, (1,) * new + x.shape), (*order[:first], *order[new:], *order[first:new]))


r_, c_ = Joiner(0, 1, -1), Joiner(-1, 2, 0)
