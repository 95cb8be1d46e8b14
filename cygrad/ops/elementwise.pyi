# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy as np
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import Elementwise
_Operand: TypeAlias = Tensor | float | npt.NDArray[Any] | np.generic
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class Abs(Elementwise):
    integers: Any
    code: str
    bits: int
    dx: str
@final
class Add(Elementwise):
    inputs: str
    integers: Any
    dx: str
    dy: str
@final
class Div(Elementwise):
    inputs: str
    dx: str
    dy: str
class Division(Elementwise):
    pass
@final
class Mul(Elementwise):
    inputs: str
    integers: Any
    dx: str
    dy: str
@final
class Neg(Elementwise):
    integers: Any
    dx: str
@final
class Pow(Elementwise):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
    number: bool
    integers: Any
    dx: str
@final
class Power(Elementwise):
    inputs: str
    integers: Any
    dx: str
    dy: str
@final
class Reciprocal(Elementwise):
    dx: str
class Rounding(Elementwise):
    integers: Any
    dx: str
@final
class Rsqrt(Elementwise):
    dx: str
@final
class Sign(Elementwise):
    integers: Any
    dx: str
@final
class Sqrt(Elementwise):
    dx: str
@final
class Square(Elementwise):
    integers: Any
    dx: str
@final
class Sub(Elementwise):
    inputs: str
    integers: Any
    dx: str
    dy: str
@final
class Ceil(Rounding):
    pass
@final
class Floor(Rounding):
    pass
@final
class FloorDivide(Division):
    inputs: str
    integers: Any
    dx: str
    dy: str
@final
class Remainder(Division):
    inputs: str
    integers: Any
    dx: str
    dy: str
@final
class Round(Rounding):
    pass
@final
class Trunc(Rounding):
    pass
def abs(x: _Data) -> Tensor: ...
def add(x: _Data, y: _Data) -> Tensor: ...
def ceil(x: _Data) -> Tensor: ...
def div(x: _Data, y: _Data) -> Tensor: ...
def floor(x: _Data) -> Tensor: ...
def floor_divide(x: _Data, y: _Data) -> Tensor: ...
def mul(x: _Data, y: _Data) -> Tensor: ...
def neg(x: _Data) -> Tensor: ...
def pow(x: _Data, p: _Operand) -> Tensor: ...
def power(x: _Data, y: _Data) -> Tensor: ...
def reciprocal(x: _Data) -> Tensor: ...
def remainder(x: _Data, y: _Data) -> Tensor: ...
def round(x: _Data) -> Tensor: ...
def rsqrt(x: _Data) -> Tensor: ...
def sign(x: _Data) -> Tensor: ...
def sqrt(x: _Data) -> Tensor: ...
def square(x: _Data) -> Tensor: ...
def sub(x: _Data, y: _Data) -> Tensor: ...
def trunc(x: _Data) -> Tensor: ...
