# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import Elementwise
from cygrad.ops.base import Truth
_Data: TypeAlias = Tensor | npt.ArrayLike

COMPARISONS: tuple[Any, ...]
DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
class Bitwise(Elementwise):
    pass
@final
class Clip(Elementwise):
    inputs: str
    integers: Any
    code: str
    bits: int
    dx: str
    dy: str
    dz: str
@final
class Maximum(Elementwise):
    inputs: str
    integers: Any
    code: str
    bits: int
    dx: str
    dy: str
@final
class Minimum(Elementwise):
    inputs: str
    integers: Any
    code: str
    bits: int
    dx: str
    dy: str
@final
class Where(Elementwise):
    inputs: str
    integers: Any
    code: str
    dx: str
    dy: str
@final
class BitwiseAnd(Bitwise):
    inputs: str
    integers: Any
@final
class BitwiseNot(Bitwise):
    integers: Any
@final
class BitwiseOr(Bitwise):
    inputs: str
    integers: Any
@final
class BitwiseXor(Bitwise):
    inputs: str
    integers: Any
@final
class Equal(Truth):
    inputs: str
    integers: Any
@final
class Greater(Truth):
    inputs: str
    integers: Any
@final
class GreaterEqual(Truth):
    inputs: str
    integers: Any
@final
class Isfinite(Truth):
    integers: Any
@final
class Isinf(Truth):
    integers: Any
@final
class Isnan(Truth):
    integers: Any
@final
class Less(Truth):
    inputs: str
    integers: Any
@final
class LessEqual(Truth):
    inputs: str
    integers: Any
@final
class LogicalAnd(Truth):
    inputs: str
    integers: Any
@final
class LogicalNot(Truth):
    integers: Any
@final
class LogicalOr(Truth):
    inputs: str
    integers: Any
@final
class LogicalXor(Truth):
    inputs: str
    integers: Any
@final
class NotEqual(Truth):
    inputs: str
    integers: Any
def bitwise_and(x: _Data, y: _Data) -> Tensor: ...
def bitwise_not(x: _Data) -> Tensor: ...
def bitwise_or(x: _Data, y: _Data) -> Tensor: ...
def bitwise_xor(x: _Data, y: _Data) -> Tensor: ...
def clip(x: _Data, min: _Data | None = None, max: _Data | None = None) -> Tensor: ...
def equal(x: _Data, y: _Data) -> Tensor: ...
def greater(x: _Data, y: _Data) -> Tensor: ...
def greater_equal(x: _Data, y: _Data) -> Tensor: ...
def isfinite(x: _Data) -> Tensor: ...
def isinf(x: _Data) -> Tensor: ...
def isnan(x: _Data) -> Tensor: ...
def less(x: _Data, y: _Data) -> Tensor: ...
def less_equal(x: _Data, y: _Data) -> Tensor: ...
def logical_and(x: _Data, y: _Data) -> Tensor: ...
def logical_not(x: _Data) -> Tensor: ...
def logical_or(x: _Data, y: _Data) -> Tensor: ...
def logical_xor(x: _Data, y: _Data) -> Tensor: ...
def maximum(x: _Data, y: _Data) -> Tensor: ...
def minimum(x: _Data, y: _Data) -> Tensor: ...
def not_equal(x: _Data, y: _Data) -> Tensor: ...
def where(condition: _Data, x: _Data, y: _Data) -> Tensor: ...
