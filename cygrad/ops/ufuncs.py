"""NumPy's ufuncs on tensors. If the left operand is an array (a + x, a < x, a @ x), Python calls NumPy's ufunc, which
calls array_ufunc().

The ufuncs of Python's operators run cygrad's operations, with gradients. A ufunc that writes to an array (a += x) is
computed by NumPy on the tensor's memory. Any other raises an error that names cygrad's function, because the gradient
would be lost.

Another function of NumPy (np.where, np.linalg.norm) computes with the tensor's array. Where a gradient would be lost,
array_function() makes the error name cygrad's function."""

import sys

import numpy as np

from cygrad.core.answers import REFUSED, counterpart, of_numpy
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import LOST
from cygrad.ops.elementwise import compare, elementwise
from cygrad.ops.linalg import linalg
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
FUNCTIONS |= {np.rint: "round", np.fabs: "abs"}
SCIPY = {name: name for name in ("cbrt", "erf", "erfc", "exp2", "expm1", "log1p", "round", "xlogy")} | {
    "expit": "sigmoid", "gammaln": "lgamma", "log_expit": "logsigmoid", "psi": "digamma"}


def scalar(x):
    """Undo what NumPy does before it compares: np.float64(2.1) < x makes an array of the scalar, which is not weak."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


def array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """NumPy's protocol: called if an argument of a ufunc is a tensor."""
    module, letters = module_of(ufunc), "xyzwv"[:ufunc.nin]
    if method == "__call__":
        if out is None and not options and ufunc in OPERATORS:
            if ufunc in COMPARISONS: inputs = map(scalar, inputs)
            return OPERATORS[ufunc](*inputs)
        if out is not None and all(isinstance(a, np.ndarray) for a in out):
            return ufunc(*[np.asarray(x) if isinstance(x, Tensor) else x for x in inputs], out=out, **options)
    name = ".".join(filter(None, (module, ufunc.__name__, method.removeprefix("__call__"))))
    if module is None:
        raise TypeError(f"the ufunc {name} {REFUSED}: pass x.detach().numpy() for an array without a gradient")
    ours = None
    if method != "__call__": letters = "x"
    else: ours = SCIPY.get(ufunc.__name__) if module == "scipy.special" else FUNCTIONS.get(ufunc)
    call = f"cygrad.{ours}({', '.join(letters)}), or " if ours else ""
    lent = ", ".join(f"{x}.detach().numpy()" for x in letters)
    raise TypeError(f"{name} {REFUSED}: call {call}{name}({lent}) for an array without a gradient")


def module_of(ufunc):
    """The module that has a ufunc under its name: "numpy", "scipy.special" or None."""
    return next((module for module in ("numpy", "scipy.special")
                 if getattr(sys.modules.get(module), ufunc.__name__, None) is ufunc), None)


def array_function(self, function, types, args, kwargs):
    """NumPy's protocol: called if an argument of a function that is no ufunc is a tensor, also one in a list."""
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types): return NotImplemented
    try: return function._implementation(*args, **kwargs)
    except (TypeError, RuntimeError) as e:
        name, message = f"{function.__module__}.{function.__name__}".removeprefix("numpy."), str(e)
        if REFUSED in message: raise TypeError(of_numpy(name)) from None        # it calls a ufunc or method
        if LOST not in message: raise
        ours = counterpart(name)
        call = f", or call cygrad.{ours}, which takes tensors" if ours else ""
        raise RuntimeError(f"numpy.{name} of a tensor that gradients flow through, while recording: {LOST}; use "
                           f"detach() first, or pause() the recording{call}") from None
