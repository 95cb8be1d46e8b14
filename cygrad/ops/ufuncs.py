"""NumPy's ufuncs on tensors. An array beside a tensor (a + x, a < x, a @ x) asks NumPy's ufunc first, which asks here.

Those that Python's operators mean are computed as cygrad's, with their gradient; a ufunc that writes into an array
(a += x) is NumPy's, on the tensor's memory; of any other the name to call is said, since a gradient would be lost."""

import numpy as np

from cygrad.core.graph.tensor import Tensor
from cygrad.ops import compare, elementwise, linalg
from cygrad.ops.table import TABLE

OPERATORS = {
    np.add: elementwise.add, np.subtract: elementwise.sub, np.multiply: elementwise.mul, np.divide: elementwise.div,
    np.power: elementwise.pow, np.matmul: linalg.matmul,
    np.less: compare.less, np.less_equal: compare.less_equal, np.equal: compare.equal,
    np.not_equal: compare.not_equal, np.greater: compare.greater, np.greater_equal: compare.greater_equal,
    np.bitwise_and: compare.bitwise_and, np.bitwise_or: compare.bitwise_or, np.bitwise_xor: compare.bitwise_xor,
}
COMPARISONS = {np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal}
FUNCTIONS = {ufunc: row.name for row in TABLE if row.public for name in (row.name, *row.aliases)
             if isinstance(ufunc := getattr(np, name, None), np.ufunc)}      # NumPy's of the same name


def scalar(x):
    """NumPy makes an array of its scalar before it compares (np.float64(2.1) < x), and a float64 array is not weak."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


def array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """NumPy's protocol: what a ufunc does with a tensor among its arguments."""
    said, letters = f"numpy.{ufunc.__name__}", "xyzw"[:ufunc.nin]
    if method == "__call__":
        if out is None and not options and ufunc in OPERATORS:
            if ufunc in COMPARISONS: inputs = map(scalar, inputs)
            return OPERATORS[ufunc](*inputs)
        if out is not None and all(isinstance(a, np.ndarray) for a in out):
            return ufunc(*[np.asarray(x) if isinstance(x, Tensor) else x for x in inputs], out=out, **options)
    else: said, letters = f"{said}.{method}", "x"
    ours = f"cygrad.{FUNCTIONS[ufunc]}({', '.join(letters)}), or " if len(letters) == ufunc.nin and ufunc in FUNCTIONS \
        else ""
    lent = ", ".join(f"{x}.detach().numpy()" for x in letters)
    raise TypeError(f"{said} does not take a tensor: call {ours}{said}({lent}) for an array without a gradient")
