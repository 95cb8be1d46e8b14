"""Angles in degrees and radians, made of operators."""

from cygrad.core.graph.tensor cimport ensure_tensor

from cygrad.core.execute.composed import composed
from cygrad.ops.elementwise.elementwise import mul

cdef double DEGREE = 0.017453292519943295           # pi / 180
cdef double RADIAN = 57.29577951308232              # 180 / pi


@composed
def deg2rad(x: Data) -> Tensor:
    """x degrees in radians, elementwise: x pi / 180."""
    return mul(ensure_tensor(x), DEGREE)


@composed
def rad2deg(x: Data) -> Tensor:
    """x radians in degrees, elementwise: x 180 / pi."""
    return mul(ensure_tensor(x), RADIAN)


@composed
def radians(x: Data) -> Tensor:
    """The same as deg2rad."""
    return deg2rad(x)


@composed
def degrees(x: Data) -> Tensor:
    """The same as rad2deg."""
    return rad2deg(x)
