"""NumPy's ufuncs on tensors. If the left operand is an array (a + x, a < x, a @ x), Python calls NumPy's ufunc, which
calls array_ufunc().

The ufuncs of Python's operators run cygrad's operations, with gradients. A ufunc that writes to an array (a += x) is
computed by NumPy on the tensor's memory. Any other raises an error that names cygrad's function, because the gradient
would be lost."""

import numpy as np

from cygrad.core.graph.tensor import Tensor
from cygrad.ops import compare, elementwise, linalg
from cygrad.ops.table import TABLE

OPERATORS = {
    np.add: elementwise.add, np.subtract: elementwise.sub, np.multiply: elementwise.mul, np.divide: elementwise.div,
    np.floor_divide: elementwise.floor_divide, np.remainder: elementwise.remainder,
    np.power: elementwise.pow, np.matmul: linalg.matmul,
    np.less: compare.less, np.less_equal: compare.less_equal, np.equal: compare.equal,
    np.not_equal: compare.not_equal, np.greater: compare.greater, np.greater_equal: compare.greater_equal,
    np.bitwise_and: compare.bitwise_and, np.bitwise_or: compare.bitwise_or, np.bitwise_xor: compare.bitwise_xor,
}
COMPARISONS = {np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal}
FUNCTIONS = {ufunc: row.name for row in TABLE if row.public for name in (row.name, *row.aliases)
             if isinstance(ufunc := getattr(np, name, None), np.ufunc)}      # the ufuncs of the same names


def scalar(x):
    """Undo what NumPy does before it compares: np.float64(2.1) < x makes an array of the scalar, which is not weak."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


def array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """NumPy's protocol: called if an argument of a ufunc is a tensor."""
    name, letters = f"numpy.{ufunc.__name__}", "xyzw"[:ufunc.nin]
    if method == "__call__":
        if out is None and not options and ufunc in OPERATORS:
            if ufunc in COMPARISONS: inputs = map(scalar, inputs)
            return OPERATORS[ufunc](*inputs)
        if out is not None and all(isinstance(a, np.ndarray) for a in out):
            return ufunc(*[np.asarray(x) if isinstance(x, Tensor) else x for x in inputs], out=out, **options)
    else: name, letters = f"{name}.{method}", "x"
    ours = f"cygrad.{FUNCTIONS[ufunc]}({', '.join(letters)}), or " if len(letters) == ufunc.nin and ufunc in FUNCTIONS \
        else ""
    lent = ", ".join(f"{x}.detach().numpy()" for x in letters)
    raise TypeError(f"{name} does not take a tensor: call {ours}{name}({lent}) for an array without a gradient")
