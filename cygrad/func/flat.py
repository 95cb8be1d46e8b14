"""Functions of containers as functions of one vector, for optimizers such as those of scipy.optimize."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cygrad.core.errors import described
from cygrad.core.interop.numpy import asarray
from cygrad.func.derivatives import floats, grad, value_and_grad
from cygrad.func.forward import jvp
from cygrad.func.jacobians import jacobian
from cygrad.func.trees import flatten


class Flat:
    """A function `fun` of a container of tensors such as `example`, as functions of a float64 vector of all of their
    elements. See scipy()."""

    def __init__(self, fun: Callable[[Any], Any], example: Any):
        leaves, build = flatten(example)
        wide = build([np.float64(x) if type(x) is float else x for x in leaves])
        tensors, self._build = floats("scipy", wide, "the example")
        self.fun, self._like = fun, [(x.shape, x.dtype) for x in tensors]
        self.size = sum(prod(shape) for shape, _ in self._like)
        self.x0 = self._joined(tensors)

    def _joined(self, tensors):
        if not tensors: return np.zeros(0)
        return np.concatenate([np.asarray(x.detach(), "float64").ravel() for x in tensors])

    def unflatten(self, x: npt.ArrayLike) -> Any:
        """The container of a vector `x` of shape (size,), in the dtypes of the example. Raises ValueError for another
        shape."""
        x = np.asarray(x, "float64")
        if x.shape != (self.size,):
            raise ValueError(f"scipy: x has shape {x.shape}, and the parameters have {self.size} elements: wanted "
                             f"{(self.size,)}")
        parts, at = [], 0
        for shape, dtype in self._like:
            parts.append(asarray(x[at:at + prod(shape)].astype(dtype).reshape(shape)))
            at += prod(shape)
        return self._build(parts)

    def value(self, x: npt.ArrayLike) -> Any:
        """The result at `x` as an array of float64, a vector if it has dimensions: for root and least_squares."""
        y = np.asarray(self.fun(self.unflatten(x)), "float64")
        return y.ravel() if y.ndim else float(y)

    def value_and_grad(self, x: npt.ArrayLike) -> tuple[float, npt.NDArray[np.float64]]:
        """(value, gradient) at `x` of a function that returns a number: for minimize(..., jac=True)."""
        y, g = value_and_grad(self.fun)(self.unflatten(x))
        return float(y), self._joined(flatten(g)[0])

    def jacobian(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The Jacobian of value() at `x`, of shape (elements of the result, size): for the argument jac."""
        leaves = flatten(jacobian(self.fun)(self.unflatten(x)))[0]
        parts = [np.asarray(j, "float64").reshape(prod(j.shape[:j.ndim - len(shape)]), prod(shape))
                 for j, (shape, _) in zip(leaves, self._like, strict=True)]
        return np.concatenate(parts, axis=1)

    def hvp(self, x: npt.ArrayLike, v: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The product of the Hessian at `x` and a vector `v`: for the argument hessp."""
        return self._joined(flatten(jvp(grad(self.fun), (self.unflatten(x),), (self.unflatten(v),))[1])[0])

    def hessian(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The Hessian at `x`, of shape (size, size): for the argument hess."""
        return np.stack([self.hvp(x, row) for row in np.eye(self.size)]) if self.size else np.zeros((0, 0))

    def __repr__(self):
        return f"Flat({described(self.fun)}, {self.size} elements)"


def scipy(fun: Callable[[Any], Any], example: Any) -> Flat:
    """`fun`, a function of one container of tensors such as `example`, as functions of a float64 vector:

        p = cg.func.scipy(loss, parameters)
        found = scipy.optimize.minimize(p.value_and_grad, p.x0, jac=True, hessp=p.hvp, method="trust-ncg")
        parameters = p.unflatten(found.x)

    p.x0 is the vector of the example. For root and least_squares pass p.value, and jac=p.jacobian; p.hessian is for
    the argument hess. SciPy needs arrays: these are, and results of grad() are not. The computation is in the dtypes of
    the example, and Python floats are float64, which is best for optimizers that search along lines."""
    return Flat(fun, example)
