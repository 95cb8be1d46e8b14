"""Operators: one class each in the file of its family, one row each in the table. Importing this plugs them in."""

import cygrad.bundles  # noqa: F401 (before anything compiled)
from cygrad.core.answers import TENSOR, attributes
from cygrad.core.graph import install, install_operators
from cygrad.ops import compare, elementwise, gradient, linalg, reduce, shape, slices
from cygrad.ops.table import ROWS, TABLE, Row
from cygrad.ops.ufuncs import array_ufunc

__all__ = ["ROWS", "TABLE", "Row"]

install_operators(
    **{row.operator.name: row.operator for row in TABLE},
    assign=slices.OPERATORS["assign"],
    matmul_function=linalg.matmul,
    pow_function=elementwise.pow,
    comparisons=compare.COMPARISONS,
    getitem_function=slices.getitem,
    setitem_function=slices.setitem,
    sum_to_function=reduce.sum_to,
    locally_constant_function=gradient.locally_constant,
)
install(
    **{name: row.function for row in TABLE for name in row.methods},
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
    __array_ufunc__=array_ufunc,
    **attributes("tensor", TENSOR),
)
