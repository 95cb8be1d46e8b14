"""Operators: one class each in the file of its family, and one row each in the table. Importing this package binds them
to the core."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core.answers import TENSOR, attributes
from cygrad.core.graph.tensor import Tensor
from cygrad.core.late_bound import bind, bind_methods
from cygrad.ops.elementwise import compare
from cygrad.ops.elementwise.elementwise import pow
from cygrad.ops.shapes import shape, slices
from cygrad.ops.reductions import reduce
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.layers import gradient
from cygrad.ops.table import COMPOSED, ROWS, TABLE, Row
from cygrad.ops.ufuncs import array_function, array_namespace, array_ufunc, device, to_device

__all__ = ["COMPOSED", "ROWS", "TABLE", "Row"]

loaded = [row for row in TABLE if not row.late]
operators = {row.operator.name: row.operator for row in loaded}
bind(
    operators=operators | {"assign": slices.OPERATORS["assign"]},
    names=frozenset([*ROWS, *(name for names in COMPOSED.values() for name in names), "linalg.norm"]),
    **{name: operators[name] for name in ("add", "sub", "mul", "div", "neg", "abs", "bitwise_and", "bitwise_or",
                                          "bitwise_xor", "bitwise_not")},
    comparisons=compare.COMPARISONS,
    matmul=matmul,
    pow=pow,
    getitem=slices.getitem,
    setitem=slices.setitem,
    sum_to=reduce.sum_to,
    locally_constant=gradient.locally_constant,
)
bind_methods(
    Tensor,
    **{name: row.function for row in loaded for name in row.methods},
    copy_=slices.copy_,
    fill_=slices.fill_,
    flatten=shape.flatten,
    ravel=shape.flatten,
    swapaxes=shape.swapaxes,
    float=shape.single,
    double=shape.double,
    cpu=shape.cpu,
    T=property(shape.transpose, doc="The tensor with its axes reversed: a view."),
    mT=property(shape.matrix_transpose, doc="The matrix, or each of a stack of them, transposed: a view."),
    __array_ufunc__=array_ufunc, __array_function__=array_function, __array_namespace__=array_namespace,
    device=property(device, doc="The device of the memory: always \"cpu\"."), to_device=to_device,
    **attributes("tensor", TENSOR),
)


def __dir__(): return __all__
